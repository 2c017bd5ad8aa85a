// Makes invisible and deceptive characters in untrusted text visible.

import { h } from './dom.js';

/** Invisible characters and those that change the direction of text. Joiners are left out, because some scripts need them. */
const HIDDEN = /[\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
/** Like the pattern above, including joiners, for one character. */
const UNSEEN = new RegExp(`${HIDDEN.source}|[\\u200c\\u200d]`, 'u');
/** Spaces, separators and letters that look like ASCII ones. */
const DISGUISED = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u2024\u2044\u2215\u2236\u29f8\ua789\uff01-\uff5e\u{1d400}-\u{1d7ff}]/u;
/** Scripts with letters that look like Latin ones; suspicious only in a word that has Latin letters too. */
const LOOKALIKE = /[\p{Script=Greek}\p{Script=Coptic}\p{Script=Cyrillic}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Lisu}]/u;
const WORDS = /[\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}]+/gu;

/** The text with hidden characters escaped as in JSON. */
export function visible(text) {
  return text.replace(HIDDEN, (mark) => [...Array(mark.length).keys()].map((at) => `\\u${mark.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''));
}

/**
 * Shows a text to a person who has to decide about it. Returns `{ nodes, marks }`: every character that is invisible or
 * looks like another one is marked with its code point, and `marks` is their number.
 */
export function reveal(text) {
  const nodes = [];
  let plain = '';
  let marks = 0;
  for (const [word] of text.matchAll(WORDS)) {
    const mixed = /[A-Za-z]/.test(word);
    for (const c of word) {
      const unseen = UNSEEN.test(c);
      if (!unseen && !DISGUISED.test(c) && !(mixed && LOOKALIKE.test(c))) {
        plain += c;
        continue;
      }
      const code = `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
      nodes.push(plain, h('mark', { class: 'glyph', title: unseen ? 'An invisible character' : 'A character that looks like another one' }, unseen ? code : `${c} ${code}`));
      plain = '';
      marks += 1;
    }
  }
  return { nodes: [...nodes, plain], marks };
}
