// The list of all tools, with their sources and statistics.

import { get, events } from '../api.js';
import { debounce, empty, fill, h, patchList, perFrame, setAttr, setText } from '../dom.js';
import { count, duration, percent, plural } from '../format.js';
import { icon } from '../icons.js';
import { registerKeys } from '../keys.js';
import { sparkline } from '../plot.js';
import { prose } from '../prose.js';
import { command, toastError } from '../toast.js';
import { badgesOf, matches, rowsOf, sorted, sourceLabel, toolHref } from './stats.js';

const COLUMNS = [
  ['name', 'Tool'], ['source', 'Source'], ['calls', 'Calls, 30 min', 'num'], ['rate', 'Per minute', 'num'],
  ['errors', 'Errors', 'num'], ['p95', 'p95', 'num'],
];
const PORTION = 200;
const REFRESH_MS = 5000;
const cellsOf = new WeakMap();

/** The search, source and sorting that were chosen, kept while the page is open. */
const chosen = { query: '', source: '', column: 'calls', reverse: false };

/** `scroll` is the scroll position when the list was left for one of its tools. */
export function mountList(root, scroll = 0) {
  const state = { tools: null, stats: null, limit: PORTION };
  const view = page(() => draw());
  fill(root, view.element);
  const draw = perFrame(() => {
    show(view, state);
    if (scroll && state.tools) scrollTo(0, scroll);
    if (state.tools) scroll = 0;
  });

  const load = async () => {
    try {
      const [tools, stats] = await Promise.all([get('/api/tools'), get('/api/stats').catch(() => null)]);
      Object.assign(state, { tools, stats });
      draw();
    } catch (error) {
      if (state.tools === null) fill(view.body, empty('The tools could not be loaded', error.detail ?? String(error)));
      else toastError(error);
    }
  };
  const refresh = async () => {
    if (document.hidden || state.tools === null) return;
    state.stats = await get('/api/stats').catch(() => state.stats);
    draw();
  };
  const stop = events(['tools'], { tools: debounce(load, 300), open: (again) => again && load() });
  const timer = setInterval(refresh, REFRESH_MS);
  const forgetKeys = registerKeys('Tools', [{ keys: ['/'], label: 'Search tools', run: () => view.search.focus() }]);
  view.more.addEventListener('click', () => {
    state.limit += PORTION;
    draw();
  });
  load();
  return () => {
    clearInterval(timer);
    forgetKeys();
    stop();
  };
}

function page(changed) {
  const search = h('input', {
    class: 'input tools-search', type: 'search', placeholder: 'Search tools', 'aria-label': 'Search tools', 'data-testid': 'tool-search',
    value: chosen.query, autocomplete: 'off', spellcheck: 'false',
    oninput: () => {
      chosen.query = search.value;
      changed();
    },
  });
  const source = h('select', {
    class: 'select', 'aria-label': 'Source', 'data-testid': 'tool-source',
    onchange: () => {
      chosen.source = source.value;
      changed();
    },
  });
  const total = h('p', { class: 'muted tools-total', role: 'status', 'data-testid': 'tool-total' });
  const heads = new Map(COLUMNS.map(([key, label, kind]) => [key, head(key, label, kind, changed)]));
  const rows = h('tbody');
  const table = h('table', { class: 'table tools-table' },
    h('caption', { class: 'visually-hidden' }, 'Tools'), h('thead', null, h('tr', null, [...heads.values()].map(({ cell }) => cell))), rows);
  const wrap = h('div', { class: 'table-wrap tools-wrap' }, table);
  const more = h('button', { class: 'btn tools-more', type: 'button', hidden: true }, 'Show more');
  const none = h('div');
  const body = h('div', null, wrap, more, none);
  const element = h('div', { class: 'page' },
    h('div', { class: 'page-head' }, h('h1', null, 'Tools'), total, h('span', { class: 'grow' }), source, search), body);
  wrap.hidden = true;
  return { element, body, wrap, rows, more, none, total, source, search, heads };
}

function head(key, label, kind, changed) {
  const arrow = h('span', { class: 'sort-arrow', 'aria-hidden': 'true' });
  const button = h('button', {
    class: 'sort', type: 'button', 'data-testid': `tool-sort-${key}`,
    onclick: () => {
      chosen.reverse = chosen.column === key && !chosen.reverse;
      chosen.column = key;
      changed();
    },
  }, label, arrow);
  return { cell: h('th', { scope: 'col', class: `col-${key} ${kind ?? ''}` }, button), arrow };
}

