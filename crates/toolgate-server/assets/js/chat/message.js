// Draws one turn of the conversation: the question, and the answer with its calls.

import { fill, h, patchList, setText } from '../dom.js';
import { brief, duration, jsonTree } from '../format.js';
import { icon } from '../icons.js';
import { showMarkdown } from '../markdown/view.js';
import { renderResult } from '../result.js';
import { footnote } from './turns.js';

const drawn = new WeakMap();

export function createTurn(turn) {
  const parts = h('div', { class: 'answer-parts' });
  const end = h('span', { class: 'answer-end' });
  const figures = h('details', { class: 'answer-figures' }, h('summary', null, 'Details'), h('span'));
  const foot = h('div', { class: 'answer-foot small muted', hidden: true }, end, figures);
  const waiting = h('p', { class: 'answer-waiting muted' }, h('span', { class: 'spinner', 'aria-hidden': 'true' }), 'Thinking…');
  const error = h('p', { class: 'answer-error', role: 'alert', hidden: true });
  const element = h('article', { class: 'turn' },
    h('div', { class: 'question', 'data-testid': 'chat-message', 'data-role': 'user' }, h('span', { class: 'visually-hidden' }, 'You: '), turn.question),
    h('div', { class: 'answer', 'data-testid': 'chat-message', 'data-role': 'assistant' }, h('span', { class: 'visually-hidden' }, 'Answer: '), parts, waiting, error, foot));
  drawn.set(element, { parts, foot, end, figures, waiting, error });
  return element;
}

export function updateTurn(element, turn) {
  const { parts, foot, end, figures, waiting, error } = drawn.get(element);
  element.dataset.state = turn.state;
  patchList(parts, turn.parts.map((part, index) => ({ ...part, index })), (part) => `${part.index} ${part.kind}`, createPart, updatePart);
  const last = turn.parts.at(-1);
  waiting.hidden = turn.state !== 'running' || (last?.kind === 'text') || (last?.kind === 'call' && last.state === 'running');
  error.hidden = !turn.error;
  setText(error, turn.error ?? '');
  const note = turn.state === 'stopped' ? { end: 'Stopped', figures: '' } : footnote(turn, duration);
  setText(end, note.end);
  end.hidden = note.end === '';
  setText(figures.lastElementChild, note.figures);
  figures.hidden = note.figures === '';
  foot.hidden = end.hidden && figures.hidden;
}

function createPart(part) {
  switch (part.kind) {
    case 'call':
      return createCall(part);
    case 'thinking':
      return h('details', { class: 'thinking' }, h('summary', null, 'Thinking'), h('div', { class: 'thinking-text' }));
    case 'notice':
      return h('p', { class: 'answer-notice small' }, icon('alert'), h('span'));
    default:
      return h('div', { class: 'answer-text' });
  }
}

function updatePart(element, part) {
  if (part.kind === 'call') return updateCall(element, part);
  if (drawn.get(element) === part.text) return;
  drawn.set(element, part.text);
  if (part.kind === 'text') showMarkdown(element, part.text);
  else setText(element.lastElementChild, part.text);
}

function createCall(part) {
  const state = h('span', { class: 'call-state' });
  const took = h('span', { class: 'call-took num' });
  const body = h('div', { class: 'call-body' });
  const element = h('details', { class: 'chat-call', 'data-testid': 'chat-call', 'data-tool': part.tool },
    h('summary', null, state, h('span', { class: 'call-tool mono' }, part.tool), h('code', { class: 'call-brief truncate' }, brief(part.arguments, 160)), took), body);
  drawn.set(element, { state, took, body });
  element.addEventListener('toggle', () => element.open && drawBody(element));
  return element;
}

const STATES = { running: 'running', success: 'OK', failed: 'failed', stopped: 'stopped' };

function updateCall(element, part) {
  const view = drawn.get(element);
  view.part = part;
  if (element.dataset.state === part.state) return;
  element.dataset.state = part.state;
  const sign = { running: h('span', { class: 'spinner', 'aria-hidden': 'true' }), success: icon('check'), failed: icon('alert'), stopped: icon('pause') }[part.state];
  fill(view.state, sign, h('span', { class: part.state === 'failed' ? '' : 'visually-hidden' }, STATES[part.state]));
  setText(view.took, part.durationMs === undefined ? '' : duration(part.durationMs));
  if (element.open) drawBody(element);
}

function drawBody(element) {
  const { part, body } = drawn.get(element);
  const section = (title, ...content) => h('section', null, h('h2', null, title), content);
  fill(body,
    section('Arguments', jsonTree(part.arguments ?? {}, { open: 2 })),
    part.state === 'running' && h('p', { class: 'muted' }, 'Still running.'),
    part.error && section('Error', h('p', { class: 'result-error' }, part.error)),
    part.preview !== undefined && part.preview !== null && section('Result', renderResult(part.preview)),
    part.callId && h('p', null, h('a', { href: `#/calls/${encodeURIComponent(part.callId)}` }, 'Open this call')));
}
