import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventParser } from '../../assets/js/api.js';
import { brief, bytes, duration, percent, pretty, shortTime, span } from '../../assets/js/format.js';
import { stateOf } from '../../assets/js/strip.js';
import { CallStore, NO_FILTER } from '../../assets/js/store.js';
import { elapsed, position } from '../../assets/js/views/call-row.js';
import { differences } from '../../assets/js/views/call-diff.js';
import { shareOf, taskWord } from '../../assets/js/views/call-task.js';
import { filterOf, hashFor } from '../../assets/js/views/call-filter.js';
import { stepsOf } from '../../assets/js/views/waterfall.js';

const START = Date.parse('2026-03-01T12:00:00.000Z');
const call = (n, more = {}) => ({ id: `c${String(n).padStart(6, '0')}`, tool: 'echo', server: null, origin: 'http', started_at: new Date(START + n * 1000).toISOString(), duration_ms: 5, outcome: 'success', success: true, arguments: { n }, ...more });

/** A gateway that holds `calls` (oldest first) and notes what it was asked. */
function gateway(calls) {
  const asked = [];
  globalThis.document = { baseURI: 'http://gateway/', hidden: false };
  globalThis.fetch = async (url) => {
    const query = new URL(url).searchParams;
    asked.push(Object.fromEntries(query));
    const before = query.get('before');
    const fits = calls.filter((each) => (!before || each.id < before) && (!query.get('since') || each.started_at >= query.get('since'))
      && (!query.get('tool') || each.tool === query.get('tool')));
    return new Response(JSON.stringify(fits.toReversed().slice(0, Number(query.get('limit')))));
  };
  return asked;
}

const ids = (store) => store.shown().map((record) => Number(record.call.id.slice(1)));
const range = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);

test('calls stand in the order they began, whenever they come', () => {
  const store = new CallStore(() => {});
  for (const n of [3, 1, 2, 5, 4]) store.take(call(n), true);
  assert.deepEqual(ids(store), [1, 2, 3, 4, 5]);
});

test('a call ends in place, and never runs again because an old message comes late', () => {
  const store = new CallStore(() => {});
  store.take(call(1, { outcome: 'running', success: null, duration_ms: null }), true);
  store.take(call(2), true);
  assert.equal(store.running.size, 1);
  store.take(call(1), true);
  store.take(call(1, { outcome: 'running', success: null }), true);
  assert.equal(store.running.size, 0);
  assert.deepEqual(store.shown().map((record) => record.call.outcome), ['success', 'success']);
});

test('older pages are asked for one after the other, until there are no more', async () => {
  const asked = gateway(range(0, 1500).map((n) => call(n)));
  const store = new CallStore(() => {});
  await store.older();
  assert.deepEqual(ids(store), range(1300, 1500));
  await store.older();
  await store.older();
  await store.older();
  assert.deepEqual(ids(store), range(0, 1500));
  assert.deepEqual(asked.map((query) => [query.limit, query.before]), [['200', undefined], ['1000', 'c001300'], ['1000', 'c000300']]);
});

test('what another search has found far back makes no holes in the list', async () => {
  gateway(range(0, 3000).map((n) => call(n, n % 100 === 0 ? { tool: 'rare' } : {})));
  const store = new CallStore(() => {});
  await store.older();
  await store.setFilter({ ...NO_FILTER, tool: 'rare' });
  assert.deepEqual(ids(store), range(0, 30).map((n) => n * 100));
  await store.setFilter(NO_FILTER);
  assert.deepEqual(ids(store), range(2800, 3000));
});

test('live calls pass the filter too', () => {
  const store = new CallStore(() => {});
  gateway([]);
  store.useFilter({ ...NO_FILTER, outcome: 'failed', search: 'kitchen' });
  store.take(call(1, { outcome: 'timeout', success: false, arguments: { room: 'Kitchen' } }), true);
  store.take(call(2, { outcome: 'timeout', success: false }), true);
  store.take(call(3, { arguments: { room: 'Kitchen' } }), true);
  assert.deepEqual(ids(store), [1]);
});

