import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ended, footnote, newTurn, reduce } from '../../assets/js/chat/turns.js';
import { pieces } from '../../assets/js/prose.js';

const play = (events) => events.reduce((turn, [event, data]) => reduce(turn, event, data), newTurn('q'));

test('text grows, and a call stands where it was made', () => {
  const turn = play([['text', { text: 'Let me ' }], ['text', { text: 'see.' }], ['call', { id: '1', tool: 'datetime', arguments: {} }], ['text', { text: 'It is noon.' }]]);
  assert.deepEqual(turn.parts.map((part) => part.text ?? part.tool), ['Let me see.', 'datetime', 'It is noon.']);
  assert.equal(turn.parts[1].state, 'running');
});

test('a result finds its call among several', () => {
  const turn = play([
    ['call', { id: 'a', tool: 'x' }], ['call', { id: 'b', tool: 'y' }],
    ['result', { id: 'b', call_id: 'c9', success: false, duration_ms: 3, error: 'no' }],
  ]);
  assert.deepEqual(turn.parts.map((part) => part.state), ['running', 'failed']);
  assert.deepEqual([turn.parts[1].callId, turn.parts[1].error, turn.parts[1].durationMs], ['c9', 'no', 3]);
});

test('an answer that was not streamed is shown at the end, and a streamed one not twice', () => {
  assert.deepEqual(play([['done', { answer: '42' }]]).parts, [{ kind: 'text', text: '42' }]);
  assert.equal(play([['text', { text: '42' }], ['done', { answer: '42' }]]).parts.length, 1);
});

test('every end settles the calls that still ran', () => {
  const running = play([['call', { id: '1', tool: 'x' }]]);
  const table = [[ended(running, true), 'stopped'], [ended(running, false), 'failed'], [reduce(running, 'error', { detail: 'gone' }), 'failed'], [reduce(running, 'done', {}), 'done']];
  for (const [turn, state] of table) {
    assert.equal(turn.state, state);
    assert.equal(turn.parts[0].state, 'stopped');
  }
  assert.match(ended(running, false).error, /connection ended/);
});

test('an end after the end changes nothing, nor does an unknown event', () => {
  const done = play([['done', { answer: 'a' }]]);
  assert.equal(ended(done, false), done);
  assert.equal(reduce(done, 'weather', {}), done);
});

test('only backticks mean something in a text', () => {
  const table = [
    ['plain <b>text</b>', [['text', 'plain <b>text</b>']]],
    ['use `ls -l` now', [['text', 'use '], ['code', 'ls -l'], ['text', ' now']]],
    ['see:\n```js\na()\n```\nend', [['text', 'see:'], ['block', 'a()'], ['text', 'end']]],
    ['```\nnot closed yet', [['block', 'not closed yet']]],
    ['a ` b', [['text', 'a ` b']]], ['', []],
  ];
  for (const [text, wanted] of table) assert.deepEqual(pieces(text).map(({ kind, text: part }) => [kind, part]), wanted);
});

test('the footnote says what is out of the ordinary', () => {
  const say = (ms) => `${ms} ms`;
  assert.equal(footnote({ end: 'answered', rounds: 1, duration_ms: 5 }, say), '5 ms');
  assert.equal(footnote({ end: 'too_many_rounds', rounds: 10, input_tokens: 7, output_tokens: 2, duration_ms: 5 }, say), 'too many rounds · 10 rounds · 7 tokens in, 2 out · 5 ms');
  assert.equal(footnote(null, say), '');
});