function show(view, state) {
  if (state.tools === null) return;
  showSources(view.source, state.tools);
  const all = rowsOf(state.tools, state.stats);
  const found = all.filter(({ tool }) => matches(tool, chosen.query.trim()) && (chosen.source === '' || tool.source === chosen.source));
  const rows = sorted(found, chosen.column, chosen.reverse);
  setText(view.total, rows.length === all.length ? plural(all.length, 'tool') : `${count(rows.length)} of ${plural(all.length, 'tool')}`);
  for (const [key, { cell, arrow }] of view.heads) showSorting(key, cell, arrow);
  patchList(view.rows, rows.slice(0, state.limit), (row) => row.tool.name, createRow, updateRow);
  view.wrap.hidden = rows.length === 0;
  view.more.hidden = rows.length <= state.limit;
  setText(view.more, `Show ${Math.min(PORTION, rows.length - state.limit)} more`);
  fill(view.none, rows.length === 0 && nothing(all.length));
}

function showSorting(key, cell, arrow) {
  const isText = key === 'name' || key === 'source';
  const isUp = isText !== chosen.reverse;
  setAttr(cell, 'aria-sort', chosen.column === key ? (isUp ? 'ascending' : 'descending') : null);
  setText(arrow, chosen.column === key ? (isUp ? '↑' : '↓') : '');
}

function showSources(select, tools) {
  const sources = [...new Set(tools.map((tool) => tool.source))].sort();
  if (chosen.source && !sources.includes(chosen.source)) chosen.source = '';
  const known = sources.join('\n');
  if (select.dataset.known !== known) {
    select.dataset.known = known;
    fill(select, h('option', { value: '' }, 'All sources'), sources.map((source) => h('option', { value: source }, source)));
  }
  select.value = chosen.source;
}

function nothing(total) {
  if (total > 0) {
    return empty('No tool matches', 'Search covers names, descriptions and sources. Try fewer words.');
  }
  return empty('There are no tools yet', 'Add an MCP server to the configuration; its tools appear here by themselves.', command('toolgate add NAME -- COMMAND'));
}

function createRow({ tool }) {
  const cells = Object.fromEntries(COLUMNS.map(([key, label, kind]) => [key, h('td', { class: `col-${key} ${kind ?? ''}`, 'data-label': label })]));
  const row = h('tr', { 'data-testid': 'tool-row', 'data-tool': tool.name }, Object.values(cells));
  cellsOf.set(row, cells);
  return row;
}

function updateRow(row, { tool, stats, calls, failures, share, rate, p95 }) {
  const cells = cellsOf.get(row);
  const shown = JSON.stringify([tool.title, tool.description, tool.source, tool.annotations, tool.needs_approval]);
  if (row.dataset.shown !== shown) {
    row.dataset.shown = shown;
    fill(cells.name, nameCell(tool));
    fill(cells.source, h('span', { class: 'badge badge-plain truncate' }, sourceLabel(tool)));
  }
  const drawn = stats?.series?.length ? `${stats.series.at(-1).at} ${calls} ${failures}` : '';
  if (row.dataset.drawn !== drawn) {
    row.dataset.drawn = drawn;
    fill(cells.calls, stats?.series?.length ? sparkline(stats.series) : null, h('span', { class: 'spark-total' }, count(calls)));
  }
  setText(cells.rate, calls ? rateText(rate) : '–');
  setText(cells.errors, percent(share));
  cells.errors.classList.toggle('is-bad', failures > 0);
  setText(cells.p95, duration(p95));
}

function rateText(perMinute) {
  return perMinute >= 10 || perMinute === 0 ? count(Math.round(perMinute)) : perMinute.toFixed(1);
}

function nameCell(tool) {
  return [
    h('div', { class: 'tool-line' },
      h('a', { class: 'tool-name mono', href: toolHref(tool.name) }, tool.name),
      h('span', { class: 'tool-badges' }, badgesOf(tool).map(({ text, tone, title }) => h('span', { class: `badge tone-${tone}`, title }, text))),
      h('a', { class: 'btn btn-small tool-try', href: toolHref(tool.name, 'try'), 'aria-label': `Try ${tool.name}` }, icon('play'), 'Try')),
    h('p', { class: 'tool-about' }, prose((tool.description || tool.title || 'No description.').replaceAll('```', '`').slice(0, 400))),
  ];
}
