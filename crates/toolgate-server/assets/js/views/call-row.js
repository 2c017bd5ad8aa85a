// A row of the list of calls. Rows are created once and reused for other calls while scrolling.

import { h, setText, setAttr } from '../dom.js';
import { brief, dateTime, duration, outcome, shortTime, originLabel } from '../format.js';
import { icon } from '../icons.js';
import { visible } from '../text.js';
import { taskOf, taskWord } from './call-task.js';

/** The bar is logarithmic, from a tenth of a millisecond to a minute, so that fast and slow calls can be compared. */
const MIN_MS = 0.1;
const MAX_MS = 60_000;
/** Calls of at least this duration, in milliseconds, are marked as slow. */
export const SLOW = 1000;

export const COLUMNS = [['time', 'Time'], ['asker', 'Asked by'], ['tool', 'Tool'], ['server', 'Server'], ['duration', 'Duration'], ['outcome', 'Outcome']];

/** The position of a duration on the bar, from 0 to 1. */
export function position(ms) {
  return Math.min(1, Math.max(0, Math.log(Math.max(ms, MIN_MS) / MIN_MS) / Math.log(MAX_MS / MIN_MS)));
}

const MARK = `${position(SLOW) * 100}%`;
const ICONS = { ok: 'check', bad: 'close', warn: 'alert', info: 'replay', muted: 'pause' };

export function headRow() {
  const title = { duration: 'Logarithmic; the mark on the bar is one second' };
  return h('div', { class: 'calls-head', role: 'row', 'aria-rowindex': '1' },
    COLUMNS.map(([id, text]) => h('span', { class: `col-${id}`, role: 'columnheader', title: title[id] }, text)));
}

export function createRow() {
  const cell = (id, kind, ...children) => h('span', { class: `col-${id} ${kind}`, role: 'gridcell' }, children);
  const part = {
    time: cell('time', 'call-time'),
    caller: h('span', { class: 'call-caller' }),
    origin: h('span'),
    name: h('span', { class: 'call-name' }),
    arguments: h('span', { class: 'call-arguments' }),
    server: cell('server', 'call-server'),
    fill: h('span', { class: 'bar-fill' }),
    ms: h('span', { class: 'call-ms' }),
    word: h('span', { class: 'truncate' }),
    icons: h('span', { class: 'row' }),
  };
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' }, part.fill, h('span', { class: 'bar-mark', style: { left: MARK } }));
  part.asker = cell('asker', 'call-asker', part.caller, part.origin);
  part.outcome = cell('outcome', 'call-outcome', part.icons, part.word);
  const row = h('div', { class: 'call', role: 'row', 'data-testid': 'call-row' }, part.time, part.asker,
    cell('tool', 'call-what', part.name, part.arguments), part.server, cell('duration', 'call-duration', bar, part.ms), part.outcome);
  row.parts = part;
  return row;
}

/** The duration of a call so far, by this page's clock if it saw the call begin. */
export function elapsed(record) {
  if (record.call.outcome !== 'running') return record.call.duration_ms;
  return record.seen === null ? Math.max(0, Date.now() - record.at) : performance.now() - record.seen;
}

export function updateRow(row, record, index, active) {
  const { call } = record;
  const part = row.parts;
  setAttr(row, 'id', `call-${call.id}`);
  setAttr(row, 'data-id', call.id);
  setAttr(row, 'aria-rowindex', index + 2);
  setAttr(row, 'aria-selected', active ? 'true' : 'false');
  const running = call.outcome === 'running';
  const kind = `call${active ? ' is-active' : ''}${running ? ' is-running' : ''}`;
  if (row.className !== kind) row.className = kind;
  if (row.drawn !== call) drawCall(row, part, call);
  const task = running && taskOf(call.id);
  if (running) setText(part.word, task ? taskWord(task) : outcome(call.outcome).text);
  if (running || row.timed !== call) drawDuration(part, elapsed(record), running);
  row.timed = call;
}

function drawCall(row, part, call) {
  row.drawn = call;
  setText(part.time, shortTime(call.started_at));
  setAttr(part.time, 'title', dateTime(call.started_at));
  const { short, long } = originLabel(call.origin);
  setText(part.caller, call.caller ?? '');
  setText(part.origin, short);
  setAttr(part.asker, 'title', call.caller ? `${call.caller} through ${long}` : long);
  setText(part.name, call.tool);
  setAttr(part.name, 'title', call.tool);
  setText(part.arguments, visible(call.error ?? argumentsText(call.arguments)));
  part.arguments.classList.toggle('is-error', Boolean(call.error));
  setText(part.server, call.server ?? sourceWord(call.source));
  const { text, tone } = outcome(call.outcome);
  setText(part.word, text);
  setAttr(part.outcome, 'title', call.error ?? text);
  setAttr(row.parts.name.parentElement, 'class', `col-tool call-what tone-${tone}`);
  setAttr(part.outcome, 'class', `col-outcome call-outcome tone-${tone}`);
  if (part.tone !== tone) part.icons.replaceChildren(icon(ICONS[tone]));
  part.tone = tone;
}

/** Arguments that were not JSON, or too long to keep, are text. */
function argumentsText(args) {
  if (typeof args === 'string') return args.slice(0, 140);
  return args && Object.keys(args).length > 0 ? brief(args, 140) : '';
}

function sourceWord(source) {
  return source && !source.startsWith('mcp:') ? source : '–';
}

function drawDuration(part, ms, running) {
  const known = Number.isFinite(ms);
  setText(part.ms, running && ms < 1000 ? `${Math.round(ms / 100) * 100} ms` : duration(known ? ms : NaN));
  part.fill.style.width = known ? `${position(ms) * 100}%` : '0';
  const slow = known && ms >= SLOW ? 'tone-warn' : '';
  setAttr(part.fill, 'class', `bar-fill ${slow}`);
  setAttr(part.ms, 'class', `call-ms ${slow}`);
}
