// Draws the plots of a tool as SVG; colours and dashes are in css/tools.css.

import { svg, uid } from './dom.js';
import { clock, count, duration, plural } from './format.js';
import { innerBox, plotFrame, xAxis, yAxis } from './plot/frame.js';
import { binFactor, bucketLabel, buckets, durationUnit, linear, logTicks, logarithmic, niceTicks, plain, rebin, runs, span, timeTicks } from './plot/scale.js';

/** The longest gap that a bridge spans, in steps of ten seconds: two minutes. */
const MAX_BRIDGE = 12;
/** The most steps of a series. */
const HALF_HOUR = 180;

/** p50 and p95 over time. Data: the `series` of `/api/stats`. */
export function latencyPlot() {
  return plotFrame({
    title: 'Latency', note: 'p50 and p95 of each step', testid: 'plot-latency', cursorLabel: 'Latency over time',
    series: [{ key: 'p50', label: 'p50', mark: 'mark-p50' }, { key: 'p95', label: 'p95', mark: 'mark-p95' }],
    paint: paintLatency,
  });
}

function paintLatency(points, { width, height }) {
  const highest = Math.max(0, ...points.map((point) => point.p95_ms ?? point.p50_ms ?? 0));
  const unit = durationUnit(highest);
  const ticks = niceTicks(highest / unit.ms, 4);
  const labels = withUnit(ticks, unit.name);
  const box = innerBox({ width, height }, labels);
  const y = linear(0, ticks.at(-1) * unit.ms, box.bottom, box.top);
  const time = timeScale(points, box);
  const measured = points.filter((point) => point.p95_ms !== null);
  const shown = (index) => (index === null ? points.findLast((point) => point.p95_ms !== null) : points[index]);
  return {
    box,
    nodes: [
      yAxis(box, ticks, labels, (tick) => y(tick * unit.ms)), xAxis(box, width, time.ticks),
      band(points, time.xs, y),
      bridges(points, 'p95_ms', time.xs, y, 'line-p95'), bridges(points, 'p50_ms', time.xs, y, 'line-p50'),
      curve(points, 'p95_ms', time.xs, y, 'line-p95'), curve(points, 'p50_ms', time.xs, y, 'line-p50'),
      measured.length === 0 && nothing(box),
    ],
    stops: time.xs,
    summary: measured.length ? `Highest p95 ${duration(highest)} in the last ${time.all}.` : 'No calls in this time.',
    read(index) {
      const point = shown(index);
      const marks = index === null ? [] : [['p95_ms', 'dot-p95'], ['p50_ms', 'dot-p50']].filter(([key]) => point[key] !== null);
      return {
        at: point ? `${index === null ? 'last, ' : ''}${time.of(point)}` : 'no calls',
        values: { p50: duration(point?.p50_ms), p95: duration(point?.p95_ms) },
        dots: marks.map(([key, mark]) => ({ y: y(point[key]), mark })),
      };
    },
    table: () => ({
      head: ['Time', 'p50', 'p95'],
      rows: measured.toReversed().map((point) => [clock(new Date(point.at)), duration(point.p50_ms), duration(point.p95_ms)]),
    }),
  };
}

/** Calls and failures over time, as bars; neighbouring steps are joined where they would be too thin to see. */
export function ratePlot() {
  const hatch = uid('hatch');
  return plotFrame({
    title: 'Calls', note: 'failed ones hatched', testid: 'plot-rate', cursorLabel: 'Calls over time',
    series: [{ key: 'calls', label: 'calls', mark: 'mark-calls' }, { key: 'failed', label: 'failed', mark: 'mark-failed' }],
    paint: (points, box) => paintRate(points, box, hatch),
  });
}

function paintRate(points, { width, height }, hatch) {
  const steps = rebin(points, binFactor(points.length, width - 60));
  const max = Math.max(0, ...steps.map((step) => step.calls));
  const ticks = niceTicks(max, 4, true);
  const seconds = stepSeconds(steps);
  const labels = withUnit(ticks, `/ ${seconds} s`);
  const box = innerBox({ width, height }, labels);
  const y = linear(0, ticks.at(-1), box.bottom, box.top);
  const time = timeScale(steps, box);
  const total = { calls: sum(points, 'calls'), failures: sum(points, 'failures') };
  return {
    box,
    nodes: [
      hatchPattern(hatch), yAxis(box, ticks, labels, y), xAxis(box, width, time.ticks),
      steps.map((step, index) => bar(step, time.xs[index], time.width, y, hatch)), total.calls === 0 && nothing(box),
    ],
    stops: time.xs,
    summary: `${plural(total.calls, 'call')} in the last ${time.all}, ${count(total.failures)} failed.`,
    read(index) {
      const step = index === null ? total : steps[index];
      return {
        at: index === null ? `last ${time.all}` : time.of(step),
        values: { calls: count(step.calls), failed: count(step.failures) },
      };
    },
    table: () => ({
      head: ['From', `Calls in ${seconds} s`, 'Failed'],
      rows: steps.filter((step) => step.calls > 0).toReversed().map((step) => [clock(new Date(step.at)), count(step.calls), count(step.failures)]),
    }),
  };
}

