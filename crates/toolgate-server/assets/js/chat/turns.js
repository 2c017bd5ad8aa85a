// What a conversation says so far, built from the events of `/api/chat`. Pure.

/** A question with the answer that is coming. `parts` are text, thinking, call and notice, in the order they came. */
export function newTurn(question) {
  return { question, parts: [], state: 'running', error: null, done: null };
}

/** The turn after an event. Unknown events change nothing. */
export function reduce(turn, event, data) {
  switch (event) {
    case 'text':
    case 'thinking':
      return { ...turn, parts: appended(turn.parts, event, String(data.text ?? '')) };
    case 'notice':
      return { ...turn, parts: [...turn.parts, { kind: 'notice', text: String(data.text ?? '') }] };
    case 'call':
      return { ...turn, parts: [...turn.parts, { kind: 'call', id: data.id, callId: data.call_id, tool: data.tool, arguments: data.arguments, state: 'running' }] };
    case 'result':
      return { ...turn, parts: turn.parts.map((part) => (part.kind === 'call' && part.id === data.id ? answered(part, data) : part)) };
    case 'done':
      return withAnswer({ ...settled(turn, 'done'), done: data });
    case 'error':
      return { ...settled(turn, 'failed'), error: String(data.detail ?? 'The conversation failed without saying why.') };
    default:
      return turn;
  }
}

/** The turn when its stream ended: stopped by the person, or cut without a last word. */
export function ended(turn, stopped) {
  if (turn.state !== 'running') return turn;
  if (stopped) return settled(turn, 'stopped');
  return { ...settled(turn, 'failed'), error: 'The connection ended before the answer did.' };
}

function settled(turn, state) {
  const parts = turn.parts.map((part) => (part.kind === 'call' && part.state === 'running' ? { ...part, state: 'stopped' } : part));
  return { ...turn, state, parts };
}

function answered(part, data) {
  const { call_id: callId = part.callId, success, duration_ms: durationMs, error, preview } = data;
  return { ...part, state: success ? 'success' : 'failed', callId, durationMs, error, preview };
}

/** Text grows the last part if that is of the same kind. */
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

/** What came after an answer, in a line: rounds, tokens, time. */
export function footnote(done, formatDuration) {
  if (!done) return '';
  const words = [];
  if (done.end && !['answered', 'answer', 'stop', 'done'].includes(done.end)) words.push(String(done.end).replaceAll('_', ' '));
  if (done.rounds > 1) words.push(`${done.rounds} rounds`);
  if (done.input_tokens) words.push(`${done.input_tokens} tokens in, ${done.output_tokens ?? 0} out`);
  if (Number.isFinite(done.duration_ms)) words.push(formatDuration(done.duration_ms));
  return words.join(' · ');
}
