// The chat with a model that uses the gateway's tools. Its calls are shown in the conversation.

import { get } from '../api.js';
import { fill, h, patchList, perFrame, uid } from '../dom.js';
import { icon } from '../icons.js';
import { onStatus } from '../strip.js';
import { command } from '../toast.js';
import { sendMessage, conversation, isRunning, startOver, stop, watch } from '../chat/conversation.js';
import { examplesFor } from '../chat/examples.js';
import { createTurn, updateTurn } from '../chat/message.js';

/** Within this many pixels of the end, the view follows the answer. */
const FOLLOW_DISTANCE = 80;

export function mount(root) {
  const view = build();
  fill(root, view.element);
  const draw = perFrame(() => show(view));
  const unwatch = watch(draw);
  draw();
  view.input.value = draft;
  grow(view.input);
  if (matchMedia('(pointer: fine)').matches) view.input.focus();
  get('/api/tools').then((tools) => {
    view.examples = examplesFor(tools.map(({ name }) => name));
    draw();
  }, () => {});
  const forget = onStatus((status) => {
    if (JSON.stringify(status.model) === JSON.stringify(view.configured)) return;
    view.configured = status.model ?? null;
    draw();
  });
  return () => {
    draft = view.input.value;
    forget();
    unwatch();
  };
}

/** The unsent message, kept when the view is left. */
let draft = '';

function build() {
  const model = h('p', { class: 'chat-model', 'data-testid': 'chat-model', role: 'status' });
  const newButton = h('button', { class: 'btn btn-small', type: 'button', 'data-testid': 'chat-new', onclick: () => startOver() }, 'New conversation');
  const turns = h('div', { class: 'turns', role: 'log', 'aria-label': 'Conversation', 'aria-live': 'polite' });
  const none = h('div', { class: 'chat-none' });
  const scroll = h('div', { class: 'chat-scroll', tabindex: '0', role: 'region', 'aria-label': 'Messages' }, none, turns);
  const input = h('textarea', {
    class: 'textarea chat-input', rows: '1', placeholder: 'Ask something', 'aria-label': 'Your message', 'data-testid': 'chat-input', enterkeyhint: 'send',
  });
  const send = h('button', { class: 'btn btn-primary btn-icon', type: 'submit', 'aria-label': 'Send', 'data-testid': 'chat-send' }, icon('up'));
  const halt = h('button', { class: 'btn', type: 'button', 'data-testid': 'chat-stop', hidden: true, onclick: () => stop() }, 'Stop');
  const composer = h('form', { class: 'composer' }, input, halt, send);
  const element = h('div', { class: 'chat' }, h('div', { class: 'chat-head' }, h('h1', { class: 'visually-hidden' }, 'Chat'), model, newButton), scroll,
    h('div', { class: 'chat-foot' }, composer, h('p', { class: 'chat-keys small muted' }, h('kbd', null, 'Enter'), ' sends, ', h('kbd', null, 'Shift'), ' ', h('kbd', null, 'Enter'), ' starts a new line')));
  const view = { element, model, newButton, turns, none, scroll, input, send, halt, configured: undefined, examples: [] };
  composer.addEventListener('submit', (event) => {
    event.preventDefault();
    submit(view);
  });
  input.addEventListener('input', () => grow(input));
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit(view);
  });
  return view;
}

function submit(view, text = view.input.value) {
  const message = text.trim();
  if (message === '' || isRunning()) return;
  view.input.value = '';
  grow(view.input);
  view.following = true;
  sendMessage(message);
  view.input.focus();
}

/** Makes the input as high as its text, within the limits of the style sheet. */
function grow(input) {
  input.style.height = 'auto';
  input.style.height = `${input.scrollHeight + 2}px`;
}

function show(view) {
  const { scroll, turns } = view;
  const isAtEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < FOLLOW_DISTANCE;
  const list = conversation.turns;
  patchList(turns, list.map((turn, index) => ({ turn, key: keyOf(list, index) })), (entry) => entry.key, ({ turn }) => createTurn(turn), (element, { turn }) => updateTurn(element, turn));
  fill(view.none, list.length === 0 && welcome(view));
  view.halt.hidden = !isRunning();
  view.send.hidden = isRunning();
  view.newButton.hidden = list.length === 0;
  fill(view.model, modelWords(conversation.model, view.configured));
  if (isAtEnd || view.following) scroll.scrollTop = scroll.scrollHeight;
  view.following = false;
}

const keys = new WeakMap();

/** Keys that differ between conversations, so that a new conversation doesn't reuse the elements of the old one. */
function keyOf(list, index) {
  if (!keys.has(list)) keys.set(list, uid('conversation'));
  return `${keys.get(list)} ${index}`;
}

/** The badge and note for the model. Without a model, simple sentences are still understood. */
function modelWords(answering, configured) {
  const { provider, name = answering?.model, why } = answering ?? configured ?? {};
  if (provider === 'intents') return [badge('Offline'), note('Understands simple sentences without a model.', why)];
  if (provider) return [badge([provider, name].filter(Boolean).join(' · ')), why && note(why, why)];
  return configured === null ? [badge('Offline'), note('Understands simple sentences; a model is used if one is found.')] : null;
}

function badge(text) {
  return h('span', { class: 'badge badge-plain' }, text);
}

function note(text, title) {
  return h('span', { class: 'chat-why muted small', title }, text);
}

function welcome(view) {
  const examples = view.examples.map((text) => h('button', { class: 'btn', type: 'button', 'data-testid': 'chat-example', onclick: () => submit(view, text) }, text));
  return h('div', { class: 'empty chat-empty', 'data-testid': 'empty' },
    h('h2', null, 'Ask, and watch the tools work'),
    h('p', null, 'The model uses the tools of this gateway. Each call is shown in the conversation and in the list of calls.'),
    h('div', { class: 'chat-examples' }, examples),
    view.configured === null && [
      h('p', { class: 'small chat-more' }, 'Sentences like these work offline. For free conversation, install a model on this machine and restart the gateway:'),
      command('ollama pull qwen3:4b-instruct'),
    ]);
}