/** The durations of calls in buckets on a logarithmic axis, with p50, p95 and p99. Data: one tool of `/api/stats`. */
export function histogramPlot() {
  return plotFrame({
    title: 'Durations', note: 'last 30 min, logarithmic', testid: 'plot-histogram', cursorLabel: 'Latency histogram',
    series: [{ key: 'calls', label: 'calls', mark: 'mark-calls' }, { key: 'share', label: 'of all', mark: 'mark-none' }],
    paint: paintHistogram,
  });
}

function paintHistogram(stats, { width, height }) {
  const shown = buckets(stats.histogram.bounds_ms, stats.histogram.counts);
  const total = stats.histogram.counts.reduce((all, one) => all + one, 0);
  const ticks = niceTicks(Math.max(0, ...shown.map((bucket) => bucket.count)), 4, true);
  const labels = ticks.map(plain);
  const box = innerBox({ width, height }, labels);
  box.top += 16;
  const y = linear(0, ticks.at(-1), box.bottom, box.top);
  const [from, to] = shown.length ? [shown[0].from, shown.at(-1).to] : [1, 1000];
  const x = logarithmic(from, to, box.left, box.right);
  const xTicks = logTicks(from, to, Math.floor(width / 58)).map((tick) => ({ x: x(tick), label: duration(tick) }));
  const share = (part) => (total ? `${((part / total) * 100).toFixed(1)} %` : '–');
  return {
    box,
    nodes: [
      yAxis(box, ticks, labels, y), xAxis(box, width, xTicks), shown.map((bucket) => bucketBar(bucket, x, y)), total ? percentileMarks(stats, x, box, [from, to]) : nothing(box),
    ],
    stops: shown.map((bucket) => (x(bucket.from) + x(bucket.to)) / 2),
    summary: total ? `${plural(total, 'call')}: p50 ${duration(stats.p50_ms)}, p95 ${duration(stats.p95_ms)}, p99 ${duration(stats.p99_ms)}.` : 'No calls in this time.',
    read(index) {
      if (index === null) return { at: total ? 'all' : 'no calls', values: { calls: count(total), share: total ? '100 %' : '–' } };
      return { at: bucketLabel(shown[index]), values: { calls: count(shown[index].count), share: share(shown[index].count) } };
    },
    table: () => ({ head: ['Took', 'Calls', 'Of all'], rows: shown.map((bucket) => [bucketLabel(bucket), count(bucket.count), share(bucket.count)]) }),
  };
}

