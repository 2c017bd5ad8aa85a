// The live feed. A browser allows only six connections to one host, so all views share one stream of all event kinds.

import { address, parsed } from './api.js';

const KINDS = ['call', 'started', 'server', 'tools', 'approval', 'question', 'status', 'lagged'];
const FIRST_RETRY = 500;
const LAST_RETRY = 8000;
/** The gateway sends the status every two seconds, so after this long without events the connection is dead. */
const SILENCE_TIMEOUT = 12_000;

const listeners = new Map(KINDS.map((kind) => [kind, new Set()]));
const watchers = new Set();

/** The state of the feed: 'connecting', 'open', 'lost' or 'signed-out'. `since` is when it was lost. */
export const connection = { state: 'connecting', since: 0, retryAt: 0, opened: 0 };

let source = null;
let timer = 0;
let retry = FIRST_RETRY;
let lastEventAt = 0;
let watching = false;

/**
 * Subscribes to events: `const stop = events(['call', 'started'], { call(call) {…}, started(call) {…}, open(again) {…},
 * lost() {…}, lagged({ missed }) {…} })`. `open(true)` means that the feed was lost in between: fetch again what may have
 * been missed. Returns the function that ends the subscription.
 */
export function events(kinds, handlers) {
  const entries = [];
  for (const kind of new Set([...kinds, 'lagged'])) {
    if (handlers[kind] && listeners.has(kind)) {
      listeners.get(kind).add(handlers[kind]);
      entries.push([listeners.get(kind), handlers[kind]]);
    }
  }
  const watcher = { open: handlers.open, lost: handlers.lost };
  watchers.add(watcher);
  if (!watching) watch();
  if (!source && !timer) connect();
  else if (connection.state === 'open') queueMicrotask(() => watchers.has(watcher) && watcher.open?.(false));
  return () => {
    watchers.delete(watcher);
    for (const [set, handler] of entries) set.delete(handler);
  };
}

/** Reconnects at once instead of waiting for the next retry. */
export function reconnectNow() {
  retry = FIRST_RETRY;
  connect();
}

function connect() {
  clearTimeout(timer);
  timer = 0;
  source?.close();
  source = new EventSource(address(`/api/events?kinds=${KINDS.slice(0, -1).join(',')}`));
  source.onopen = opened;
  source.onerror = lost;
  for (const kind of KINDS) {
    source.addEventListener(kind, (event) => {
      lastEventAt = performance.now();
      const data = parsed(event.data);
      for (const handler of listeners.get(kind)) guarded(() => handler(data));
    });
  }
}

function opened() {
  lastEventAt = performance.now();
  retry = FIRST_RETRY;
  const again = connection.opened > 0;
  Object.assign(connection, { state: 'open', since: 0, retryAt: 0, opened: connection.opened + 1 });
  for (const watcher of watchers) guarded(() => watcher.open?.(again));
}

function lost() {
  source?.close();
  source = null;
  if (timer || connection.state === 'signed-out') return;
  const since = connection.since || Date.now();
  Object.assign(connection, { state: 'lost', since, retryAt: Date.now() + retry });
  timer = setTimeout(connect, retry);
  retry = Math.min(retry * 2, LAST_RETRY);
  for (const watcher of watchers) guarded(() => watcher.lost?.());
}

/** Stops the feed, because the gateway would reject every retry. */
function signedOut() {
  clearTimeout(timer);
  timer = 0;
  source?.close();
  connection.state = 'signed-out';
}

/** An error in one view must not stop the feed for the others. */
function guarded(work) {
  try {
    work();
  } catch (error) {
    console.error(error);
  }
}

function watch() {
  watching = true;
  setInterval(() => {
    if (connection.state === 'open' && performance.now() - lastEventAt > SILENCE_TIMEOUT) lost();
  }, 2000);
  addEventListener('toolgate:signed-out', signedOut);
  addEventListener('online', reconnectNow);
  addEventListener('pagehide', () => source?.close());
  addEventListener('pageshow', (event) => event.persisted && reconnectNow());
}
