// What a voice gateway heard and said. It is usually another process that shares the journal, so the live feed does not tell of
// it: while this view is open, what is new is asked for.

import { events } from '../api.js';
import { connection } from '../feed.js';
import { h, empty, fill, patchList, setText } from '../dom.js';
import { plural } from '../format.js';
import { registerKeys } from '../keys.js';
import { onStatus } from '../strip.js';
import { command } from '../toast.js';
import { visible } from '../text.js';
import { TurnStore } from './voice-store.js';
import { placeOf, turnCard, turnOutcome } from './voice-turn.js';

/** How often the gateway is asked; it answers from an index, and almost always with nothing. */
const POLL = 2000;
/** After this status polling again is pointless. */
const FORBIDDEN = 403;

export function mount(root) {
  const list = h('div', { class: 'voice-turns', 'data-testid': 'turns' });
  const note = h('div');
  const summary = h('span', { class: 'muted', 'data-testid': 'turn-count' });
  const live = h('div', { class: 'visually-hidden', role: 'status' });
  const more = h('button', { class: 'btn', type: 'button', hidden: true, 'data-testid': 'turns-older', onclick: () => store.older() }, 'Show older turns');
  root.append(h('div', { class: 'page' }, h('div', { class: 'page-head' }, h('h1', null, 'Voice'), summary), note, list, h('p', { class: 'turns-more' }, more), live));
  let journal = 'ok';
  const draw = (fresh) => {
    const { turns, complete, loaded, error } = store;
    const isEmpty = turns.length === 0;
    setText(summary, isEmpty ? '' : `${plural(turns.length, 'turn')}${complete ? '' : ' or more'}`);
    patchList(list, turns, ({ id }) => id, turnCard);
    more.hidden = !store.hasMore;
    notes.show(error, loaded, isEmpty, journal);
    if (fresh.length > 0) setText(live, told(fresh[0]));
  };
  const store = new TurnStore(draw);
  const notes = noteFor(note, store);
  const look = () => !document.hidden && connection.state === 'open' && store.error?.status !== FORBIDDEN && store.news();
  const stopStatus = onStatus((status) => {
    const before = journal;
    journal = status.journal?.state ?? 'ok';
    if (journal !== before) draw([]);
  });
  const stopEvents = events([], { open: (again) => again && store.news() });
  const timer = setInterval(look, POLL);
  document.addEventListener('visibilitychange', look);
  const offKeys = registerKeys('Voice', [
    { keys: ['j'], label: 'Next turn', run: () => step(list, 1) },
    { keys: ['k'], label: 'Previous turn', run: () => step(list, -1) },
  ]);
  draw([]);
  store.older();
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', look);
    stopStatus();
    stopEvents();
    offKeys();
  };
}

/** Moves the focus by so many turns. */
function step(list, by) {
  const cards = [...list.children];
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  cards[at < 0 ? 0 : Math.min(cards.length - 1, Math.max(0, at + by))]?.focus();
}

function told(turn) {
  return `${placeOf(turn)[0]}: ${visible(turn.heard)}. ${turnOutcome(turn.outcome).text}.`;
}

/** What stands above the list; drawn only when it changes, so that a button keeps its focus. */
function noteFor(element, store) {
  let said = null;
  return {
    show(error, loaded, isEmpty, journal) {
      const words = error ? `${isEmpty} ${error.message}` : !loaded ? 'loading' : isEmpty ? journal : '';
      if (said === words) return;
      said = words;
      if (error) fill(element, failed(error, isEmpty, store));
      else if (!loaded) fill(element, h('p', { class: 'muted' }, 'Loading…'));
      else fill(element, isEmpty && nothing(journal));
    },
  };
}

function failed(error, isEmpty, store) {
  const again = h('button', { class: 'btn btn-small', type: 'button', onclick: () => store.news() }, 'Try again');
  const why = error.detail ?? error.message;
  if (error.status === FORBIDDEN) return empty('Not for this token', 'What was said is shown only to those who may use all tools.');
  if (isEmpty) return empty('The turns could not be fetched', why, h('p', null, again));
  return h('p', { class: 'voice-problem', role: 'alert' }, `Turns could not be fetched: ${why} `, again);
}

function nothing(journal) {
  if (journal === 'off') {
    return empty('No voice turns', 'Voice turns are read from the journal, and this gateway has none.');
  }
  return empty('Nothing was said yet', 'A voice gateway listens, uses the tools and answers aloud. What it hears on this machine appears here after each answer. Start one:',
    command('toolgate voice'));
}
