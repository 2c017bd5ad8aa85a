// The state of the conversation. It is kept while the page is open, so that visiting another view doesn't lose it.

import { streamPost } from '../api.js';
import { ended, newTurn, reduce } from './turns.js';

const listeners = new Set();

/** `model` is `{ provider, model, why }` once the gateway has sent it. */
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

/** Sends a message. Resolves when the turn is over, even if it failed. */
export async function sendMessage(message) {
  const controller = new AbortController();
  stopping = controller;
  const index = conversation.turns.push(newTurn(message)) - 1;
  const turns = conversation.turns;
  const set = (turn) => {
    turns[index] = turn;
    changed();
  };
  changed();
  try {
    await streamPost('/api/chat', { message, conversation: conversation.id }, ({ event, data }) => {
      if (turns !== conversation.turns) return;
      if (event === 'conversation') Object.assign(conversation, { id: data.id, model: data });
      set(reduce(turns[index], event, data ?? {}));
    }, { signal: controller.signal });
    set(ended(turns[index], controller.signal.aborted));
  } catch (error) {
    if (controller.signal.aborted) set(ended(turns[index], true));
    else set(reduce(turns[index], 'error', { detail: errorDetail(error) }));
  } finally {
    if (stopping === controller) stopping = null;
    changed();
  }
}

/** The text of an error. If the gateway has dropped the conversation after an idle hour, the next message starts another. */
function errorDetail(error) {
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
