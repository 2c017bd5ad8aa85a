// What the signed-in caller may do besides calling tools. Buttons that would only lead to a
// rejection aren't shown.

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
