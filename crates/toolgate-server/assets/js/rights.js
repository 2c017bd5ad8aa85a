// What whoever looks at this page may do besides calling tools. A token with a list of tools may do little of it, and is not
// shown buttons that would only be refused.

import { onStatus } from './strip.js';

let rights = {};
const watchers = new Set();

onStatus((status) => {
  if (JSON.stringify(status.rights ?? {}) === JSON.stringify(rights)) return;
  rights = status.rights ?? {};
  for (const watcher of watchers) watcher();
});

/** `right` is a key of `rights` in `/api/status`. Until the gateway has said otherwise, everything may be done. */
export function may(right) {
  return rights[right] !== false;
}

/** Calls `watcher()` now and whenever rights change; returns the function that ends it. */
export function onRights(watcher) {
  watchers.add(watcher);
  watcher();
  return () => watchers.delete(watcher);
}
