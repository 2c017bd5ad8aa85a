// The statistics of one tool: numbers, plots of the last half hour, kinds of failure, the last calls.

import { events, get } from '../api.js';
import { empty, fill, h, perFrame } from '../dom.js';
import { ago, brief, count, dateTime, duration, outcome, percent, time, originLabel } from '../format.js';
import { histogramPlot, latencyPlot, ratePlot } from '../plot.js';
import { command } from '../toast.js';
import { toolgateCall } from '../commands.js';
import { sample } from '../openapi/document.js';
import { errorClasses, recent, toolHref } from './stats.js';

const LAST = 20;
const REFRESH_MS = 10_000;
const SOONEST_MS = 2000;

export function mountOverview(root, tool) {
  const plots = { rate: ratePlot(), latency: latencyPlot(), histogram: histogramPlot() };
  const view = {
    tiles: h('dl', { class: 'tiles', 'data-testid': 'tool-tiles' }),
    errors: h('div', { 'data-testid': 'tool-errors' }),
    calls: h('div', { 'data-testid': 'tool-calls' }),
    none: h('div'),
  };
  const measured = h('div', { class: 'stack', hidden: true },
    view.tiles,
    h('div', { class: 'plots' },
      h('div', { class: 'card' }, plots.rate.element), h('div', { class: 'card' }, plots.latency.element),
      h('div', { class: 'card' }, plots.histogram.element),
      h('section', { class: 'card' }, h('div', { class: 'plot-title' }, h('h2', { class: 'plot-heading' }, 'Kinds of failure'), h('span', { class: 'plot-note' }, 'since start')), view.errors)),
    h('section', { class: 'last-calls' }, h('div', { class: 'section-head' }, h('h2', null, 'Last calls'),
      h('a', { href: `#/calls?tool=${encodeURIComponent(tool.name)}` }, 'All of them')), view.calls));
  fill(root, view.none, measured);

  const state = { stats: null, step: 10, calls: [], gone: false };
  const draw = perFrame(() => {
    if (!state.gone) show(tool, state, view, plots, measured);
  });
  const load = async () => {
    const name = encodeURIComponent(tool.name);
    const [stats, calls] = await Promise.all([
      get(`/api/stats?tool=${name}`).catch(() => null), get(`/api/calls?tool=${name}&limit=${LAST}`).catch(() => null)]);
    if (stats) Object.assign(state, { stats: stats.tools.find((one) => one.tool === tool.name) ?? null, step: stats.step_s });
    if (calls) state.calls = calls;
    draw();
  };
  const stop = keepFresh(tool.name, load);
  return () => {
    state.gone = true;
    stop();
    for (const plot of Object.values(plots)) plot.destroy();
  };
}

/** Loads now, shortly after each call of this tool, and at intervals, because time passes without calls too. */
function keepFresh(name, load) {
  let soon = 0;
  let last = 0;
  const now = () => {
    clearTimeout(soon);
    soon = 0;
    last = Date.now();
    if (!document.hidden) load();
  };
  const onCall = (call) => {
    if (call.tool === name && !soon) soon = setTimeout(now, Math.max(150, last + SOONEST_MS - Date.now()));
  };
  const unsubscribe = events(['call'], { call: onCall, open: (again) => again && now() });
  const timer = setInterval(now, REFRESH_MS);
  document.addEventListener('visibilitychange', now);
  last = Date.now();
  load();
  return () => {
    unsubscribe();
    clearInterval(timer);
    clearTimeout(soon);
    document.removeEventListener('visibilitychange', now);
  };
}

function show(tool, state, view, plots, measured) {
  const isQuiet = !state.stats?.calls && state.calls.length === 0;
  measured.hidden = isQuiet;
  fill(view.none, isQuiet && neverCalled(tool));
  if (isQuiet) return;
  fill(view.tiles, tiles(state.stats, state.step));
  fill(view.errors, failures(state.stats));
  fill(view.calls, state.calls.length ? callsTable(tool, state.calls) : h('p', { class: 'muted' }, 'No calls are recorded.'));
  plots.rate.update(state.stats?.series ?? []);
  plots.latency.update(state.stats?.series ?? []);
  if (state.stats) plots.histogram.update(state.stats);
}

