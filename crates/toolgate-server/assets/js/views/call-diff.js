// Compares the requested arguments of a call with the executed ones.

import { h } from '../dom.js';
import { jsonTree, pretty } from '../format.js';

const WORDS = { same: '', renamed: 'renamed', changed: 'changed', dropped: 'dropped', added: 'added' };

/** What happened to each argument: `{ kind, from, asked, to, executed }`. */
export function differences({ asked, executed, renamed = [], dropped = [] }) {
  const before = asked ?? {};
  const after = executed ?? {};
  const names = new Map(renamed);
  const taken = new Set();
  const lines = Object.entries(before).map(([from, value]) => {
    const to = names.get(from) ?? from;
    if (!(to in after) || dropped.includes(from)) return { kind: 'dropped', from, asked: value };
    taken.add(to);
    const same = JSON.stringify(value) === JSON.stringify(after[to]);
    return { kind: to !== from ? 'renamed' : same ? 'same' : 'changed', from, asked: value, to, executed: after[to] };
  });
  for (const [to, value] of Object.entries(after)) if (!taken.has(to)) lines.push({ kind: 'added', to, executed: value });
  return lines;
}

export function diff(call) {
  const root = (...children) => h('div', { class: 'diff', 'data-testid': 'drawer-diff' }, children);
  if (typeof call.asked === 'string') return root(h('pre', { class: 'code', tabindex: '0' }, call.asked), h('p', { class: 'muted small' }, 'As text: not a JSON object, or too long to store completely.'));
  if (call.executed === null || call.executed === undefined) {
    return root(tree(call.asked ?? call.arguments), h('p', { class: 'muted small' }, 'These arguments were never executed.'));
  }
  const lines = differences(call);
  if (lines.every((line) => line.kind === 'same')) return root(tree(call.asked ?? call.executed), h('p', { class: 'muted small' }, 'Executed as requested.'));
  return root(h('div', { class: 'diff-table', role: 'table', 'aria-label': 'Requested and executed arguments' },
    h('div', { class: 'diff-row diff-head', role: 'row' }, ['Requested', '', 'Executed'].map((text) => h('span', { role: 'columnheader' }, text || h('span', { class: 'visually-hidden' }, 'Difference')))),
    lines.map(row)));
}

function row(line) {
  const side = (name, value) => h('span', { role: 'cell', class: 'diff-side' }, name !== undefined && [h('span', { class: 'json-key' }, name), ': ', valueText(value)]);
  return h('div', { class: `diff-row diff-${line.kind}`, role: 'row' }, side(line.from, line.asked),
    h('span', { role: 'cell', class: 'diff-word' }, WORDS[line.kind] || '='), side(line.to, line.executed));
}

function valueText(value) {
  const text = pretty(value);
  return text.length > 2000 ? `${text.slice(0, 2000)}…` : text;
}

function tree(value) {
  return value && Object.keys(value).length > 0 ? jsonTree(value, { open: 2 }) : h('p', { class: 'muted' }, 'No arguments.');
}
