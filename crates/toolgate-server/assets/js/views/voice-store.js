// The voice turns that are known, newest first: asked for page by page, and for what is new.

import { get } from '../api.js';

const PAGE = 50;
/** More are not kept in the page. */
const MOST = 1000;

export class TurnStore {
  /** `onChange(fresh)` is told of every change, with the turns that are new since the first page. */
  constructor(onChange) {
    this.onChange = onChange;
    this.turns = [];
    this.complete = false;
    this.loaded = false;
    this.error = null;
    this.asking = null;
  }

  /** Whether older turns can be asked for. */
  get hasMore() {
    return this.loaded && !this.complete && this.turns.length < MOST;
  }

  /** The newest page at first, then one older page after the other. */
  older() {
    return this.alone(async () => {
      const last = this.turns.at(-1);
      const page = await get(`/api/turns?${new URLSearchParams({ limit: PAGE, ...(last && { before: last.id }) })}`);
      this.turns = merged(this.turns, page);
      this.complete = page.length < PAGE;
      this.loaded = true;
      this.error = null;
      this.onChange([]);
    });
  }

  /** What is new. Where that is more than a page, the list begins again with it. */
  news() {
    if (!this.loaded) return this.older();
    return this.alone(async () => {
      const newest = this.turns[0];
      const page = await get(`/api/turns?${new URLSearchParams({ limit: PAGE, ...(newest && { after: newest.id }) })}`);
      const known = new Set(this.turns.map(({ id }) => id));
      const fresh = page.filter(({ id }) => !known.has(id));
      if (fresh.length === 0 && !this.error) return;
      this.error = null;
      const again = page.length === PAGE;
      this.turns = (again ? page : merged(page, this.turns)).slice(0, MOST);
      this.complete = this.complete && !again && this.turns.length < MOST;
      this.onChange(fresh);
    });
  }

  /** One question at a time: an answer that comes late must not undo a later one. What fails is told, not thrown. */
  alone(question) {
    this.asking ??= question().catch((error) => {
      this.error = error;
      this.onChange([]);
    }).finally(() => {
      this.asking = null;
    });
    return this.asking;
  }
}

function merged(newer, older) {
  const known = new Set(newer.map(({ id }) => id));
  return [...newer, ...older.filter(({ id }) => !known.has(id))];
}
