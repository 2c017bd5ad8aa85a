// Shows how long each step of a call took.

import { h } from '../dom.js';
import { duration } from '../format.js';
import { SLOW } from './call-row.js';

const STEPS = [
  ['check_ms', 'Check', 'Finding the tool, renaming and validating the arguments', 'info'],
  ['approval_ms', 'Approval', 'Waiting for a person; not counted as execution time', 'warn'],
  ['queue_ms', 'Queue', 'Waiting for a free slot: limits.concurrency calls of its server were running', 'warn'],
  ['invoke_ms', 'Run', 'The tool itself', 'accent'],
];

/** Steps that are left out if they took no time. */
const MAY_WAIT = new Set(['approval_ms', 'queue_ms']);

/** The steps with their starts. Time that belongs to no step is shown as a step of its own. */
export function stepsOf({ timings = {}, duration_ms: total }) {
  let at = 0;
  const steps = [];
  for (const [id, name, what, tone] of STEPS) {
    const ms = timings?.[id];
    if (!Number.isFinite(ms) || (ms === 0 && MAY_WAIT.has(id))) continue;
    steps.push({ name, what, tone, from: at, ms });
    at += ms;
  }
  const rest = (total ?? 0) + (timings?.approval_ms ?? 0) - at;
  if (rest > Math.max(0.05, at * 0.02)) {
    steps.push({ name: 'Rest', what: 'Recording the call and returning the result', tone: 'muted', from: at, ms: rest });
    at += rest;
  }
  return { steps, total: at };
}

export function waterfall(call) {
  const { steps, total } = stepsOf(call);
  if (steps.length === 0) {
    return h('p', { class: 'muted', 'data-testid': 'drawer-waterfall' }, call.outcome === 'running' ? 'The call is running.' : 'The durations of the steps are unknown.');
  }
  const share = (ms) => `${total > 0 ? (ms / total) * 100 : 0}%`;
  const rows = steps.map((step) => h('div', { class: 'fall-row', title: step.what, role: 'listitem' },
    h('span', { class: 'fall-name' }, step.name),
    h('span', { class: 'fall-track', 'aria-hidden': 'true' },
      h('span', { class: `fall-bar fall-${step.tone}`, style: { left: share(step.from), width: share(step.ms) } }),
      total > SLOW && h('span', { class: 'fall-mark', style: { left: share(SLOW) } })),
    h('span', { class: 'num' }, duration(step.ms))));
  return h('div', { class: 'fall', 'data-testid': 'drawer-waterfall', role: 'list', 'aria-label': 'Steps of the call' }, rows,
    total > SLOW && h('div', { class: 'muted small' }, 'The dashed line is one second.'));
}
