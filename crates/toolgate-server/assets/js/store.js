// The calls that this page has loaded, oldest first, and those that match the filter. New calls come
// from the live feed; older and missed calls are fetched.

import { get, events, connection } from './api.js';

/** Maximum number of calls kept in the page; older ones stay in the journal. */
const MAX_CALLS = 20_000;
const FIRST_PAGE = 200;
const PAGE = 1000;
const MISSED_PAGES = 5;
/** How often to look for calls of other processes that share the journal; the feed doesn't report them. */
const POLL_INTERVAL = 10_000;
const POLL_OVERLAP = 60_000;
/** After this many live calls since the last poll, one poll is skipped. */
const MAX_CALLS_BEFORE_POLL = 200;
/** Maximum number of names offered in the filter; others can still be given in the address. */
const MAX_CALLERS = 100;

/** The fields of a filter; an empty one matches anything. */
export const NO_FILTER = { search: '', outcome: '', caller: '', origin: '', server: '', tool: '' };

/** How far back calls were fetched with one filter: all calls that started after `at` are loaded. */
const newPage = () => ({ last: null, at: Infinity, complete: false, loading: false, loaded: false, error: null });

export class CallStore {
  /** Calls `onChange(finished)` after every change, with the call if one has just ended. */
  constructor(onChange) {
    this.onChange = onChange;
    this.filter = { ...NO_FILTER };
    this.forget();
  }

  forget() {
    this.records = [];
    this.byId = new Map();
    this.running = new Set();
    /** Names of callers, for the filter. */
    this.callers = new Set();
    this.liveCount = 0;
    /** When the first call of the feed began; no call since then is missing. */
    this.liveFrom = Infinity;
    this.whole = newPage();
    this.useFilter(this.filter);
  }

  /** Subscribes to the feed and then fetches the newest calls, in this order so that none is missed. */
  start() {
    this.stop = events(['call', 'started'], {
      call: (call) => this.take(call, true),
      started: (call) => this.take(call, true),
      open: (again) => again && this.catchUp(),
      lagged: () => this.catchUp(),
    });
    setInterval(() => this.poll(), POLL_INTERVAL);
    return this.older();
  }

  /** Inserts a call, or updates it if it is already loaded. */
  take(call, live = false) {
    if (!call?.id) return;
    if (live) this.liveCount += 1;
    const known = this.byId.get(call.id);
    if (known) {
      if (known.call.outcome !== 'running' && call.outcome === 'running') return;
      known.call = call;
      known.text = null;
    } else {
      this.insert({ call, at: Date.parse(call.started_at) || 0, seen: live ? performance.now() : null, text: null });
    }
    if (call.caller && this.callers.size < MAX_CALLERS) this.callers.add(call.caller);
    if (call.outcome === 'running') this.running.add(call.id);
    else this.running.delete(call.id);
    this.onChange(live && call.outcome !== 'running' ? call : null);
  }

  insert(record) {
    const { records } = this;
    this.byId.set(record.call.id, record);
    if (record.seen !== null) this.liveFrom = Math.min(this.liveFrom, record.at);
    const newest = records[records.length - 1];
    if (newest && after(newest, record)) records.splice(insertionIndex(records, record), 0, record);
    else records.push(record);
    if (records.length > this.maxRecords + PAGE) this.trim();
  }

  /** A search may reach further back than the list. */
  get maxRecords() {
    return this.filtered ? 2 * MAX_CALLS : MAX_CALLS;
  }

  trim() {
    for (const { call } of this.records.splice(0, this.records.length - this.maxRecords)) {
      this.byId.delete(call.id);
      this.running.delete(call.id);
      this.found.delete(call.id);
    }
    const { at, call } = this.records[0];
    this.liveFrom = Math.max(this.liveFrom, at);
    if (this.whole.at < at) Object.assign(this.whole, { at, last: call.id, complete: false });
  }

  get full() {
    return this.records.length >= this.maxRecords;
  }

  get filtered() {
    return Object.values(this.filter).some((value) => value !== '');
  }

  useFilter(filter) {
    this.filter = { ...NO_FILTER, ...filter };
    this.found = new Set();
    this.page = this.filtered ? newPage() : this.whole;
  }

  /** Changes the filter and fetches the calls that match it. */
  setFilter(filter) {
    this.useFilter(filter);
    this.onChange(null);
    return this.page.loaded ? undefined : this.older();
  }

  /**
   * The records that match the filter, oldest first. Calls from before the fetched range are left out even if another
   * search has loaded them, because a list with gaps would look complete.
   */
  shown() {
    const floor = Math.min(reach(this.whole), reach(this.page), this.liveFrom);
    const known = this.records.length === 0 || this.records[0].at >= floor ? this.records : this.records.slice(firstIndexAt(this.records, floor));
    if (!this.filtered) return known;
    const words = this.filter.search.toLowerCase();
    return known.filter((record) => this.found.has(record.call.id) || matches(record, this.filter, words));
  }

