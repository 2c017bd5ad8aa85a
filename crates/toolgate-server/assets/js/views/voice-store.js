// The loaded voice turns, newest first: fetched page by page, and polled for new ones.

import { get } from '../api.js';

const PAGE = 50;
/** Maximum number of turns kept in the page. */
const MAX_TURNS = 1000;

export class TurnStore {
  /** Calls `onChange(fresh)` after every change, with the turns that are new since the first page. */
  constructor(onChange) {
    this.onChange = onChange;
    this.turns = [];
    this.complete = false;
    this.loaded = false;
    this.error = null;
    this.request = null;
  }

  /** Whether older turns can be fetched. */
  get hasMore() {
    return this.loaded && !this.complete && this.turns.length < MAX_TURNS;
  }

  /** Fetches the newest page at first, then the next older one. */
  older() {
    return this.oneAtATime(async () => {
      const last = this.turns.at(-1);
      const page = await get(`/api/turns?${new URLSearchParams({ limit: PAGE, ...(last && { before: last.id }) })}`);
      this.turns = merged(this.turns, page);
      this.complete = page.length < PAGE;
      this.loaded = true;
      this.error = null;
      this.onChange([]);
    });
  }

  /** Fetches new turns. If there is more than a page of them, the list starts over with that page. */
  newer() {
    if (!this.loaded) return this.older();
    return this.oneAtATime(async () => {
      const newest = this.turns[0];
      const page = await get(`/api/turns?${new URLSearchParams({ limit: PAGE, ...(newest && { after: newest.id }) })}`);
      const known = new Set(this.turns.map(({ id }) => id));
      const fresh = page.filter(({ id }) => !known.has(id));
      if (fresh.length === 0 && !this.error) return;
      this.error = null;
      const again = page.length === PAGE;
      this.turns = (again ? page : merged(page, this.turns)).slice(0, MAX_TURNS);
      this.complete = this.complete && !again && this.turns.length < MAX_TURNS;
      this.onChange(fresh);
    });
  }

  /** Runs one request at a time, so that a late response never replaces a newer one. Errors are reported, not thrown. */
  oneAtATime(work) {
    this.request ??= work().catch((error) => {
      this.error = error;
      this.onChange([]);
    }).finally(() => {
      this.request = null;
    });
    return this.request;
  }
}

function merged(newer, older) {
  const known = new Set(newer.map(({ id }) => id));
  return [...newer, ...older.filter(({ id }) => !known.has(id))];
}
