// The messages of the list of calls: when it is empty, and at its end.

import { h, fill, empty } from '../dom.js';
import { address } from '../api.js';
import { onStatus } from '../strip.js';
import { command } from '../toast.js';
import { asCurl } from './call-actions.js';

export function emptyList(store, clear) {
  if (store.page.error?.status === 403) return empty('Sign in to see the calls', 'Only the operator may see them.');
  if (store.page.error) {
    const again = h('button', { class: 'btn', type: 'button', onclick: () => store.older() }, 'Try again');
    return empty('The calls could not be fetched', store.page.error.detail, h('p', null, again));
  }
  if (store.filtered) {
    const button = h('button', { class: 'btn', type: 'button', onclick: clear, 'data-testid': 'clear-filter' }, 'Clear the filter');
    return empty('No call matches', 'Calls that match show up here as they happen.', h('p', null, button));
  }
  return empty('No calls yet', 'Every call through this gateway appears here as soon as it starts. Make the first one:',
    command(asCurl({ tool: 'math_eval', arguments: { expression: '2 + 2' } })),
    command(`claude mcp add --transport http toolgate ${address('/mcp')}`),
    h('p', null, 'or ', h('a', { href: '#/tools' }, 'try a tool here'), ' or ', h('a', { href: '#/chat' }, 'ask a model'), '.'));
}

let journal = 'ok';
onStatus((status) => {
  journal = status.journal?.state ?? 'ok';
});

/** The line below the list; `show(total)` updates it. */
export function endOfList(store) {
  const element = h('div', { class: 'calls-end', hidden: true, 'data-testid': 'calls-end' });
  const again = h('button', { class: 'btn btn-small', type: 'button', onclick: () => store.older() }, 'Try again');
  let shown = null;
  return {
    element,
    show(total) {
      const text = total === 0 ? '' : words(store);
      if (shown === text) return;
      shown = text;
      element.hidden = text === '';
      fill(element, text, store.page.error && [' ', again]);
    },
  };
}

function words({ page, full }) {
  if (page.error) return `Older calls could not be fetched: ${page.error.detail}`;
  if (page.loading && page.loaded) return 'Fetching older calls…';
  if (full && !page.complete) return 'Only the newest calls are listed; search to find older ones.';
  return journal === 'off' && page.complete ? 'The journal is off: only the newest calls are kept, and only while the gateway runs.' : '';
}
