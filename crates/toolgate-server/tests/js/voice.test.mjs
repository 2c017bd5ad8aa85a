import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TurnStore } from '../../assets/js/views/voice-store.js';
import { stagesOf, totalOf, waitOf } from '../../assets/js/views/voice-stages.js';
import { placeOf, turnOutcome } from '../../assets/js/views/voice-turn.js';

const turn = (n) => ({ id: `t${String(n).padStart(6, '0')}`, heard: `number ${n}` });
const range = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);
const numbers = (store) => store.turns.map(({ id }) => Number(id.slice(1)));
const down = (from, to) => range(to, from).toReversed();

/** A gateway that holds `turns` (in the order in which they ended) and notes what it was asked. */
function gateway(turns) {
  const asked = [];
  globalThis.document = { baseURI: 'http://gateway/', hidden: false };
  globalThis.fetch = async (url) => {
    const query = Object.fromEntries(new URL(url).searchParams);
    asked.push(query);
    const at = (id) => turns.findIndex((each) => each.id === id);
    const some = query.before ? turns.slice(0, Math.max(0, at(query.before))) : query.after ? turns.slice(at(query.after) + 1) : turns;
    return new Response(JSON.stringify(some.toReversed().slice(0, Number(query.limit))));
  };
  return asked;
}

const steps = (stages, outcome) => stagesOf({ stages, outcome }).map(({ name, from, ms }) => [name, from, ms]);

test('a turn is divided at its marks', () => {
  const stages = { speech_ended_ms: 1200, transcribed_ms: 1650, first_token_ms: 1700, first_audio_ms: 1900, ended_ms: 3100 };
  assert.deepEqual(steps(stages), [['Listening', 0, 1200], ['Transcribing', 1200, 450], ['Thinking', 1650, 50], ['Voicing', 1700, 200], ['Speaking', 1900, 1200]]);
  assert.deepEqual([totalOf({ stages }), waitOf({ stages })], [3100, 700]);
});

test('marks that are missing, equal or in another order leave no hole and no wrong name', () => {
  const table = [
    // Text came in and text went out: nothing was heard, nothing was played.
    [{ transcribed_ms: 0, first_token_ms: 400, ended_ms: 900 }, [['Thinking', 0, 400], ['Voicing', 400, 500]]],
    // The speech service did not answer.
    [{ speech_ended_ms: 1000, ended_ms: 6000 }, [['Listening', 0, 1000], ['Transcribing', 1000, 5000]]],
    [{ speech_ended_ms: 1000, first_audio_ms: 6000, ended_ms: 7000 }, [['Listening', 0, 1000], ['Transcribing', 1000, 5000], ['Speaking', 6000, 1000]], 'failed'],
    // Text came in, and the answer was played.
    [{ first_token_ms: 300, first_audio_ms: 400, ended_ms: 900 }, [['Thinking', 0, 300], ['Voicing', 300, 100], ['Speaking', 400, 500]], 'answered'],
    // A filler was heard before the model had said anything.
    [{ speech_ended_ms: 10, transcribed_ms: 20, first_audio_ms: 30, first_token_ms: 50, ended_ms: 90 },
      [['Listening', 0, 10], ['Transcribing', 10, 10], ['Voicing', 20, 10], ['Thinking', 30, 20], ['Speaking', 50, 40]]],
    [{ ended_ms: 5 }, [['Listening', 0, 5]]],
    [{ speech_ended_ms: null, ended_ms: null }, []],
    [{ speech_ended_ms: -3, transcribed_ms: 4 }, [['Transcribing', 0, 4]]],
    [undefined, []],
  ];
  for (const [stages, expected, outcome] of table) assert.deepEqual(steps(stages, outcome), expected, JSON.stringify(stages));
  for (const stages of [{}, { first_audio_ms: 5, speech_ended_ms: null }, { first_audio_ms: null, speech_ended_ms: 5 }]) assert.ok(Number.isNaN(waitOf({ stages })));
  assert.ok(Number.isNaN(totalOf({})));
});

test('what came as text was thought about, not listened to', () => {
  const names = (turn) => stagesOf({ heard: 'what time is it', ...turn }).map(({ name }) => name);
  assert.deepEqual(names({ outcome: 'failed', stages: { ended_ms: 500 } }), ['Thinking']);
  assert.deepEqual(names({ outcome: 'failed', stages: { first_token_ms: 300, ended_ms: 500 } }), ['Thinking', 'Voicing']);
  assert.deepEqual(names({ outcome: 'answered', stages: { first_audio_ms: 300, ended_ms: 500 } }), ['Voicing', 'Speaking']);
});