function neverCalled(tool) {
  return empty('Not called yet', 'Statistics appear here after the first call. Try the tool from this page, or from a terminal:',
    command(toolgateCall(tool.name, sample(tool.parameters ?? {}, tool.parameters))),
    h('p', null, h('a', { class: 'btn btn-primary', href: toolHref(tool.name, 'try') }, 'Try it')));
}

function tiles(stats, step) {
  const half = recent(stats, step, 30);
  const five = recent(stats, step, 5);
  const tile = (label, value, note, tone) => h('div', { class: `tile ${tone ?? ''}` }, h('dt', null, label), h('dd', null, value, note && h('small', null, note)));
  return [
    tile('Calls', count(stats?.calls), 'since start'),
    tile('Per minute', five.perMinute ? five.perMinute.toFixed(five.perMinute < 10 ? 1 : 0) : '0', 'last 5 min'),
    tile('Errors', percent(half.share), half.failures ? `${count(half.failures)} in 30 min` : 'last 30 min', half.failures ? 'tone-bad' : ''),
    tile('p50', duration(stats?.p50_ms), 'last 30 min'),
    tile('p95', duration(stats?.p95_ms), 'last 30 min'),
    tile('p99', duration(stats?.p99_ms), 'last 30 min'),
    tile('Slowest', duration(stats?.max_ms), 'since start'),
  ];
}

function failures(stats) {
  const classes = errorClasses(stats);
  if (classes.length === 0) return h('p', { class: 'muted no-failures' }, 'None.');
  const max = classes[0].count;
  return h('ul', { class: 'classes' }, classes.map(({ kind, count: times, share }) => {
    const { text, tone } = outcome(kind);
    return h('li', { class: `tone-${tone}` },
      h('a', { href: `#/calls?tool=${encodeURIComponent(stats.tool)}&outcome=${encodeURIComponent(kind)}` }, text),
      h('span', { class: 'class-bar', 'aria-hidden': 'true' }, h('i', { style: { width: `${(times / max) * 100}%` } })),
      h('span', { class: 'num' }, count(times)), h('span', { class: 'num muted' }, percent(share)));
  }));
}

function callsTable(tool, calls) {
  const head = ['Time', 'Outcome', 'Took', 'Asked by', 'Arguments', ''];
  return h('div', { class: 'table-wrap' }, h('table', { class: 'table last-table' },
    h('caption', { class: 'visually-hidden' }, `Last calls of ${tool.name}`),
    h('thead', null, h('tr', null, head.map((name) => h('th', { scope: 'col', class: name === 'Took' ? 'num' : '' }, name || h('span', { class: 'visually-hidden' }, 'Again'))))),
    h('tbody', null, calls.map((call) => callRow(tool, call)))));
}

function callRow(tool, call) {
  const { text, tone } = outcome(call.outcome);
  const again = `${toolHref(tool.name, 'try')}&from=${encodeURIComponent(call.id)}`;
  return h('tr', { 'data-testid': 'tool-call' },
    h('td', null, h('a', { class: 'mono', href: `#/calls/${encodeURIComponent(call.id)}`, title: `${dateTime(call.started_at)}, ${ago(call.started_at)}` }, time(call.started_at))),
    h('td', null, h('span', { class: `badge tone-${tone}`, title: call.error ?? '' }, text)),
    h('td', { class: 'num' }, duration(call.duration_ms)),
    h('td', { class: 'muted' }, call.caller ?? originLabel(call.origin).short),
    h('td', { class: 'last-args' }, h('code', { class: 'truncate' }, brief(call.arguments, 200))),
    h('td', { class: 'num' }, h('a', { class: 'btn btn-small', href: again, 'aria-label': `Try again with the arguments of ${time(call.started_at)}` }, 'Try again')));
}
