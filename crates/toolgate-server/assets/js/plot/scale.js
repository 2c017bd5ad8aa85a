// Scales, ticks and units of the plots. Pure functions.

import { duration } from '../format.js';

/** The smallest of 1, 2, 5 times a power of ten that is at least `rough`. */
export function niceStep(rough) {
  if (!(rough > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5].find((candidate) => candidate * power >= rough * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** Ticks from zero up to the first that reaches `max`, about `count` steps; whole numbers only if `whole`. */
export function niceTicks(max, count = 4, whole = false) {
  const top = max > 0 ? max : 1;
  const step = whole ? Math.max(1, niceStep(top / count)) : niceStep(top / count);
  const steps = Math.max(1, Math.ceil(top / step - 1e-9));
  return Array.from({ length: steps + 1 }, (_, index) => round(index * step));
}

/** Removes errors of binary fractions: 0.30000000000000004 becomes 0.3. */
export function round(value) {
  return Number(value.toPrecision(12));
}

export function linear(from, to, start, end) {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

export function logarithmic(from, to, start, end) {
  const scale = linear(Math.log10(from), Math.log10(to), start, end);
  return (value) => scale(Math.log10(Math.max(value, Number.MIN_VALUE)));
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const TIME_STEPS = [
  SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  60 * MINUTE, 120 * MINUTE, 360 * MINUTE, 720 * MINUTE, 1440 * MINUTE,
];

/** Ticks at round times between two times in epoch milliseconds, at most about `count`. */
export function timeTicks(from, to, count = 6) {
  const rough = Math.max(1, (to - from) / Math.max(1, count));
  const step = TIME_STEPS.find((candidate) => candidate >= rough) ?? TIME_STEPS.at(-1);
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
  return { step, ticks };
}

/** Powers of ten within the range, with 2 and 5 (or 3) between them if that makes at most `max` ticks. */
export function logTicks(from, to, max = 8) {
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(from)) - 1; 10 ** power <= to * 1.001; power += 1) {
      for (const factor of factors) {
        const value = round(factor * 10 ** power);
        if (value >= from * 0.999 && value <= to * 1.001) ticks.push(value);
      }
    }
    if (ticks.length <= max || factors.length === 1) return ticks;
  }
  return [];
}

/** The unit for a whole axis of durations. */
export function durationUnit(maxMs) {
  if (maxMs >= 120 * SECOND) return { name: 'min', ms: MINUTE };
  if (maxMs >= 2 * SECOND) return { name: 's', ms: SECOND };
  if (maxMs >= 2 || !(maxMs > 0)) return { name: 'ms', ms: 1 };
  return { name: 'µs', ms: 0.001 };
}

/** A length of time in words: seconds up to two minutes, then minutes. */
export function span(seconds) {
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

/** A number in short form: 0.5, 12, 1,200, 34 k. */
export function plain(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${round(Math.round(value / 1e4) / 100)} M`;
  if (size >= 1e4) return `${round(Math.round(value / 10) / 100)} k`;
  return round(value).toLocaleString('en-GB', { maximumFractionDigits: 3 });
}

/** Joins `factor` neighbouring steps into one. The percentiles of a group are those of its worst step. */
export function rebin(points, factor) {
  if (factor <= 1) return points;
  const groups = [];
  // Counted from the newest, so that only the oldest group can be short.
  for (let end = points.length; end > 0; end -= factor) {
    const group = points.slice(Math.max(0, end - factor), end);
    groups.push({
      at: group[0].at,
      calls: sum(group, 'calls'),
      failures: sum(group, 'failures'),
      p50_ms: highest(group, 'p50_ms'),
      p95_ms: highest(group, 'p95_ms'),
    });
  }
  return groups.reverse();
}

function sum(points, key) {
  return points.reduce((total, point) => total + (point[key] ?? 0), 0);
}

function highest(points, key) {
  const values = points.map((point) => point[key]).filter((value) => value !== null && value !== undefined);
  return values.length ? Math.max(...values) : null;
}

/** How many steps to join so that a bar is at least `least` pixels wide. Groups are round numbers of minutes. */
export function binFactor(steps, width, least = 5) {
  const needed = (steps * least) / Math.max(1, width);
  return [1, 2, 3, 6, 12, 18, 30].find((factor) => factor >= needed) ?? 60;
}

/**
 * The buckets of a latency histogram to draw, without empty ones at both ends except for one. The first and last bucket
 * are open, so they are drawn as wide as their neighbours.
 */
export function buckets(boundsMs, counts) {
  const all = counts.map((count, index) => ({
    count,
    from: index === 0 ? lower(boundsMs) : boundsMs[index - 1],
    to: index === boundsMs.length ? upper(boundsMs) : boundsMs[index],
    open: index === 0 ? 'below' : index === boundsMs.length ? 'above' : null,
  }));
  const first = all.findIndex((bucket) => bucket.count > 0);
  if (first < 0) return [];
  const last = all.findLastIndex((bucket) => bucket.count > 0);
  return all.slice(Math.max(0, first - 1), last + 2);
}

function lower(bounds) {
  return bounds.length > 1 ? (bounds[0] * bounds[0]) / bounds[1] : bounds[0] / 2;
}

function upper(bounds) {
  return bounds.length > 1 ? (bounds.at(-1) * bounds.at(-1)) / bounds.at(-2) : bounds.at(-1) * 2;
}

/** A bucket in words: `10 ms to 20 ms`, `over 10 s`. */
export function bucketLabel(bucket) {
  if (bucket.open === 'below') return `up to ${duration(bucket.to)}`;
  if (bucket.open === 'above') return `over ${duration(bucket.from)}`;
  return `${duration(bucket.from)} to ${duration(bucket.to)}`;
}

/** Runs of neighbouring points that have a value, so that a line has a gap where nothing was measured. */
export function runs(points, key) {
  const found = [];
  let run = null;
  points.forEach((point, index) => {
    const value = point[key];
    if (value === null || value === undefined) {
      run = null;
    } else {
      if (!run) found.push((run = []));
      run.push(index);
    }
  });
  return found;
}

/** The index of the value nearest to `target` in an ascending list. */
export function nearest(values, target) {
  let best = 0;
  values.forEach((value, index) => {
    if (Math.abs(value - target) < Math.abs(values[best] - target)) best = index;
  });
  return best;
}
