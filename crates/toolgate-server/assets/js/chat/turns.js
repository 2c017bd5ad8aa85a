// Builds the turns of a conversation from the events of `/api/chat`. Pure functions.

/** A question whose answer is still running. `parts` are of kind text, thinking, call or notice, in order of arrival. */
export function newTurn(question) {
  return { question, parts: [], state: 'running', error: null, done: null };
}

/** The turn after an event. Unknown events change nothing. */
export function reduce(turn, event, data) {
  switch (event) {
    case 'conversation':
      return { ...turn, provider: data.provider };
    case 'text':
    case 'thinking':
      return { ...turn, parts: appended(turn.parts, event, String(data.text ?? '')) };
    case 'void':
      return { ...turn, parts: withoutRound(turn.parts) };
    case 'notice':
      return { ...turn, parts: [...turn.parts, { kind: 'notice', text: String(data.text ?? '') }] };
    case 'call':
      return { ...turn, parts: [...turn.parts, { kind: 'call', id: data.id, callId: data.call_id, tool: data.tool, arguments: data.arguments, state: 'running' }] };
    case 'result':
      return { ...turn, parts: turn.parts.map((part) => (part.kind === 'call' && part.id === data.id ? answered(part, data) : part)) };
    case 'done':
      return withAnswer({ ...settled(turn, 'done'), done: data });
    case 'error':
      return { ...settled(turn, 'failed'), error: String(data.detail ?? 'The conversation failed for an unknown reason.') };
    default:
      return turn;
  }
}

/** The turn after its stream has ended: stopped by the user, or cut off without `done` or `error`. */
export function ended(turn, stopped) {
  if (turn.state !== 'running') return turn;
  if (stopped) return settled(turn, 'stopped');
  return { ...settled(turn, 'failed'), error: 'The connection was lost before the answer was complete.' };
}

function settled(turn, state) {
  const parts = turn.parts.map((part) => (part.kind === 'call' && part.state === 'running' ? { ...part, state: 'stopped' } : part));
  return { ...turn, state, parts };
}

function answered(part, data) {
  const { call_id: callId = part.callId, success, duration_ms: durationMs, error, preview } = data;
  return { ...part, state: success ? 'success' : 'failed', callId, durationMs, error, preview };
}

/** The parts without the text of this round, which began after the last call. */
function withoutRound(parts) {
  const last = parts.findLastIndex((part) => part.kind === 'call');
  return parts.filter((part, at) => at <= last || part.kind !== 'text');
}

/** Appends text to the last part if it is of the same kind, or adds a part. */
function appended(parts, kind, text) {
  const last = parts.at(-1);
  if (last?.kind === kind) return [...parts.slice(0, -1), { kind, text: last.text + text }];
  return [...parts, { kind, text }];
}

/** A model that does not stream gives its text only at the end. */
function withAnswer(turn) {
  const hasText = turn.parts.some((part) => part.kind === 'text' && part.text.trim() !== '');
  const { answer } = turn.done;
  return hasText || !answer ? turn : { ...turn, parts: [...turn.parts, { kind: 'text', text: String(answer) }] };
}

/** Labels of the ways in which an answer may end early. */
const ENDS = {
  refusal: 'Declined',
  empty: 'No answer',
  failed: 'Failed',
  length: 'Cut off: the answer was too long',
  deadline: 'Stopped: it took too long',
  repetition: 'Stopped: it repeated itself',
  round_limit: 'Stopped: too many tool calls',
};

/**
 * The footnote of an answer: `{ end, figures }`, how it ended if that is unusual, and its cost. Empty without a model,
 * because then the answer itself says what was not understood.
 */
export function footnote({ done, provider }, formatDuration) {
  if (!done || provider === 'intents') return { end: '', figures: '' };
  const isUsual = !done.end || done.end === 'answered';
  const figures = [];
  if (Number.isFinite(done.duration_ms)) figures.push(`Took ${formatDuration(done.duration_ms)}`);
  if (done.rounds > 1) figures.push(`the model was asked ${done.rounds} times`);
  if (done.input_tokens) figures.push(`${done.input_tokens} tokens read, ${done.output_tokens ?? 0} written`);
  return { end: isUsual ? '' : ENDS[done.end] ?? String(done.end).replaceAll('_', ' '), figures: figures.join(' · ') };
}
