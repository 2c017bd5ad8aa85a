// What the list says when there is nothing in it.

import { h, empty } from '../dom.js';
import { address } from '../api.js';
import { command } from '../toast.js';
import { asCurl } from './call-actions.js';

export function emptyList(store, clear) {
  if (store.error && !store.filtered) {
    const again = h('button', { class: 'btn', type: 'button', onclick: () => store.restart() }, 'Try again');
    return empty('The calls could not be fetched', store.error.detail, h('p', null, again));
  }
  if (store.filtered) {
    const button = h('button', { class: 'btn', type: 'button', onclick: clear, 'data-testid': 'clear-filter' }, 'Clear the filter');
    return empty('No call matches', 'Calls that match show up here as they happen.', h('p', null, button));
  }
  return empty('No calls yet', 'Every call that passes this gateway shows up here the moment it begins. Make the first one:',
    command(asCurl({ tool: 'math_eval', arguments: { expression: '2 + 2' } })),
    command(`claude mcp add --transport http toolgate ${address('/mcp')}`),
    h('p', null, 'or ', h('a', { href: '#/tools' }, 'try a tool here'), ' or ', h('a', { href: '#/chat' }, 'ask a model'), '.'));
}
