// Makes text from elsewhere show what it really contains.

import { h } from './dom.js';

/** Marks that turn the direction of the text around them or are not to be seen at all; joiners belong to scripts and stay. */
const HIDDEN = /[\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
/** Like the pattern above, including joiners, for one character. */
const UNSEEN = new RegExp(`${HIDDEN.source}|[\\u200c\\u200d]`, 'u');
/** Spaces, separators and letters that look like plain ones. */
const DISGUISED = /[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u2024\u2044\u2215\u2236\u29f8\ua789\uff01-\uff5e\u{1d400}-\u{1d7ff}]/u;
/** Scripts of which some letters look like Latin ones; suspect only in a word that has Latin letters too. */
const TWIN = /[\p{Script=Greek}\p{Script=Coptic}\p{Script=Cyrillic}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Lisu}]/u;
const WORDS = /[\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}]+/gu;

/** The text with such marks escaped as in JSON. */
export function visible(text) {
  return text.replace(HIDDEN, (mark) => [...Array(mark.length).keys()].map((at) => `\\u${mark.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''));
}

/**
 * For a person who decides about a text: `{ nodes, marks }`. Every character that is invisible, or looks like another, is
 * marked with its code; `marks` counts them.
 */
export function reveal(text) {
  const nodes = [];
  let plain = '';
  let marks = 0;
  for (const [word] of text.matchAll(WORDS)) {
    const mixed = /[A-Za-z]/.test(word);
    for (const c of word) {
      const unseen = UNSEEN.test(c);
      if (!unseen && !DISGUISED.test(c) && !(mixed && TWIN.test(c))) {
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
