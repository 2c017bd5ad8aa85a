// The card of a voice turn: the request, the answer, the outcome and the duration of each stage.

import { h } from '../dom.js';
import { dateTime, duration, outcome, shortTime } from '../format.js';
import { icon } from '../icons.js';
import { longText } from '../json.js';
import { visible } from '../text.js';
import { timeline, totalOf } from './voice-stages.js';

const OUTCOMES = { answered: ['Answered', 'ok', 'check'], interrupted: ['Interrupted', 'warn', 'pause'], failed: ['Failed', 'bad', 'close'] };

/** The label, colour and icon of a turn's outcome. */
export function turnOutcome(word) {
  const [text, tone, sign] = OUTCOMES[word] ?? [String(word ?? 'unknown').replaceAll('_', ' '), 'bad', 'alert'];
  return { text, tone, sign };
}

/** Where a turn was heard, and details: `['kitchen', 'satellite · “ok nabu”']` or `['microphone', '']`. */
export function placeOf({ room, source, wake_word: wakeWord }) {
  const how = [room && source, wakeWord && `“${wakeWord}”`].filter(Boolean);
  return [room || source, how.join(' · ')].map(visible);
}

export function turnCard(turn) {
  const { text, tone, sign } = turnOutcome(turn.outcome);
  const [where, how] = placeOf(turn);
  return h('article', { class: 'card voice-turn', tabindex: '-1', 'data-testid': 'turn', 'data-id': turn.id, 'aria-label': visible(turn.heard) || 'Nothing was understood' },
    h('div', { class: 'turn-head' },
      h('time', { class: 'turn-when', datetime: turn.started_at, title: dateTime(turn.started_at) }, shortTime(turn.started_at)),
      h('span', { class: 'turn-place', 'data-testid': 'turn-place' }, h('strong', null, where), how && h('span', { class: 'muted' }, ` · ${how}`)),
      h('span', { class: `badge tone-${tone}`, 'data-testid': 'turn-outcome', 'data-status': turn.outcome }, icon(sign), text),
      h('span', { class: 'turn-total num', title: 'From beginning to end', 'data-testid': 'turn-total' }, duration(totalOf(turn)))),
    h('div', { class: 'turn-said' },
      line('Heard', turn.heard, 'turn-heard', 'Nothing was understood'),
      line('Said', turn.answer, 'turn-answer', 'Nothing was said'),
      turn.error && h('p', { class: 'turn-error', 'data-testid': 'turn-error' }, longText(visible(turn.error), 'turn-error-text'))),
    timeline(turn),
    h('div', { class: 'turn-foot' }, calls(turn.calls ?? []), turn.model && h('span', { class: 'muted small turn-model', title: 'The model that answered' }, visible(turn.model))));
}

function line(label, text, kind, nothing) {
  return h('p', { class: kind, 'data-testid': kind }, h('span', { class: 'visually-hidden' }, `${label}: `),
    text ? longText(visible(text), 'turn-text') : h('span', { class: 'muted' }, nothing));
}

function calls(all) {
  if (all.length === 0) return h('span', { class: 'muted small turn-calls' }, 'No tools were used');
  return h('ul', { class: 'turn-calls', 'aria-label': 'Tool calls' }, all.map((call) => h('li', null, callLink(call))));
}

/** Links a call to its drawer, unless the journal no longer has it. */
function callLink(call) {
  if (!call.tool) return h('span', { class: 'badge badge-plain' }, 'deleted call');
  const { text, tone } = outcome(call.outcome);
  return h('a', { class: 'btn btn-small turn-call', href: `#/calls/${encodeURIComponent(call.id)}`, 'data-testid': 'turn-call' },
    h('span', { class: `dot tone-${tone}` }), h('span', { class: 'mono truncate' }, visible(call.tool)),
    h('span', { class: 'muted' }, call.outcome === 'success' ? duration(call.duration_ms ?? NaN) : text));
}