test('an outcome has words and a colour, also one that is not known', () => {
  const table = [['answered', 'Answered', 'ok'], ['interrupted', 'Interrupted', 'warn'], ['failed', 'Failed', 'bad'], ['taken_over', 'taken over', 'bad'], [undefined, 'unknown', 'bad']];
  for (const [word, text, tone] of table) assert.deepEqual([turnOutcome(word).text, turnOutcome(word).tone], [text, tone]);
  assert.deepEqual(placeOf({ room: 'kitchen', source: 'satellite', wake_word: 'ok nabu' }), ['kitchen', 'satellite · “ok nabu”']);
  assert.deepEqual(placeOf({ room: null, source: 'w\u202eav', wake_word: null }), ['w\\u202eav', '']);
});

test('older pages are asked for one after the other, until there are no more', async () => {
  const asked = gateway(range(0, 120).map(turn));
  const store = new TurnStore(() => {});
  await store.older();
  assert.deepEqual([numbers(store), store.complete], [down(120, 70), false]);
  // Two at once are one.
  await Promise.all([store.older(), store.older()]);
  await store.older();
  assert.deepEqual([numbers(store), store.complete], [down(120, 0), true]);
  assert.deepEqual(asked.map(({ before }) => before), [undefined, 't000070', 't000020']);
});

test('what is new comes on top, and only that is asked for', async () => {
  const turns = [];
  const asked = gateway(turns);
  const told = [];
  const store = new TurnStore((fresh) => told.push(...fresh.map(({ id }) => id)));
  await store.newer();
  assert.deepEqual([store.loaded, store.complete, numbers(store)], [true, true, []]);
  turns.push(turn(1), turn(2));
  await store.newer();
  turns.push(turn(3));
  await store.newer();
  await store.newer();
  assert.deepEqual([numbers(store), store.complete], [[3, 2, 1], true]);
  assert.deepEqual(told, ['t000002', 't000001', 't000003']);
  assert.deepEqual(asked.map(({ after }) => after), [undefined, undefined, 't000002', 't000003']);
});

test('where too much was missed the list begins again, and older turns can be asked for', async () => {
  const turns = range(0, 10).map(turn);
  gateway(turns);
  const store = new TurnStore(() => {});
  await store.older();
  turns.push(...range(10, 200).map(turn));
  await store.newer();
  assert.deepEqual([numbers(store), store.complete], [down(200, 150), false]);
  await store.older();
  assert.deepEqual(numbers(store), down(200, 100));
});

test('turns of a journal that was begun anew come on top of the known ones', async () => {
  const turns = range(0, 3).map(turn);
  gateway(turns);
  const store = new TurnStore(() => {});
  await store.older();
  turns.splice(0, 3, turn(6), turn(7));
  await store.newer();
  await store.newer();
  assert.deepEqual(numbers(store), [7, 6, 2, 1, 0]);
});

test('no more than a thousand turns are kept', async () => {
  const turns = range(0, 2000).map(turn);
  gateway(turns);
  const store = new TurnStore(() => {});
  while (numbers(store).at(-1) !== 1000) await store.older();
  turns.push(turn(2000));
  await store.newer();
  assert.deepEqual([numbers(store), store.complete, store.hasMore], [down(2001, 1001), false, false]);
});

test('a failure is told, and over when the next question is answered', async () => {
  gateway([turn(1)]);
  const answer = globalThis.fetch;
  globalThis.fetch = async () => new Response(JSON.stringify({ detail: 'only whoever may use all tools may read what was said' }), { status: 403 });
  const store = new TurnStore(() => {});
  await store.older();
  assert.deepEqual([store.error.detail, store.loaded], ['only whoever may use all tools may read what was said', false]);
  globalThis.fetch = answer;
  await store.newer();
  assert.deepEqual([store.error, numbers(store)], [null, [1]]);
  globalThis.fetch = async () => { throw new TypeError('network'); };
  await store.newer();
  assert.deepEqual([store.error.status, numbers(store)], [0, [1]]);
  const asked = gateway([turn(1)]);
  await store.newer();
  assert.deepEqual([store.error, numbers(store), asked.length, asked[0].after], [null, [1], 1, 't000001']);
});