test('after a gap what was missed is fetched, and those that ran then end', async () => {
  const calls = [call(1), call(2, { outcome: 'running', success: null, duration_ms: null }), call(3)];
  gateway(calls);
  const store = new CallStore(() => {});
  await store.older();
  calls[1] = call(2, { outcome: 'timeout', success: false });
  calls.push(call(4), call(5));
  await store.catchUp();
  assert.deepEqual(ids(store), [1, 2, 3, 4, 5]);
  assert.equal(store.byId.get('c000002').call.outcome, 'timeout');
});

test('a gap that is too large is not bridged: the list begins again', async () => {
  const calls = range(0, 10).map((n) => call(n));
  gateway(calls);
  const store = new CallStore(() => {});
  await store.older();
  calls.push(...range(10, 8000).map((n) => call(n)));
  await store.catchUp();
  assert.deepEqual(ids(store), range(7800, 8000));
});

test('no more than some twenty thousand calls are kept', () => {
  const store = new CallStore(() => {});
  for (const n of range(0, 25_000)) store.take(call(n), true);
  assert.ok(store.records.length <= 21_000 && store.byId.size === store.records.length, String(store.records.length));
  assert.equal(ids(store).at(-1), 24_999);
});

test('arguments are compared name by name', () => {
  const lines = differences({ asked: { device: 'a', level: '5', mood: 1, on: true }, executed: { device_name: 'a', level: 5, on: true, unit: '%' }, renamed: [['device', 'device_name']], dropped: ['mood'] });
  assert.deepEqual(lines.map(({ kind, from, to }) => [kind, from, to]), [
    ['renamed', 'device', 'device_name'], ['changed', 'level', 'level'], ['dropped', 'mood', undefined], ['same', 'on', 'on'], ['added', undefined, 'unit'],
  ]);
});

test('waiting for a person or for a slot is shown apart from the run', () => {
  const { steps, total } = stepsOf({ duration_ms: 12, timings: { check_ms: 1, approval_ms: 3000, queue_ms: 0, invoke_ms: 10 } });
  assert.deepEqual(steps.map(({ name, from, ms }) => [name, from, ms]), [['Check', 0, 1], ['Approval', 1, 3000], ['Run', 3001, 10]]);
  assert.equal(total, 3011);
  const queued = stepsOf({ duration_ms: 5011, timings: { check_ms: 1, approval_ms: 0, queue_ms: 5000, invoke_ms: 10 } });
  assert.deepEqual(queued.steps.map(({ name, from, ms }) => [name, from, ms]), [['Check', 0, 1], ['Queue', 1, 5000], ['Run', 5001, 10]]);
  const slow = stepsOf({ duration_ms: 20, timings: { check_ms: 1, approval_ms: 0, invoke_ms: 10 } });
  assert.deepEqual(slow.steps.map(({ name, from, ms }) => [name, from, ms]), [['Check', 0, 1], ['Run', 1, 10], ['Rest', 11, 9]]);
  assert.deepEqual(stepsOf({ duration_ms: null, timings: { check_ms: null } }).steps, []);
});

test('the bar grows with time, and a second has its place on it', () => {
  assert.deepEqual([position(0), position(60_000), position(1e9)], [0, 1, 1]);
  assert.ok(position(10) < position(999) && position(999) < position(1001));
  assert.equal(elapsed({ call: call(1), seen: 0 }), 5);
});

test('durations, sizes and shares are short', () => {
  const table = [[0.004, '0 ms'], [0.42, '0.42 ms'], [9.94, '9.9 ms'], [12.3, '12 ms'], [999.4, '999 ms'], [999.6, '1 s'], [1240, '1.24 s'], [59_949, '59.9 s'], [59_960, '1 min 00 s'], [125_000, '2 min 05 s'], [NaN, '–']];
  for (const [ms, text] of table) assert.equal(duration(ms), text);
  assert.deepEqual([bytes(0), bytes(1023), bytes(1024), bytes(1536), bytes(3 * 2 ** 20)], ['0 B', '1023 B', '1 KiB', '1.5 KiB', '3 MiB']);
  assert.deepEqual([percent(0), percent(0.034), percent(0.25), percent(null)], ['0 %', '3.4 %', '25 %', '–']);
  assert.deepEqual([span(59), span(3661), span(90_000)], ['59 s', '1 h 01 min', '1 d 1 h']);
  assert.match(shortTime('2001-02-03T04:05:06Z'), /^[0-9] Feb [0-9:]{8}$/);
});

