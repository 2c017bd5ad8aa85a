// What a server says about itself, and its tools.

import { fill, h } from '../dom.js';
import { showMarkdown } from '../markdown/view.js';
import { visible } from '../text.js';
import { toolHref } from '../tools/stats.js';

export function mountOverview(root, { server, tools, resources, templates, prompts }) {
  const text = h('div', { class: 'answer-text server-instructions', tabindex: '0', role: 'group', 'aria-label': 'Instructions', 'data-testid': 'server-instructions' });
  if (server.instructions) showMarkdown(text, visible(server.instructions));
  fill(root,
    server.error && h('p', { class: 'server-error' }, server.error),
    h('section', { class: 'card' }, h('h2', null, 'Instructions'),
      server.instructions ? [h('p', { class: 'muted small' }, 'What the server tells models about its use.'), text] : h('p', { class: 'muted' }, 'The server gives none.')),
    tools.length > 0 && h('section', { class: 'card' }, h('h2', null, 'Tools ', h('span', { class: 'muted' }, `(${tools.length})`)),
      h('ul', { class: 'server-tools' }, tools.map(({ name, description }) => h('li', null, h('a', { class: 'mono', href: toolHref(name), title: (description ?? '').slice(0, 300) }, name))))),
    resources.length + templates.length + prompts.length === 0 && tools.length === 0 && h('p', { class: 'muted' }, nothing(server)));
}

function nothing({ state }) {
  return state === 'connected' ? 'This server offers no tools, resources or prompts.' : 'What it offers is shown here once it is connected.';
}
