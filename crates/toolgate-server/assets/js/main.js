// Which view is shown. The address's hash says it: `#/calls/ID`, `#/tools/NAME`, …

import { get } from './api.js';
import { h, fill, empty } from './dom.js';
import { shell, markCurrent } from './shell.js';
import { setTitle } from './title.js';

/**
 * A view's module exports `mount(root, params)`, which draws into `root` and returns a function that undoes all of it.
 * If that function has a property `update(params)` it is called, instead of mounting again, when only the part after
 * the view's name changes.
 */
const VIEWS = {
  calls: { title: 'Calls', load: () => import('./views/calls.js') },
  servers: { title: 'Servers', load: () => import('./views/servers.js') },
  tools: { title: 'Tools', load: () => import('./views/tools.js') },
  chat: { title: 'Chat', load: () => import('./views/chat.js') },
  voice: { title: 'Voice', load: () => import('./views/voice.js') },
  api: { title: 'API', load: () => import('./views/api.js') },
};

const main = document.getElementById('main');
let current = null;

/** `#/tools/a%2Fb?tab=try` → `{ view: 'tools', params: { id: 'a/b', query: URLSearchParams } }`. */
export function parseHash(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const slash = path.indexOf('/');
  const view = slash < 0 ? path : path.slice(0, slash);
  const rest = slash < 0 ? '' : path.slice(slash + 1);
  return { view, params: { id: rest ? decoded(rest) : null, query: new URLSearchParams(query) } };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function route() {
  const { view, params } = parseHash(location.hash);
  if (view === '') return location.replace('#/calls');
  if (current?.view === view && current.unmount?.update) return current.unmount.update(params);
  const first = current === null;
  const mine = { view, unmount: null };
  leave();
  current = mine;
  const known = Object.hasOwn(VIEWS, view) ? VIEWS[view] : null;
  markCurrent(view);
  setTitle(known?.title ?? 'Not found');
  const name = known ? view : 'missing';
  const root = h('div', { class: `view view-${name}`, 'data-testid': `view-${name}` });
  fill(main, root);
  if (!known) return void fill(root, missing(location.hash));
  try {
    const module = await known.load();
    if (current !== mine) return;
    mine.unmount = module.mount(root, params);
  } catch (error) {
    console.error(error);
    if (current === mine) fill(root, failed(error));
    // A script is refused without a word if the session has ended; any request brings out whether it has.
    get('/api/status').catch(() => {});
  }
  if (!first && current === mine) main.focus({ preventScroll: true });
}

function leave() {
  try {
    current?.unmount?.();
  } catch (error) {
    console.error(error);
  }
}

function missing(hash) {
  return [h('h1', { class: 'visually-hidden' }, 'Not found'), empty('Page not found', `Nothing is at ${hash.slice(0, 80)}; the address may be mistyped or out of date.`,
    h('p', null, h('a', { class: 'btn', href: '#/calls' }, 'Show the calls')))];
}

function failed(error) {
  const again = h('button', { class: 'btn', type: 'button', onclick: () => location.reload() }, 'Reload the page');
  return empty('This view could not be shown', String(error.message ?? error), h('p', null, again));
}

document.getElementById('skip-link').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener('hashchange', route);
shell();
route();