  /** Fetches the next page of older calls. */
  async older() {
    const { page } = this;
    if (page.loading || page.complete || (page.loaded && this.full)) return;
    page.loading = true;
    page.error = null;
    this.onChange(null);
    try {
      const limit = page.loaded ? PAGE : FIRST_PAGE;
      const calls = await get(`/api/calls?${this.query({ limit, before: page.last })}`);
      if (page === this.page || page === this.whole) this.takePage(page, calls, limit);
    } catch (error) {
      page.error = error;
    }
    page.loading = false;
    page.loaded = true;
    this.onChange(null);
  }

  takePage(page, calls, limit) {
    for (let i = calls.length - 1; i >= 0; i -= 1) {
      this.take(calls[i]);
      if (page !== this.whole) this.found.add(calls[i].id);
    }
    const last = calls[calls.length - 1];
    if (last) Object.assign(page, { last: last.id, at: Math.min(page.at, Date.parse(last.started_at) || 0) });
    page.complete = calls.length < limit;
  }

  query({ limit, before }) {
    const query = new URLSearchParams({ limit });
    for (const [name, value] of Object.entries(this.filter)) if (value) query.set(name, value);
    if (before) query.set('before', before);
    return query;
  }

  /** Fetches the calls that the feed missed. If it is called while it runs, it fetches once more afterwards. */
  async catchUp() {
    this.mustCatchUp = true;
    if (this.isCatchingUp) return;
    this.isCatchingUp = true;
    while (this.mustCatchUp) {
      this.mustCatchUp = false;
      await this.fetchMissed();
    }
    this.isCatchingUp = false;
  }

  async poll() {
    const busy = this.liveCount > MAX_CALLS_BEFORE_POLL;
    this.liveCount = 0;
    if (busy || document.hidden || connection.state !== 'open' || !this.whole.loaded) return;
    const newest = this.records[this.records.length - 1];
    const since = new Date((newest?.at ?? 0) - POLL_OVERLAP).toISOString();
    const calls = await get(`/api/calls?${new URLSearchParams({ limit: FIRST_PAGE, ...(newest && { since }) })}`).catch(() => []);
    for (const call of calls.toReversed()) this.take(call);
  }

  /** Fetches the calls since the newest loaded one, and those that were still running. */
  async fetchMissed() {
    const marks = [...this.running].map((id) => this.byId.get(id).at);
    if (this.records.length > 0) marks.push(this.records[this.records.length - 1].at);
    if (marks.length === 0) return this.restart();
    const since = new Date(Math.min(...marks)).toISOString();
    try {
      let before = null;
      for (let n = 0; n < MISSED_PAGES; n += 1) {
        const query = new URLSearchParams({ limit: PAGE, since, ...(before && { before }) });
        const calls = await get(`/api/calls?${query}`);
        for (const call of calls.toReversed()) this.take(call);
        if (calls.length < PAGE) return undefined;
        before = calls[calls.length - 1].id;
      }
      return this.restart();
    } catch (error) {
      this.page.error = error;
      this.onChange(null);
      return undefined;
    }
  }

  /** Starts over after a gap that is too large to fill, so that the list never hides one. */
  restart() {
    this.forget();
    return this.older();
  }
}

function reach(page) {
  return page.complete ? -Infinity : page.at;
}

/** True if `a` began after `b`; the id decides between calls of the same millisecond. */
function after(a, b) {
  return a.at > b.at || (a.at === b.at && a.call.id > b.call.id);
}

function insertionIndex(records, record) {
  return search(records, (each) => after(each, record));
}

/** The index of the first record that began at `at` or later. */
function firstIndexAt(records, at) {
  return search(records, (each) => each.at >= at);
}

function search(records, isPast) {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isPast(records[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

function matches(record, filter, words) {
  const { call } = record;
  if (filter.tool && call.tool !== filter.tool) return false;
  if (filter.server && call.server !== filter.server) return false;
  if (filter.origin && call.origin !== filter.origin) return false;
  if (filter.caller && !isCalledBy(call, filter.caller)) return false;
  if (filter.outcome === 'failed' && call.success !== false) return false;
  if (filter.outcome && filter.outcome !== 'failed' && call.outcome !== filter.outcome) return false;
  return words === '' || textOf(record).includes(words);
}

/** Matches the name of the token or, without one, of the command, as the gateway does. */
function isCalledBy({ caller, command }, name) {
  return caller ? caller === name : command === name || command === `toolgate ${name}`;
}

/** The text that is searched, built once per call. */
function textOf(record) {
  const { call } = record;
  record.text ??= [call.tool, call.server, call.origin, call.caller, call.outcome, call.error, call.id, JSON.stringify(call.arguments ?? null)]
    .join('\n')
    .toLowerCase();
  return record.text;
}
