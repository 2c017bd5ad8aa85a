import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as scale from '../../assets/js/plot/scale.js';

test('ticks are round numbers from zero that reach the highest value', () => {
  const table = [
    [0, false, [0, 0.5, 1]], [7, false, [0, 2, 4, 6, 8]], [10, false, [0, 5, 10]], [98, false, [0, 50, 100]],
    [0.3, false, [0, 0.1, 0.2, 0.3]], [5000, false, [0, 2000, 4000, 6000]],
    [1, true, [0, 1]], [3, true, [0, 1, 2, 3]], [0, true, [0, 1]], [17, true, [0, 5, 10, 15, 20]],
  ];
  for (const [max, whole, wanted] of table) assert.deepEqual(scale.niceTicks(max, 4, whole), wanted, `up to ${max}`);
});

test('times are ticked at round moments within the range', () => {
  const from = Date.parse('2026-03-01T14:03:20Z');
  const { step, ticks } = scale.timeTicks(from, from + 30 * 60_000, 6);
  assert.equal(step, 5 * 60_000);
  assert.deepEqual(ticks.map((tick) => new Date(tick).toISOString().slice(11, 16)), ['14:05', '14:10', '14:15', '14:20', '14:25', '14:30']);
});

test('a logarithmic axis has as many ticks as fit', () => {
  assert.deepEqual(scale.logTicks(1, 1000, 12), [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]);
  assert.deepEqual(scale.logTicks(1, 1000, 8), [1, 3, 10, 30, 100, 300, 1000]);
  assert.deepEqual(scale.logTicks(0.1, 1e5, 3), [0.1, 1, 10, 100, 1000, 10_000, 100_000]);
});

test('scales map the ends of the one range to the ends of the other', () => {
  const y = scale.linear(0, 10, 100, 0);
  assert.deepEqual([y(0), y(5), y(10)], [100, 50, 0]);
  const x = scale.logarithmic(1, 100, 0, 50);
  assert.deepEqual([x(1), x(10), x(100)], [0, 25, 50]);
  assert.equal(scale.linear(3, 3, 0, 10)(3), 0, 'a range without width does not divide by zero');
});

test('an axis of durations has one unit', () => {
  const table = [[0, 'ms'], [0.4, 'µs'], [3, 'ms'], [1900, 'ms'], [5000, 's'], [600_000, 'min']];
  for (const [max, name] of table) assert.equal(scale.durationUnit(max).name, name, `${max} ms`);
});

test('a young gateway does not look back on no time at all', () => {
  const table = [[10, '10 s'], [90, '90 s'], [120, '2 min'], [1800, '30 min']];
  for (const [seconds, wanted] of table) assert.equal(scale.span(seconds), wanted);
});

test('numbers on an axis are short', () => {
  const table = [[0, '0'], [0.30000000000000004, '0.3'], [1200, '1,200'], [34_000, '34 k'], [2_500_000, '2.5 M']];
  for (const [value, wanted] of table) assert.equal(scale.plain(value), wanted);
});

const step = (minute, calls, failures, p95 = null) => ({ at: `2026-03-01T14:${String(minute).padStart(2, '0')}:00Z`, calls, failures, p50_ms: p95, p95_ms: p95 });

test('joined steps keep their sums and their worst latency', () => {
  const joined = scale.rebin([step(0, 1, 0), step(1, 2, 1, 10), step(2, 3, 0, 40), step(3, 4, 2), step(4, 5, 0)], 2);
  assert.deepEqual(joined.map(({ calls, failures, p95_ms: p95 }) => [calls, failures, p95]), [[1, 0, null], [5, 1, 40], [9, 2, null]]);
  assert.equal(joined[1].at, '2026-03-01T14:01:00Z');
});

test('bars are joined until they are wide enough to see', () => {
  const table = [[180, 1000, 1], [180, 600, 2], [180, 300, 3], [180, 100, 12], [0, 0, 1]];
  for (const [steps, width, wanted] of table) assert.equal(scale.binFactor(steps, width), wanted, `${steps} in ${width} px`);
});

test('a histogram shows its buckets without the empty ends', () => {
  const shown = scale.buckets([1, 10, 100, 1000], [0, 0, 5, 0, 2]);
  assert.deepEqual(shown.map(scale.bucketLabel), ['1 ms to 10 ms', '10 ms to 100 ms', '100 ms to 1 s', 'over 1 s']);
  assert.deepEqual(shown.at(-1).to, 10_000);
  assert.deepEqual(scale.buckets([1, 10], [0, 0, 0]), []);
  assert.equal(scale.bucketLabel(scale.buckets([1, 10], [3, 0, 0])[0]), 'up to 1 ms');
});

test('a line breaks where nothing was measured', () => {
  assert.deepEqual(scale.runs([step(0, 1, 0, 5), step(1, 1, 0, 6), step(2, 0, 0), step(3, 1, 0, 7)], 'p95_ms'), [[0, 1], [3]]);
});

test('the cursor goes to the nearest stop', () => {
  assert.equal(scale.nearest([0, 10, 20], 14), 1);
  assert.equal(scale.nearest([0, 10, 20], 900), 2);
});
