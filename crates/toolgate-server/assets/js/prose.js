// Shows descriptions from tools and models. Text in backticks becomes code; everything else stays plain text.

import { h } from './dom.js';

/** Splits a text at its backticks into `{ kind: 'text' | 'code' | 'block', text }`. */
export function pieces(text) {
  const found = [];
  const pattern = /\n?```[^\n`]*\n([\s\S]*?)(?:\n?```\n?|$)|`([^`\n]+)`/g;
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > from) found.push({ kind: 'text', text: text.slice(from, match.index) });
    found.push(match[1] !== undefined ? { kind: 'block', text: match[1] } : { kind: 'code', text: match[2] });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ kind: 'text', text: text.slice(from) });
  return found;
}

/** The nodes of a text. */
export function prose(text) {
  return pieces(String(text ?? '')).map(({ kind, text: part }) => {
    if (kind === 'block') return h('pre', { class: 'code', tabindex: '0' }, part);
    return kind === 'code' ? h('code', null, part) : part;
  });
}
