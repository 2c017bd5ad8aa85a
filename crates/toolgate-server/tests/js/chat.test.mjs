import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examplesFor } from '../../assets/js/chat/examples.js';
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

test('words that do not count are gone, those of the rounds before stay', () => {
  const turn = play([
    ['text', { text: 'First.' }], ['call', { id: '1', tool: 'x' }], ['text', { text: '{"tool": "y"}' }], ['notice', { text: 'n' }], ['void', {}], ['text', { text: 'Last.' }],
  ]);
  assert.deepEqual(turn.parts.map((part) => part.text ?? part.tool), ['First.', 'x', 'n', 'Last.']);
});

test('every end settles the calls that still ran', () => {
  const running = play([['call', { id: '1', tool: 'x' }]]);
  const table = [[ended(running, true), 'stopped'], [ended(running, false), 'failed'], [reduce(running, 'error', { detail: 'gone' }), 'failed'], [reduce(running, 'done', {}), 'done']];
  for (const [turn, state] of table) {
    assert.equal(turn.state, state);
    assert.equal(turn.parts[0].state, 'stopped');
  }
  assert.match(ended(running, false).error, /connection was lost/);
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
  const table = [
    [{ end: 'answered', rounds: 1, duration_ms: 5 }, '', 'Took 5 ms'],
    [{ end: 'refusal', rounds: 1, duration_ms: 5 }, 'Declined', 'Took 5 ms'],
    [{ end: 'round_limit', rounds: 10, input_tokens: 7, output_tokens: 2, duration_ms: 5 }, 'Stopped: too many tool calls', 'Took 5 ms · the model was asked 10 times · 7 tokens read, 2 written'],
    [{ end: 'some_new_end' }, 'some new end', ''],
    [null, '', ''],
  ];
  for (const [done, end, figures] of table) assert.deepEqual(footnote({ done, provider: 'ollama' }, say), { end, figures });
  const offline = play([['conversation', { provider: 'intents' }], ['done', { answer: 'What?', end: 'refusal', rounds: 1, duration_ms: 0.2 }]]);
  assert.deepEqual(footnote(offline, say), { end: '', figures: '' });
});

test('what is proposed can be answered with the tools there are, and the house comes first', () => {
  assert.deepEqual(examplesFor([]), []);
  assert.deepEqual(examplesFor(['datetime', 'echo']), ['What time is it?', 'How many days until Christmas?']);
  const house = examplesFor(['datetime', 'math_eval', 'control_zwave_device', 'list_zwave_devices']);
  assert.deepEqual(house, ['Which lights are on?', 'Is anything still on?', 'Turn off all the lights', 'What time is it?']);
});
