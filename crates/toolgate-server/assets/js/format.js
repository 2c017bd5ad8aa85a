// Formats numbers, times, JSON and outcomes for people.

import { visible } from './text.js';

const number = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** 12345 → "12,345"; not a number → "–". */
export function count(value) {
  return Number.isFinite(value) ? number.format(value) : '–';
}

/** Milliseconds with up to three significant digits: "0.42 ms", "12 ms", "1.24 s", "2 min 05 s". */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 9.95) return `${trim(ms, ms < 0.995 ? 2 : 1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9995) return `${trim(ms / 1000, 2)} s`;
  if (ms < 59_950) return `${trim(ms / 1000, 1)} s`;
  return span(Math.round(ms / 1000));
}

function trim(value, digits) {
  return value.toFixed(digits).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
}

/** Whole seconds: "45 s", "2 min 05 s", "3 h 12 min", "4 d 2 h". */
export function span(seconds) {
  if (!Number.isFinite(seconds)) return '–';
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, '0')} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, '0')} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** "512 B", "1.4 KiB", "3 MiB". */
export function bytes(size) {
  if (!Number.isFinite(size)) return '–';
  if (size < 1024) return `${Math.round(size)} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let value = size / 1024;
  let unit = 0;
  while (value >= 1023.95 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${trim(value, value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** 0.034 → "3.4 %"; null → "–". */
export function percent(share) {
  if (share === null || share === undefined || !Number.isFinite(share)) return '–';
  const value = share * 100;
  return `${trim(value, value > 0 && value < 9.95 ? 1 : 0)} %`;
}

const pad = (value, width = 2) => String(value).padStart(width, '0');

/** The time of day, local, with milliseconds: "14:03:22.123". */
export function time(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '–';
  return `${clock(date)}.${pad(date.getMilliseconds(), 3)}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The time of day for today, else with the day: "14:03:22.123", "3 Nov 14:03:22". */
export function shortTime(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '–';
  if (date.toDateString() === new Date().toDateString()) return time(iso);
  return `${date.getDate()} ${MONTHS[date.getMonth()]} ${clock(date)}`;
}

/** The time of day, local: "14:03:22". */
export function clock(date) {
  return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** Date and time of day: "2026-03-01 14:03:22.123". */
export function dateTime(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '–';
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${time(iso)}`;
}

/** "just now", "12 s ago", "3 min ago", "2 h ago", "5 d ago". */
export function ago(iso, now = Date.now()) {
  const seconds = Math.floor((now - new Date(iso).getTime()) / 1000);
  if (!Number.isFinite(seconds)) return '–';
  if (seconds < 2) return 'just now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** "1 tool", "3 tools". */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A value as indented JSON. */
export function pretty(value) {
  return value === undefined ? '' : visible(JSON.stringify(value, null, 2));
}

/** JSON on one line, cut after `max` characters. */
export function brief(value, max = 120) {
  const text = value === undefined ? '' : visible(JSON.stringify(value));
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

const OUTCOMES = {
  success: ['OK', 'ok'],
  running: ['Running', 'info'],
  interrupted: ['Interrupted', 'warn'],
  timeout: ['Timed out', 'bad'],
  not_found: ['Unknown tool', 'bad'],
  invalid_arguments: ['Invalid arguments', 'warn'],
  denied: ['Denied', 'warn'],
  unavailable: ['Unavailable', 'bad'],
  cancelled: ['Cancelled', 'muted'],
  handler_not_found: ['No handler', 'bad'],
  tool_error: ['Tool error', 'bad'],
  panicked: ['Panicked', 'bad'],
  too_large: ['Too large', 'bad'],
  overloaded: ['Overloaded', 'warn'],
};

/** The label and colour of an outcome: `{ text, tone }`, where `tone` is ok, info, warn, bad or muted. */
export function outcome(word) {
  const [text, tone] = OUTCOMES[word] ?? [String(word ?? 'unknown').replaceAll('_', ' '), 'bad'];
  return { text, tone };
}

const ORIGINS = {
  http: ['HTTP', 'the HTTP API'],
  mcp: ['MCP', 'an MCP client'],
  chat: ['chat', 'a chat'],
  voice: ['voice', 'the voice gateway'],
  cli: ['command line', 'the command line'],
  worker: ['worker', 'a worker'],
  library: ['library', 'a program that uses the library'],
};

/** The label of a call's origin: `short` for a list, `long` for a sentence. */
export function originLabel(origin) {
  const [short, long] = ORIGINS[origin] ?? [origin ?? 'unknown', origin ?? 'somebody'];
  return { short, long };
}

/** All origins, for filters. */
export const origins = Object.keys(ORIGINS);

/** All outcomes, for filters. */
export const outcomes = Object.keys(OUTCOMES);

export { jsonTree } from './json.js';
