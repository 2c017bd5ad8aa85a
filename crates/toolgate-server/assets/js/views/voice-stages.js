// Shows how long each stage of a voice turn took.

import { h } from '../dom.js';
import { duration } from '../format.js';

/** Each mark of a turn ends one of its stages. */
const STAGES = [
  ['speech_ended_ms', 'Listening', 'Until the end of speech was detected', 'listen'],
  ['transcribed_ms', 'Transcribing', 'Until the words were transcribed', 'transcribe'],
  ['first_token_ms', 'Thinking', 'Until the model said or called something', 'think'],
  ['first_audio_ms', 'Voicing', 'Tools, the first sentence and its speech', 'voice'],
  ['ended_ms', 'Speaking', 'Until the last sound, or until the answer was cut off', 'speak'],
];
const TRANSCRIBED = 1;

/** The duration of a turn, up to its last known mark. */
export function totalOf({ stages = {} }) {
  const known = STAGES.map(([mark]) => stages[mark]).filter(Number.isFinite);
  return known.length > 0 ? Math.max(...known) : NaN;
}

/** From the end of speech to the first sound of the answer: how long the speaker waited. NaN if either is missing. */
export function waitOf({ stages = {} }) {
  return (stages.first_audio_ms ?? NaN) - (stages.speech_ended_ms ?? NaN);
}

/**
 * The stages in order of time. If a mark is missing, its time belongs to the next stage. But if a turn failed or ended without
 * a sound, the time belongs to the stage in which it got stuck. Turns that arrived as text have no listening stage.
 */
export function stagesOf({ stages = {}, outcome, heard }) {
  const last = STAGES.length - 1;
  const known = STAGES.map(([mark], at) => ({ at, ms: stages[mark] })).filter(({ ms }) => Number.isFinite(ms));
  let from = 0;
  const isText = heard && !known.some(({ at }) => at <= TRANSCRIBED);
  let reached = isText ? TRANSCRIBED : -1;
  return known.toSorted((a, b) => a.ms - b.ms || a.at - b.at).flatMap(({ at, ms }) => {
    const isStuck = at > reached && (at === last || outcome === 'failed');
    const [, name, what, tone] = STAGES[isStuck ? reached + 1 : at];
    const step = { name, what, tone, from, ms: ms - from };
    reached = Math.max(reached, at);
    from = Math.max(from, ms);
    return step.ms > 0 ? [step] : [];
  });
}

/** The stages as one bar, with names and durations below. */
export function timeline(turn) {
  const steps = stagesOf(turn);
  if (steps.length === 0) return h('p', { class: 'muted small', 'data-testid': 'turn-stages' }, 'The durations of the stages are unknown.');
  const bar = steps.map(({ tone, ms }) => h('span', { class: `stage stage-${tone}`, style: { 'flex-grow': ms } }));
  const names = steps.map(({ name, what, tone, ms }) => h('li', { title: what },
    h('span', { class: `stage-dot stage-${tone}`, 'aria-hidden': 'true' }), `${name} `, h('span', { class: 'stage-ms' }, duration(ms))));
  const wait = waitOf(turn);
  return h('div', { class: 'turn-time', 'data-testid': 'turn-stages' },
    h('div', { class: 'stages', 'aria-hidden': 'true' }, bar),
    h('ol', { class: 'stage-names', 'aria-label': 'Stages of the turn' }, names),
    wait > 0 && h('p', { class: 'muted small turn-wait', 'data-testid': 'turn-wait' }, `First sound ${duration(wait)} after speech ended`));
}
