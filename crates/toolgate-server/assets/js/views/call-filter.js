// The bar above the list: search, filters, pause. The filter is part of the URL, so that it can be shared.

import { h, fill, debounce, setAttr } from '../dom.js';
import { get } from '../api.js';
import { count, outcome, outcomes, originLabel, origins } from '../format.js';
import { icon } from '../icons.js';
import { NO_FILTER } from '../store.js';

/** The filter in the query of the hash. */
export function filterOf(query) {
  return Object.fromEntries(Object.keys(NO_FILTER).map((name) => [name, query.get(name) ?? '']));
}

/** The hash of a call, or of the list without one, with this filter. */
export function hashFor(id, filter) {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''));
  const text = query.toString();
  return `#/calls${id ? `/${encodeURIComponent(id)}` : ''}${text ? `?${text}` : ''}`;
}

/** The bar. Calls `onFilter(filter)` on changes and `onPause()` for the button. */
export function toolbar({ onFilter, onPause }) {
  const search = h('input', { class: 'input', type: 'search', placeholder: 'Search calls', 'aria-label': 'Search calls', autocomplete: 'off', spellcheck: 'false', 'data-testid': 'call-search' });
  const selects = {
    outcome: select('outcome', 'Outcome', [['', 'Outcome'], ['failed', 'Failed'], ...outcomes.map((word) => [word, outcome(word).text])]),
    server: select('server', 'Server', [['', 'Server']]),
    caller: select('caller', 'Asked by', [['', 'Asked by']]),
    origin: select('origin', 'Through', [['', 'Through'], ...origins.map((word) => [word, originLabel(word).short])]),
  };
  const chip = h('span', { class: 'row' });
  const pause = h('button', { class: 'btn', type: 'button', 'aria-pressed': 'false', 'data-testid': 'call-pause', onclick: onPause });
  const total = h('span', { class: 'calls-count', 'data-testid': 'call-count' });
  const element = h('div', { class: 'calls-bar', role: 'search', 'aria-label': 'Filter calls' },
    h('div', { class: 'calls-search' }, icon('search'), search, h('kbd', { 'aria-hidden': 'true' }, '/')),
    Object.values(selects), chip, pause, total);
  const bar = new Toolbar({ element, search, selects, chip, pause, count: total, onFilter });
  search.addEventListener('input', debounce(() => bar.changed(), 180));
  for (const each of Object.values(selects)) each.addEventListener('change', () => bar.changed());
  get('/api/servers').then((servers) => addServers(selects.server, servers, bar.filter.server), () => {});
  return bar;
}

function select(name, label, entries) {
  return h('select', { class: `select filter-${name}`, 'aria-label': label, 'data-testid': `call-filter-${name}` }, entries.map(([value, text]) => option(value, text)));
}

function option(value, text) {
  return h('option', { value }, text);
}

function addServers(element, servers, chosen) {
  for (const { name } of servers) addOption(element, name);
  element.value = chosen;
}

function addOption(element, value) {
  if (![...element.options].some((each) => each.value === value)) element.append(option(value, value));
}

class Toolbar {
  constructor(parts) {
    Object.assign(this, parts);
    this.filter = { ...NO_FILTER };
    this.setPaused(false, 0);
  }

  /** Offers these callers in the filter. */
  addCallers(names) {
    if (this.callers === names.size) return;
    this.callers = names.size;
    for (const name of names) addOption(this.selects.caller, name);
    this.showCallers();
  }

  /** Hides the choice of callers if no caller has a name. */
  showCallers() {
    const { caller } = this.selects;
    caller.hidden = caller.options.length < 2;
  }

  /** Shows a filter without calling `onFilter`. */
  show(filter) {
    this.filter = { ...filter };
    if (this.search !== document.activeElement) this.search.value = filter.search;
    for (const [name, element] of Object.entries(this.selects)) {
      const value = filter[name];
      if (value) addOption(element, value);
      element.value = value;
    }
    this.showCallers();
    fill(this.chip, filter.tool && h('button', { class: 'btn chip', type: 'button', 'aria-label': `Stop showing only ${filter.tool}`, 'data-testid': 'call-filter-tool', onclick: () => this.set({ tool: '' }) },
      h('span', { class: 'mono' }, filter.tool), icon('close')));
  }

  changed() {
    const selected = Object.fromEntries(Object.entries(this.selects).map(([name, element]) => [name, element.value]));
    this.set({ search: this.search.value.trim(), ...selected });
  }

  set(part) {
    this.show({ ...this.filter, ...part });
    this.onFilter(this.filter);
  }

  clearSearch() {
    this.search.value = '';
    this.changed();
  }

  clear() {
    this.search.value = '';
    this.set({ ...NO_FILTER });
    this.search.focus();
  }

  setPaused(paused, waiting) {
    const text = paused ? (waiting > 0 ? `Resume (${count(waiting)} new)` : 'Resume') : 'Pause';
    if (this.pauseText === text) return;
    this.pauseText = text;
    setAttr(this.pause, 'aria-pressed', String(paused));
    fill(this.pause, icon(paused ? 'play' : 'pause'), text);
  }
}
