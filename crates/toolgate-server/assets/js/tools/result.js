// Shows the envelope of a call.

import { h } from '../dom.js';
import { bytes, duration, jsonTree, outcome, pretty } from '../format.js';
import { icon } from '../icons.js';
import { renderResult } from '../result.js';
import { copyText } from '../toast.js';

const MAX_SHOWN = 100_000;

/** `roundTripMs` is the time that the page measured, including the network. `draw(result)` shows a successful result. */
export function resultView(envelope, roundTripMs, draw = renderResult) {
  const { text, tone } = outcome(envelope.success ? 'success' : (envelope.error_kind ?? 'tool_error'));
  const raw = pretty(envelope);
  return h('div', { class: 'card result-card', 'data-outcome': envelope.success ? 'success' : 'failed' },
    h('div', { class: 'section-head' },
      h('h2', null, h('span', { class: `badge tone-${tone}`, 'data-testid': 'try-outcome' }, icon(envelope.success ? 'check' : 'alert'), text)),
      h('span', { class: 'result-times' },
        h('b', { 'data-testid': 'try-duration' }, duration(envelope.execution_time_ms ?? roundTripMs)),
        h('span', { class: 'muted small', title: 'Including the network between this page and the gateway' }, ` · ${duration(roundTripMs)} in total`))),
    envelope.success ? h('div', { class: 'result-body' }, draw(envelope.result, envelope.content)) : failure(envelope),
    h('div', { class: 'result-foot' },
      envelope.call_id && h('a', { href: `#/calls/${encodeURIComponent(envelope.call_id)}` }, 'Open this call'),
      h('button', { class: 'btn btn-small', type: 'button', onclick: () => copyText(raw, 'Envelope copied') }, icon('copy'), 'Copy envelope')),
    h('details', { class: 'result-raw' }, h('summary', null, `Envelope, ${bytes(raw.length)}`), h('pre', { class: 'code', tabindex: '0' }, cut(raw))));
}

function failure(envelope) {
  return [
    h('p', { class: 'result-error' }, envelope.error ?? 'The call failed for an unknown reason.'),
    envelope.hint && h('p', { class: 'result-hint' }, envelope.hint),
    envelope.details !== undefined && envelope.details !== null && h('div', { class: 'result-tree' }, jsonTree(envelope.details, { open: 2 })),
  ];
}

function cut(text) {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n… ${bytes(text.length - MAX_SHOWN)} more; copy the envelope to see all of it.` : text;
}
