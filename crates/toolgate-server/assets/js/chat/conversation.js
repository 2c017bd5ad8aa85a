// The conversation itself. It lives as long as the page, so that a look at the calls does not lose it.

import { streamPost } from '../api.js';
import { ended, newTurn, reduce } from './turns.js';

const listeners = new Set();

/** `model` is `{ provider, model, why }` once the gateway has said it. */
export const conversation = { id: null, model: null, turns: [] };

let stopping = null;

/** Calls `listener` after each change; returns the function that ends it. */
export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function isRunning() {
  return stopping !== null;
}

/** Asks; resolves when the turn is over, whatever its end. */
export async function ask(message) {
  const controller = new AbortController();
  stopping = controller;
  const mine = conversation.turns.push(newTurn(message)) - 1;
  const turns = conversation.turns;
  const set = (turn) => {
    turns[mine] = turn;
    changed();
  };
  changed();
  try {
    await streamPost('/api/chat', { message, conversation: conversation.id }, ({ event, data }) => {
      if (turns !== conversation.turns) return;
      if (event === 'conversation') Object.assign(conversation, { id: data.id, model: data });
      set(reduce(turns[mine], event, data ?? {}));
    }, { signal: controller.signal });
    set(ended(turns[mine], controller.signal.aborted));
  } catch (error) {
    if (controller.signal.aborted) set(ended(turns[mine], true));
    else set(reduce(turns[mine], 'error', { detail: forgotten(error) }));
  } finally {
    if (stopping === controller) stopping = null;
    changed();
  }
}

/** A conversation is kept for an hour only; the next question then begins another. */
function forgotten(error) {
  if (error.status !== 404) return error.detail ?? error.message;
  conversation.id = null;
  return 'The gateway no longer has this conversation. Send your message again to start a new one.';
}

export function stop() {
  stopping?.abort();
}

export function startOver() {
  stop();
  stopping = null;
  Object.assign(conversation, { id: null, turns: [] });
  changed();
}

function changed() {
  for (const listener of listeners) listener();
}
