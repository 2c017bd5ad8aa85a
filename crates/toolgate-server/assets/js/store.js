// The calls this page knows of, oldest first, and which of them the filter lets through. The gateway is asked for what
// lies before and for what was missed; the live feed brings the rest.

import { get, events } from './api.js';

/** How many are kept; older ones are let go (they are in the journal still). */
const MOST = 20_000;
const FIRST_PAGE = 200;
const PAGE = 1000;
const MISSED_PAGES = 5;

/** What a filter may say; empty means anything. */
export const NO_FILTER = { search: '', outcome: '', origin: '', server: '', tool: '' };

export class CallStore {
  constructor(onChange) {
    this.onChange = onChange;
    this.records = [];
    this.byId = new Map();
    this.running = new Set();
    this.filter = { ...NO_FILTER };
    this.clear();
    this.loaded = false;
    this.error = null;
  }

  clear() {
    this.found = new Set();
    this.complete = false;
    this.loading = false;
    this.asked = (this.asked ?? 0) + 1;
  }

  /** Listens to the feed and fetches the newest calls. Listening comes first, so that nothing falls in between. */
  start() {
    this.stop = events(['call', 'started'], {
      call: (call) => this.take(call, true),
      started: (call) => this.take(call, true),
      open: (again) => again && this.catchUp(),
      lagged: () => this.catchUp(),
    });
    return this.older();
  }

  /** Puts one call in its place, or brings the known one up to date. */
  take(call, live = false) {
    if (!call?.id) return;
    const known = this.byId.get(call.id);
    if (known) {
      if (known.call.outcome !== 'running' && call.outcome === 'running') return;
      known.call = call;
      known.text = null;
    } else {
      this.insert({ call, at: Date.parse(call.started_at) || 0, seen: live ? performance.now() : null, text: null });
    }
    if (call.outcome === 'running') this.running.add(call.id);
    else this.running.delete(call.id);
    this.onChange(live && call.outcome !== 'running' ? call : null);
  }

  insert(record) {
    this.byId.set(record.call.id, record);
    const newest = this.records[this.records.length - 1];
    const at = newest && after(newest, record) ? place(this.records, record) : this.records.length;
    if (at === this.records.length) this.records.push(record);
    else this.records.splice(at, 0, record);
    if (this.records.length > MOST + PAGE) this.trim();
  }

  trim() {
    for (const record of this.records.splice(0, this.records.length - MOST)) {
      this.byId.delete(record.call.id);
      this.running.delete(record.call.id);
    }
    this.complete = true;
  }

  get full() {
    return this.records.length >= MOST;
  }

  get filtered() {
    return Object.values(this.filter).some((value) => value !== '');
  }

  /** Changes the filter and asks the gateway for what it lets through. */
  setFilter(filter) {
    this.filter = { ...NO_FILTER, ...filter };
    this.clear();
    this.onChange(null);
    return this.older();
  }

  /** The records the filter lets through, oldest first. */
  shown() {
    if (!this.filtered) return this.records;
    const words = this.filter.search.toLowerCase();
    return this.records.filter((record) => this.found.has(record.call.id) || matches(record, this.filter, words));
  }

  /** Fetches the next page of older calls. */
  async older() {
    if (this.loading || this.complete || (this.full && !this.filtered)) return;
    const mine = this.asked;
    this.loading = true;
    this.onChange(null);
    try {
      const limit = this.loaded && this.oldest ? PAGE : FIRST_PAGE;
      const page = await get(`/api/calls?${this.query({ limit, before: this.oldest })}`);
      if (mine !== this.asked) return;
      this.takePage(page);
      this.complete = page.length < limit;
      this.error = null;
    } catch (error) {
      if (mine === this.asked) this.error = error;
    } finally {
      if (mine === this.asked) {
        this.loading = false;
        this.loaded = true;
        this.onChange(null);
      }
    }
  }

  /** The oldest call the gateway gave for this filter, where the next page begins. */
  get oldest() {
    return this.last?.asked === this.asked ? this.last.id : null;
  }

  takePage(page) {
    for (let i = page.length - 1; i >= 0; i -= 1) {
      this.take(page[i]);
      if (this.filtered) this.found.add(page[i].id);
    }
    if (page.length > 0) this.last = { asked: this.asked, id: page[page.length - 1].id };
  }

  query({ limit, before, since }) {
    const query = new URLSearchParams({ limit });
    for (const [name, value] of Object.entries(this.filter)) if (value) query.set(name, value);
    if (before) query.set('before', before);
    if (since) query.set('since', since);
    return query;
  }

  /** After a gap: everything since the newest call known, and the end of those that were running. */
  async catchUp() {
    const marks = [...this.running].map((id) => this.byId.get(id).at);
    if (this.records.length > 0) marks.push(this.records[this.records.length - 1].at);
    if (marks.length === 0) return this.older();
    const since = new Date(Math.min(...marks)).toISOString();
    try {
      let before = null;
      for (let n = 0; n < MISSED_PAGES; n += 1) {
        const query = new URLSearchParams({ limit: PAGE, since, ...(before && { before }) });
        const page = await get(`/api/calls?${query}`);
        for (const call of page.reverse()) this.take(call);
        if (page.length < PAGE) return;
        before = page[0].id;
      }
      this.restart();
    } catch (error) {
      this.error = error;
      this.onChange(null);
    }
  }

  /** Too much was missed to fill the gap: begins again, so that the list never hides a hole. */
  restart() {
    this.records.length = 0;
    this.byId.clear();
    this.running.clear();
    this.clear();
    return this.older();
  }
}

/** True if `a` began after `b`; the id decides between calls of the same millisecond. */
function after(a, b) {
  return a.at > b.at || (a.at === b.at && a.call.id > b.call.id);
}

function place(records, record) {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (after(records[middle], record)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function matches(record, filter, words) {
  const { call } = record;
  if (filter.tool && call.tool !== filter.tool) return false;
  if (filter.server && call.server !== filter.server) return false;
  if (filter.origin && call.origin !== filter.origin) return false;
  if (filter.outcome === 'failed' && call.success !== false) return false;
  if (filter.outcome && filter.outcome !== 'failed' && call.outcome !== filter.outcome) return false;
  return words === '' || textOf(record).includes(words);
}

/** What a search looks through, made once per call. */
function textOf(record) {
  const { call } = record;
  record.text ??= [call.tool, call.server, call.origin, call.outcome, call.error, call.id, JSON.stringify(call.arguments ?? null)]
    .join('\n')
    .toLowerCase();
  return record.text;
}
