// Shows JSON as a tree that can be folded. A branch is drawn when it is opened, and a long one in portions, so that the page
// stays responsive with a result of eight megabytes.

import { h } from './dom.js';
import { visible } from './text.js';

const PORTION = 100;
const LONG = 600;

/**
 * A tree for `value`; `open` is how many levels are unfolded at first.
 */
export function jsonTree(value, { open = 2 } = {}) {
  return h('div', { class: 'json', tabindex: '0', role: 'group', 'aria-label': 'JSON' }, node(null, value, open));
}

function node(name, value, open) {
  if (value === null || typeof value !== 'object') return h('div', { class: 'json-line' }, label(name), leaf(value));
  const entries = Array.isArray(value) ? value.map((each, at) => [at, each]) : Object.entries(value);
  const [left, right] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) return h('div', { class: 'json-line' }, label(name), h('span', { class: 'json-mark' }, left + right));
  return branch(name, entries, left, right, open);
}

function branch(name, entries, left, right, open) {
  const body = h('div', { class: 'json-body' });
  const size = `${entries.length} ${entries.length === 1 ? 'entry' : 'entries'}`;
  const summary = h('summary', null, label(name), h('span', { class: 'json-mark' }, left), h('span', { class: 'json-size' }, `${size} `, right));
  const details = h('details', { class: 'json-branch', open: open > 0 }, summary, body, h('div', { class: 'json-mark json-close' }, right));
  let drawn = 0;
  const more = () => {
    const next = entries.slice(drawn, drawn + PORTION);
    drawn += next.length;
    body.append(...next.map(([key, each]) => node(key, each, open - 1)));
    if (drawn < entries.length) body.append(moreButton(entries.length - drawn, more));
  };
  if (open > 0) more();
  else details.addEventListener('toggle', () => drawn === 0 && more(), { once: true });
  return details;
}

function moreButton(left, more) {
  const button = h('button', { class: 'btn btn-small', type: 'button' }, `Show ${Math.min(left, PORTION)} more of ${left}`);
  button.addEventListener('click', () => {
    button.remove();
    more();
  });
  return button;
}

function label(name) {
  if (name === null) return null;
  const text = typeof name === 'number' ? `${name}` : visible(JSON.stringify(name));
  return [h('span', { class: typeof name === 'number' ? 'json-index' : 'json-key' }, text), h('span', { class: 'json-mark' }, ': ')];
}

function leaf(value) {
  if (typeof value === 'string') return longText(visible(JSON.stringify(value)), 'json-string');
  if (value === null) return h('span', { class: 'json-null' }, 'null');
  return h('span', { class: `json-${typeof value}` }, String(value));
}

/** Text that is cut if it is long, with a button that shows the rest. */
export function longText(text, kind) {
  if (text.length <= LONG) return h('span', { class: kind }, text);
  const span = h('span', { class: kind }, `${text.slice(0, LONG)}…`);
  const button = h('button', { class: 'btn btn-small', type: 'button' }, `Show all ${text.length} characters`);
  button.addEventListener('click', () => {
    span.textContent = text;
    button.remove();
  });
  return [span, ' ', button];
}
