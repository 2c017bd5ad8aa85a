// The view of voice turns. The voice gateway is usually another process that shares the journal, so the live feed doesn't
// report its turns: while this view is open, it polls for new ones.

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

/** The time between polls. They are cheap: the gateway uses an index, and usually there is nothing new. */
const POLL_INTERVAL = 2000;
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
    if (fresh.length > 0) setText(live, announcement(fresh[0]));
  };
  const store = new TurnStore(draw);
  const notes = noteFor(note, store);
  const poll = () => !document.hidden && connection.state === 'open' && store.error?.status !== FORBIDDEN && store.newer();
  const stopStatus = onStatus((status) => {
    const before = journal;
    journal = status.journal?.state ?? 'ok';
    if (journal !== before) draw([]);
  });
  const stopEvents = events([], { open: (again) => again && store.newer() });
  const timer = setInterval(poll, POLL_INTERVAL);
  document.addEventListener('visibilitychange', poll);
  const offKeys = registerKeys('Voice', [
    { keys: ['j'], label: 'Next turn', run: () => step(list, 1) },
    { keys: ['k'], label: 'Previous turn', run: () => step(list, -1) },
  ]);
  draw([]);
  store.older();
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', poll);
    stopStatus();
    stopEvents();
    offKeys();
  };
}

/** Moves the focus by `by` turns. */
function step(list, by) {
  const cards = [...list.children];
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  cards[at < 0 ? 0 : Math.min(cards.length - 1, Math.max(0, at + by))]?.focus();
}

function announcement(turn) {
  return `${placeOf(turn)[0]}: ${visible(turn.heard)}. ${turnOutcome(turn.outcome).text}.`;
}

/** The note above the list. Redrawn only when it changes, so that a button keeps its focus. */
function noteFor(element, store) {
  let shown = null;
  return {
    show(error, loaded, isEmpty, journal) {
      const words = error ? `${isEmpty} ${error.message}` : !loaded ? 'loading' : isEmpty ? journal : '';
      if (shown === words) return;
      shown = words;
      if (error) fill(element, failed(error, isEmpty, store));
      else if (!loaded) fill(element, h('p', { class: 'muted' }, 'Loading…'));
      else fill(element, isEmpty && nothing(journal));
    },
  };
}

function failed(error, isEmpty, store) {
  const again = h('button', { class: 'btn btn-small', type: 'button', onclick: () => store.newer() }, 'Try again');
  const why = error.detail ?? error.message;
  if (error.status === FORBIDDEN) return empty('Not allowed for this token', "Voice turns are shown only to callers who may see everybody's calls.");
  if (isEmpty) return empty('The voice turns could not be loaded', why, h('p', null, again));
  return h('p', { class: 'voice-problem', role: 'alert' }, `Voice turns could not be loaded: ${why} `, again);
}

function nothing(journal) {
  if (journal === 'off') {
    return empty('No voice turns', 'Voice turns are read from the journal, and the journal of this gateway is off.');
  }
  return empty('No voice turns yet', 'A voice gateway listens, uses the tools and speaks its answers. Each request it hears on this machine appears here with its answer. Start one:',
    command('toolgate voice'));
}
