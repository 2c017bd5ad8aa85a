// The rights of the signed-in caller. Buttons for actions that the gateway would refuse aren't shown.

import { onStatus } from './strip.js';

let rights = {};
const watchers = new Set();

onStatus((status) => {
  if (JSON.stringify(status.rights ?? {}) === JSON.stringify(rights)) return;
  rights = status.rights ?? {};
  for (const watcher of watchers) watcher();
});

/** Whether the caller has a right, which is a key of `rights` in `/api/status`. True until the status is known. */
export function may(right) {
  return rights[right] !== false;
}

/** Calls `watcher()` now and whenever rights change; returns the function that ends it. */
export function onRights(watcher) {
  watchers.add(watcher);
  watcher();
  return () => watchers.delete(watcher);
}
