// Routes the hash of the page's URL to a view: `#/calls/ID`, `#/tools/NAME`, …

import { get } from './api.js';
import { h, fill, empty } from './dom.js';
import { shell, markCurrent } from './shell.js';
import { setTitle } from './title.js';

/**
 * A view's module exports `mount(root, params)`, which draws into `root` and returns a function that unmounts the view.
 * If that function has a property `update(params)`, it is called instead of mounting again when only the part of the
 * hash after the view's name changes.
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
  const next = { view, unmount: null };
  leave();
  current = next;
  const known = Object.hasOwn(VIEWS, view) ? VIEWS[view] : null;
  markCurrent(view);
  setTitle(known?.title ?? 'Not found');
  const name = known ? view : 'missing';
  const root = h('div', { class: `view view-${name}`, 'data-testid': `view-${name}` });
  fill(main, root);
  if (!known) return void fill(root, missing(location.hash));
  try {
    const module = await known.load();
    if (current !== next) return;
    next.unmount = module.mount(root, params);
  } catch (error) {
    console.error(error);
    if (current === next) fill(root, failed(error));
    // Loading a script fails without a reason if the session has ended. A request of the API reports it.
    get('/api/status').catch(() => {});
  }
  if (!first && current === next) main.focus({ preventScroll: true });
}

function leave() {
  try {
    current?.unmount?.();
  } catch (error) {
    console.error(error);
  }
}

function missing(hash) {
  return [h('h1', { class: 'visually-hidden' }, 'Not found'), empty('Page not found', `There is no page ${hash.slice(0, 80)}; the address may be mistyped or outdated.`,
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
