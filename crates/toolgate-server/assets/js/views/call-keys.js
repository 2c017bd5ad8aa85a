// The keyboard shortcuts of the list of calls. They work everywhere on the page, except while typing.

import { registerKeys } from '../keys.js';

/** Registers the shortcuts for `view` (see calls.js). Returns the function that unregisters them. */
export function callKeys(view) {
  /** In the drawer, arrow keys scroll and Enter activates a button; in the bar they belong to its fields. */
  const inList = (event) => event.target === view.list || event.target === document.body || event.target.id === 'main';
  const move = (by) => () => view.step(typeof by === 'function' ? by() : by);
  const listOnly = (run) => (event) => (inList(event) ? run(event) : false);
  const page = () => view.virtual.page();
  return registerKeys('Calls', [
    { keys: ['j'], label: 'Next call (also ↓ in the list)', run: move(1) },
    { keys: ['k'], label: 'Previous call (also ↑ in the list)', run: move(-1) },
    { keys: ['ArrowDown'], run: listOnly(move(1)) },
    { keys: ['ArrowUp'], run: listOnly(move(-1)) },
    { keys: ['PageDown'], run: listOnly(move(page)) },
    { keys: ['PageUp'], run: listOnly(move(() => -page())) },
    { keys: ['Home'], run: listOnly(move(-Infinity)) },
    { keys: ['End'], run: listOnly(move(Infinity)) },
    { keys: ['Enter'], label: 'Open the call', run: listOnly(() => view.openActive()) },
    { keys: ['Escape'], label: 'Close the call, or leave the search', inFields: true, run: (event) => escape(view, event) },
    { keys: ['/'], label: 'Search', run: () => view.tools.search.focus() },
    { keys: ['p'], label: 'Pause or resume', run: () => view.togglePause() },
  ]);
}

function escape(view, event) {
  if (view.tools.element.contains(event.target) && event.target !== view.tools.search) return false;
  if (event.target === view.tools.search) {
    if (view.tools.search.value) view.tools.clearSearch();
    else view.list.focus();
    return undefined;
  }
  if (!view.opened) return false;
  view.closeDrawer();
  return undefined;
}