/** A small line of the calls per step, with dots below the steps in which calls failed. */
export function sparkline(points, { width = 120, height = 24 } = {}) {
  const steps = rebin(padded(points, HALF_HOUR), HALF_HOUR / 45);
  const max = Math.max(1, ...steps.map((step) => step.calls));
  const x = linear(0, Math.max(1, steps.length - 1), 1, width - 1);
  const y = linear(0, max, height - 5, 2);
  const line = steps.map((step, index) => `${index ? 'L' : 'M'}${x(index).toFixed(1)} ${y(step.calls).toFixed(1)}`).join('');
  const words = `${plural(sum(points, 'calls'), 'call')} in ${span(points.length * stepSeconds(points))}, ${count(sum(points, 'failures'))} failed`;
  return svg('svg', { class: 'sparkline', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': words },
    line && svg('path', { class: 'spark-area', d: `${line}L${width - 1} ${height - 5}L1 ${height - 5}Z` }),
    line && svg('path', { class: 'spark-line', d: line }),
    steps.map((step, index) => step.failures > 0 && svg('circle', { class: 'spark-failed', cx: x(index), cy: height - 2, r: 1.6 })));
}

/** Adds empty steps before the first, so that all sparklines cover the same time. */
function padded(points, length) {
  const before = Array.from({ length: Math.max(0, length - points.length) }, () => ({ at: null, calls: 0, failures: 0, p50_ms: null, p95_ms: null }));
  return [...before, ...points];
}

function withUnit(ticks, unit) {
  return ticks.map((tick, index) => (index === ticks.length - 1 ? `${plain(tick)} ${unit}` : plain(tick)));
}

/** The x positions of the steps, and ticks at round times. */
function timeScale(points, box) {
  const begin = points.length ? Date.parse(points[0].at) : 0;
  const step = stepSeconds(points) * 1000;
  const end = begin + Math.max(1, points.length) * step;
  const x = linear(begin, end, box.left, box.right);
  const { step: tickStep, ticks } = timeTicks(begin, end, Math.max(2, Math.floor((box.right - box.left) / 90)));
  const short = tickStep >= 60_000;
  return {
    xs: points.map((point) => x(Date.parse(point.at) + step / 2)),
    width: (box.right - box.left) / Math.max(1, points.length),
    ticks: ticks.map((tick) => ({ x: x(tick), label: clock(new Date(tick)).slice(0, short ? 5 : 8) })),
    // A reading applies to its whole step, so it shows when the step begins and ends.
    of: (point) => `${clock(new Date(point.at))}–${clock(new Date(Date.parse(point.at) + step))}`,
    all: span((points.length * step) / 1000),
  };
}

function stepSeconds(points) {
  return points.length > 1 ? Math.round((Date.parse(points.at(-1).at) - Date.parse(points.at(-2).at)) / 1000) : 10;
}

function sum(points, key) {
  return points.reduce((total, point) => total + point[key], 0);
}

function curve(points, key, xs, y, name) {
  return runs(points, key).map((run) => {
    if (run.length === 1) return svg('circle', { class: `${name} plot-lone`, cx: xs[run[0]], cy: y(points[run[0]][key]), r: 2 });
    return svg('path', { class: name, d: run.map((index, nth) => `${nth ? 'L' : 'M'}${xs[index].toFixed(1)} ${y(points[index][key]).toFixed(1)}`).join('') });
  });
}

/** Faint lines across short gaps without calls. */
function bridges(points, key, xs, y, name) {
  const found = runs(points, key);
  return found.slice(1).map((run, nth) => {
    const [before, after] = [found[nth].at(-1), run[0]];
    return after - before <= MAX_BRIDGE && svg('line', { class: `${name} plot-bridge`, x1: xs[before], y1: y(points[before][key]), x2: xs[after], y2: y(points[after][key]) });
  });
}

/** The space between p50 and p95. */
function band(points, xs, y) {
  return runs(points, 'p95_ms').filter((run) => run.length > 1).map((run) => {
    const edge = (key, indices) => indices.map((index) => `${xs[index].toFixed(1)} ${y(points[index][key] ?? 0).toFixed(1)}`).join('L');
    return svg('path', { class: 'plot-band', d: `M${edge('p95_ms', run)}L${edge('p50_ms', run.toReversed())}Z` });
  });
}

function bar(step, middle, width, y, hatch) {
  const thick = Math.max(1, Math.min(width - 1, 14));
  const rect = (from, to, props) => to > from && svg('rect', { x: middle - thick / 2, width: thick, y: y(to), height: y(from) - y(to), ...props });
  const good = step.calls - step.failures;
  return [rect(0, good, { class: 'bar-good' }), rect(good, step.calls, { class: 'bar-failed' }), rect(good, step.calls, { fill: `url(#${hatch})` })];
}

function nothing(box) {
  return svg('text', { class: 'plot-label plot-nothing', x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2, 'text-anchor': 'middle' }, 'No calls in this time');
}

function hatchPattern(id) {
  return svg('defs', null, svg('pattern', { id, width: 4, height: 4, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    svg('line', { x1: 0, x2: 0, y1: 0, y2: 4, class: 'hatch' })));
}

function bucketBar(bucket, x, y) {
  const left = x(bucket.from) + 0.75;
  return bucket.count > 0 && svg('rect', { class: 'bar-good', x: left, width: Math.max(1, x(bucket.to) - 0.75 - left), y: y(bucket.count), height: y(0) - y(bucket.count) });
}

/** p50, p95 and p99 as lines. A label that would overlap the one before is left out; the table and the tiles show the value. */
function percentileMarks(stats, x, box, [from, to]) {
  let free = -Infinity;
  return ['p50', 'p95', 'p99'].map((name) => {
    const value = stats[`${name}_ms`];
    if (value === null || value === undefined) return null;
    const at = x(Math.min(to, Math.max(from, value)));
    const isFree = at - 14 > free;
    if (isFree) free = at + 14;
    return [
      svg('line', { class: 'plot-percentile', x1: at, x2: at, y1: box.top - 6, y2: box.bottom }),
      isFree && svg('text', { class: 'plot-label', x: at, y: box.top - 10, 'text-anchor': 'middle' }, name),
    ];
  });
}
