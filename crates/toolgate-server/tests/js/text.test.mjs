// What hides in a text that a person has to decide on.

import assert from 'node:assert/strict';
import { test } from 'node:test';

globalThis.Node = class Node {};
globalThis.document = {
  createElement: (tag) => Object.assign(new Node(), { tag, text: '', setAttribute() {}, append(text) { this.text += text; } }),
};
const { reveal, visible } = await import('../../assets/js/text.js');

const shown = (text) => reveal(text).nodes.map((node) => (typeof node === 'string' ? node : `[${node.text}]`)).join('');

test('what is not seen is written out, also beyond the first plane', () => {
  assert.equal(visible('a\u{e0041}b'), 'a\\udb40\\udc41b');
  assert.equal(visible('soft\u00adhyphen'), 'soft\\u00adhyphen');
  assert.equal(visible('क\u200dष'), 'क\u200dष');
});

test('for a decision every hidden or disguised character is marked', () => {
  for (const [text, expected] of [
    ['rm\u{e0041} \u00adx', 'rm[U+E0041] [U+00AD]x'],
    ['a\u200db', 'a[U+200D]b'],
    ['exe.\u202efdp', 'exe.[U+202E]fdp'],
    ['p\u0430ypal', 'p[\u0430 U+0430]ypal'],
    ['etc\u2215passwd', 'etc[\u2215 U+2215]passwd'],
    ['\u{1d42b}m', '[\u{1d42b} U+1D42B]m'],
    ['Привет, Ελλάδα, Zoë, 日本 😀', 'Привет, Ελλάδα, Zoë, 日本 😀'],
  ]) {
    assert.equal(shown(text), expected);
  }
  assert.equal(reveal('a\u200bb\u200bc').marks, 2);
});
