// Shows the Markdown of a model's answer. All elements are created here; nothing in the text is used as markup.

import { h } from '../dom.js';
import { visible } from '../text.js';
import { copyText } from '../toast.js';
import { MAX_LENGTH, parse } from './blocks.js';

const drawn = new WeakMap();

/** Shows `text` in `element`. Unchanged blocks stay, so that a growing text keeps its selection and focus. */
export function showMarkdown(element, text) {
  const blocks = text.length > MAX_LENGTH ? [{ kind: 'plain', text, key: text }] : parse(text);
  const before = drawn.get(element) ?? [];
  const keys = blocks.map(({ key }) => key);
  let same = 0;
  while (same < keys.length && keys[same] === before[same]) same += 1;
  while (element.childNodes.length > same) element.lastChild.remove();
  element.append(...blocks.slice(same).map(draw));
  drawn.set(element, keys);
}

function draw(block) {
  switch (block.kind) {
    case 'heading':
      // Rank 1 belongs to the heading of the page.
      return h(`h${Math.min(6, block.rank + 1)}`, { class: `md-heading md-h${block.level}` }, nodes(block.children));
    case 'code':
      return code(block);
    case 'rule':
      return h('hr');
    case 'quote':
      return h('blockquote', null, block.blocks.map(draw));
    case 'list':
      return h(block.ordered ? 'ol' : 'ul', { start: block.ordered && block.start !== 1 && block.start }, block.items.map((blocks) => h('li', null, item(blocks, block.tight))));
    case 'table':
      return table(block);
    case 'plain':
      return h('p', { class: 'md-plain' }, block.text);
    default:
      return h('p', null, nodes(block.children));
  }
}

/** The content of an item, without a paragraph if the list is tight. */
function item(blocks, tight) {
  return blocks.map((block) => (tight && block.kind === 'paragraph' ? nodes(block.children) : draw(block)));
}

function nodes(children) {
  return children.map((child) => {
    if (typeof child === 'string') return child;
    if (child.tag === 'code') return h('code', null, child.children.map(visible));
    if (child.tag !== 'a') return h(child.tag, null, nodes(child.children));
    return h('a', { href: child.href, title: visible(child.href), target: '_blank', rel: 'noopener noreferrer' }, nodes(child.children));
  });
}

function code({ text, language }) {
  const shown = visible(text);
  return h('div', { class: 'md-code' },
    h('div', { class: 'md-code-head' }, h('span', { class: 'muted small grow' }, language),
      h('button', { class: 'btn-plain', type: 'button', onclick: () => copyText(shown, 'Code copied') }, 'Copy')),
    h('pre', { class: 'code', tabindex: '0', 'aria-label': language ? `Code, ${language}` : 'Code', role: 'group' }, shown));
}

function table({ align, head, rows }) {
  const side = (column) => (align[column] ? `md-${align[column]}` : null);
  // An empty heading would only confuse screen readers.
  const headings = head.map((cell, column) => h(cell.length > 0 ? 'th' : 'td', { scope: cell.length > 0 && 'col', class: side(column) }, nodes(cell)));
  return h('div', { class: 'table-wrap', tabindex: '0', role: 'group', 'aria-label': 'Table' }, h('table', { class: 'table' },
    h('thead', null, h('tr', null, headings)),
    h('tbody', null, rows.map((row) => h('tr', null, row.map((cell, column) => h('td', { class: side(column) }, nodes(cell))))))));
}
