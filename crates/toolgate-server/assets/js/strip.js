// The status strip, and the banner that is shown while the gateway can't be reached.

import { h, fill, setText, setAttr } from './dom.js';
import { get, events, connection } from './api.js';
import { reconnectNow } from './feed.js';
import { icon } from './icons.js';
import { clock, count, duration, percent, plural, span } from './format.js';

const SLOW = 1000;
/** Above this share of failed calls the strip warns, although the gateway itself works. */
const FAILING = 0.5;
const STATES = {
  ok: { word: 'OK', tone: 'ok', icon: 'check' },
  failing: { word: 'CALLS FAIL', tone: 'warn', icon: 'alert' },
  degraded: { word: 'DEGRADED', tone: 'warn', icon: 'alert' },
  down: { word: 'DOWN', tone: 'bad', icon: 'close' },
  unknown: { word: 'CONNECTING', tone: 'muted', icon: 'replay' },
};

const watchers = new Set();
let latest = null;

/** Calls `watcher(status)` now, if it is known, and after every status event. */
export function onStatus(watcher) {
  watchers.add(watcher);
  if (latest) watcher(latest);
  return () => watchers.delete(watcher);
}

/** Draws the strip into `root` and the banner into `bands` while the page is open. */
export function strip(root, bands) {
  const parts = build(root);
  const band = lostBand();
  bands.append(band.element);
  let reached = null;
  const show = () => {
    draw(parts, root, reached === false ? null : latest, reached);
    band.show(connection.state === 'lost', reached);
  };
  const receive = (status) => {
    latest = status;
    reached = true;
    for (const watcher of watchers) watcher(status);
    show();
  };
  const fetchStatus = () => get('/api/status').then(receive, (error) => {
    reached = error.status === 401;
    show();
  });
  events(['status'], { status: receive, open: fetchStatus, lost: fetchStatus });
  setInterval(() => connection.state === 'lost' && show(), 500);
  addEventListener('toolgate:signed-out', show);
  fetchStatus();
  show();
}

function metric(id, label, title, href) {
  const value = h('span', { class: 'metric-value', 'data-testid': `strip-${id}` }, '–');
  const element = h(href ? 'a' : 'div', { class: 'metric', title, href, 'data-metric': id }, value, h('span', { class: 'metric-label' }, label));
  return { value, element };
}

function build(root) {
  const parts = {
    pill: h('span', { class: 'strip-pill', 'data-testid': 'strip-status' }),
    reason: h('span', { class: 'strip-reason', 'data-testid': 'strip-reason' }),
    live: h('span', { class: 'visually-hidden', role: 'status' }),
    cpm: metric('cpm', 'calls / min', 'Calls in the last minute'),
    errors: metric('errors', 'failed, 5 min', 'Share of calls that failed in the last five minutes; click to show them', '#/calls?outcome=failed'),
    p95: metric('p95', 'p95, 5 min', '95 % of the calls in the last five minutes took at most this long'),
    inflight: metric('inflight', 'running', 'Calls that are running now'),
  };
  const numbers = [parts.cpm, parts.errors, parts.p95, parts.inflight].map((part) => part.element);
  fill(root, h('div', { class: 'strip-state' }, parts.pill, parts.reason, parts.live), h('div', { class: 'strip-numbers' }, numbers));
  return parts;
}

function draw(parts, root, status, reached) {
  const name = stateOf(status, reached);
  const state = STATES[name];
  if (parts.shown !== name) {
    parts.shown = name;
    parts.pill.className = `strip-pill tone-${state.tone}`;
    setAttr(parts.pill, 'data-status', name);
    fill(parts.pill, icon(state.icon), h('span', { class: 'strip-word' }, state.word));
    setText(parts.live, name === 'unknown' ? '' : name === 'failing' ? 'Many calls fail' : `The gateway is ${state.word}`);
  }
  const why = reason(name, status);
  setText(parts.reason, why);
  setAttr(parts.reason, 'title', why);
  parts.reason.classList.toggle('is-bad', ['failing', 'degraded', 'down'].includes(name));
  root.classList.toggle('is-stale', reached === false);
  if (status) numbers(parts, status);
}

/** The key of `STATES` to show. A working gateway doesn't count as OK while many calls fail. */
export function stateOf(status, reached) {
  if (!status) return reached === false ? 'down' : 'unknown';
  if (status.status === 'ok' && status.error_rate >= FAILING) return 'failing';
  return STATES[status.status] ? status.status : 'unknown';
}

function reason(name, status) {
  if (name === 'down' && !status) return 'The gateway does not answer.';
  if (!status) return 'Waiting for the gateway.';
  const reasons = [...(status.reasons ?? [])];
  if (status.journal?.state === 'failing' && !reasons.some((each) => each.includes('journal'))) {
    reasons.push(`The journal can't be written: ${status.journal.error ?? 'no reason given'}`);
  }
  if (status.restart_needed?.length > 0) reasons.push(`Restart the gateway to apply changed settings: ${status.restart_needed.join(', ')}`);
  if (reasons.length > 0) return reasons.join(' · ');
  if (name === 'down') return 'The gateway is stopping.';
  if (name === 'failing') return `The gateway works, but ${percent(status.error_rate)} of the calls in the last 5 minutes failed.`;
  return `${plural(status.tools, 'tool')}, ${plural(status.servers, 'server')}, up ${span(status.uptime_s)}, version ${status.version}`;
}

function numbers(parts, status) {
  const cpm = status.calls_per_minute;
  setText(parts.cpm.value, Number.isFinite(cpm) && cpm > 0 && cpm < 10 ? String(Math.round(cpm * 10) / 10) : count(cpm));
  setText(parts.errors.value, percent(status.error_rate));
  setText(parts.p95.value, duration(status.p95_ms ?? NaN));
  setText(parts.inflight.value, count(status.in_flight));
  parts.errors.element.className = `metric ${status.error_rate >= FAILING ? 'tone-bad' : status.error_rate >= 0.05 ? 'tone-warn' : ''}`;
  parts.p95.element.className = `metric ${status.p95_ms > SLOW ? 'tone-warn' : ''}`;
}

function lostBand() {
  const text = h('span', { class: 'band-text' });
  const button = h('button', { class: 'btn btn-small', type: 'button', onclick: reconnectNow, 'data-testid': 'retry-now' }, 'Try now');
  const element = h('div', { class: 'band tone-bad', role: 'alert', hidden: true, 'data-testid': 'connection-band' }, icon('alert'), text, button);
  return {
    element,
    show(lost, reached) {
      element.hidden = !lost || Date.now() - connection.since < 800;
      if (element.hidden) return;
      const left = Math.max(0, Math.ceil((connection.retryAt - Date.now()) / 1000));
      const what = reached === false ? 'The gateway does not answer.' : 'The live connection was lost.';
      const when = left > 0 ? `trying again in ${left} s` : 'trying again';
      // Screen readers don't read the countdown, because it changes every second.
      fill(text, h('strong', null, what), ` This page was last updated at ${clock(new Date(connection.since))}; `, h('span', { 'aria-hidden': 'true' }, `${when}.`));
    },
  };
}