test('calls are told apart by who asked', () => {
  gateway([]);
  const store = new CallStore(() => {});
  store.setFilter({ caller: 'kitchen' });
  for (const [n, more] of [{ caller: 'kitchen' }, { caller: 'garden' }, {}, { command: 'toolgate kitchen' }, { caller: 'garden', command: 'kitchen' }].entries()) store.take(call(n, more), true);
  assert.deepEqual(ids(store), [0, 3]);
  assert.deepEqual([...store.callers], ['kitchen', 'garden']);
  assert.equal(store.query({ limit: 1 }).get('caller'), 'kitchen');
});

test('the gateway does not say that all is well beside calls that fail', () => {
  const table = [
    [null, null, 'unknown'], [null, false, 'down'],
    [{ status: 'ok', error_rate: null }, true, 'ok'], [{ status: 'ok', error_rate: 0.1 }, true, 'ok'], [{ status: 'ok', error_rate: 0.57 }, true, 'failing'],
    [{ status: 'degraded', error_rate: 1 }, true, 'degraded'], [{ status: 'down', error_rate: null }, true, 'down'], [{ status: 'new' }, true, 'unknown'],
  ];
  for (const [status, reached, wanted] of table) assert.equal(stateOf(status, reached), wanted, JSON.stringify(status));
});

test('a filter is in the address and comes back from it', () => {
  const filter = { ...NO_FILTER, search: 'a b&c', outcome: 'failed' };
  const hash = hashFor('x/y', filter);
  assert.equal(hash, '#/calls/x%2Fy?search=a+b%26c&outcome=failed');
  assert.deepEqual(filterOf(new URLSearchParams(hash.split('?')[1])), filter);
  assert.equal(hashFor(null, NO_FILTER), '#/calls');
});

test('events come out of pieces cut anywhere', () => {
  const text = ': hello\r\n\r\nevent: call\ndata: {"a":\ndata: 1}\nid: 7\n\ndata: plain\n\nevent: empty\n\n';
  for (const size of [1, 2, 3, 7, text.length]) {
    const seen = [];
    const parser = new EventParser((event) => seen.push([event.event, event.data, event.id]));
    for (let at = 0; at < text.length; at += size) parser.push(text.slice(at, at + size));
    assert.deepEqual(seen, [['call', { a: 1 }, '7'], ['message', 'plain', '7']], `pieces of ${size}`);
  }
});

test('marks that turn or hide text are written out, and stay what they are', () => {
  const value = { name: 'gpj.\u202eexe', note: 'می\u200cخواهم 👨\u200d👩\u200d👧', gap: 'a\u200bb' };
  for (const text of [brief(value), pretty(value)]) {
    assert.ok(!/[\u202e\u200b]/.test(text) && text.includes('\\u202e') && text.includes('👨\u200d👩\u200d👧'), text);
    assert.deepEqual(JSON.parse(text), value);
  }
});

test('a task says how far it is, if its tool does', () => {
  assert.equal(taskWord({ status: 'working', done: 12, total: 20 }), 'Task, 60 %');
  assert.equal(taskWord({ status: 'working', done: 12 }), 'Task');
  assert.equal(taskWord({ status: 'working', done: 3, total: 0 }), 'Task');
  assert.equal(taskWord({ status: 'working', done: 30, total: 20 }), 'Task, 100 %');
  assert.equal(taskWord({ status: 'input_required', done: 12, total: 20, caller_waits: false }), 'Asks its client');
  assert.equal(taskWord({ status: 'input_required', caller_waits: true }), 'Asks a person');
  assert.equal(shareOf({ done: -1, total: 4 }), 0);
});
