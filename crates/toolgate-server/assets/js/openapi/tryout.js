// A form to send a request to one route, and the response.

import { address } from '../api.js';
import { curl } from '../commands.js';
import { fill, h, setAttr, setText, uid } from '../dom.js';
import { bytes, duration, jsonTree, pretty } from '../format.js';
import { parseJson } from '../form/value.js';
import { hintOf, typeName } from '../form/schema.js';
import { icon } from '../icons.js';
import { prose } from '../prose.js';
import { copyText, toast } from '../toast.js';
import { tokenNeeded } from '../token.js';
import { fillPath } from './document.js';

/** How many characters of a response are shown at most. */
const MAX_SHOWN = 200_000;

/** `{ element, leave() }`. */
export function tryout(route) {
  const values = {};
  const state = { running: null };
  const view = build(route, values, () => refresh(), () => state.running?.abort());
  const refresh = () => setText(view.target, `${route.method} ${fillPath(route.path, route.parameters, values).path}`);
  const wanted = () => {
    const { error, ...request } = requestOf(route, values, view.body?.value ?? '');
    view.problem.hidden = !error;
    setText(view.problem, error ?? '');
    return error ? null : request;
  };
  const submit = async (event) => {
    event.preventDefault();
    const request = state.running ? null : wanted();
    if (!request) return;
    state.running = new AbortController();
    showSending(view, true);
    await exchange(request, state.running.signal, view.response);
    state.running = null;
    showSending(view, false);
  };
  const copy = () => {
    const request = wanted();
    if (!request) return toast('Fill in all required fields first.', 'warn');
    copyText(curl({ method: request.method, url: address(request.path), body: request.body, token: tokenNeeded() }), 'Copied as curl');
  };
  view.element.addEventListener('submit', submit);
  view.copy.addEventListener('click', copy);
  showSending(view, false);
  refresh();
  return { element: view.element, leave: () => state.running?.abort() };
}

function build(route, values, changed, stop) {
  const parameters = route.parameters.filter(({ in: location }) => location === 'path' || location === 'query');
  const fields = parameters.map((one) => parameterField(one, values, changed));
  const body = route.body && bodyField(route.body);
  const target = h('code', { class: 'api-target' });
  const problem = h('p', { class: 'field-error', role: 'alert', hidden: true });
  const response = h('div', { class: 'api-answer', 'aria-live': 'polite' });
  const send = h('button', { class: 'btn btn-primary', type: 'submit', 'data-testid': 'api-send' });
  const halt = h('button', { class: 'btn', type: 'button', 'data-testid': 'api-stop', onclick: stop }, 'Stop');
  const copy = h('button', { class: 'btn btn-small', type: 'button', 'data-testid': 'api-curl' }, icon('copy'), 'curl');
  const element = h('form', { class: 'tryout', novalidate: true },
    h('h3', null, 'Send a request'), target,
    fields.length > 0 && h('div', { class: 'api-fields' }, fields),
    body && h('div', { class: 'field' }, h('span', { class: 'field-label' }, 'Body', h('span', { class: 'field-type' }, route.body.type)), body),
    problem, h('div', { class: 'row' }, send, halt, copy), response);
  return { element, target, problem, response, send, halt, copy, body };
}

function bodyField({ type, example }) {
  const start = type.includes('json') ? pretty(example) : '';
  return h('textarea', {
    class: 'textarea mono', rows: String(Math.min(12, start.split('\n').length + 1)), spellcheck: 'false', autocomplete: 'off',
    'aria-label': 'Body', 'data-testid': 'api-body', value: start,
  });
}

/** The request as filled in, or `{ error }`. */
function requestOf(route, values, typed) {
  const { path, missing } = fillPath(route.path, route.parameters, values);
  if (missing.length) return { error: `Fill in: ${missing.join(', ')}.` };
  const body = typed.trim() === '' ? undefined : typed;
  const error = body !== undefined && route.body?.type.includes('json') ? parseJson(body).error : undefined;
  return { error, method: route.method, path, body, type: route.body?.type };
}

function showSending({ send, halt }, isSending) {
  fill(send, isSending && h('span', { class: 'spinner', 'aria-hidden': 'true' }), isSending ? 'Sending' : 'Send');
  setAttr(send, 'aria-disabled', isSending ? 'true' : null);
  halt.hidden = !isSending;
}

function parameterField(parameter, values, changed) {
  const id = uid('p');
  const key = `${parameter.in} ${parameter.name}`;
  const schema = parameter.schema ?? {};
  const example = parameter.example ?? schema.example ?? schema.default;
  // The example of a filter must not filter anything by default.
  values[key] = parameter.in === 'path' && example !== undefined ? String(example) : '';
  const set = (value) => {
    values[key] = value;
    changed();
  };
  const control = Array.isArray(schema.enum) ? chooser(id, schema.enum, set) : h('input', {
    class: 'input', id, value: values[key], autocomplete: 'off', spellcheck: 'false', placeholder: example === undefined ? '' : String(example),
    oninput: (event) => set(event.target.value), 'data-testid': `api-param-${parameter.name}`,
  });
  const label = h('label', { class: 'field-label', for: id },
    h('span', { class: 'field-name' }, parameter.name), h('span', { class: 'field-type' }, `${parameter.in}, ${typeName(schema)}`),
    parameter.required && h('span', { class: 'field-required' }, 'required'));
  return h('div', { class: 'field' }, label, control, h('div', { class: 'field-hint' }, prose(parameter.description ?? hintOf(schema))));
}

function chooser(id, options, set) {
  return h('select', { class: 'select', id, onchange: (event) => set(event.target.value) },
    h('option', { value: '' }, 'Not set'), options.map((option) => h('option', { value: String(option) }, String(option))));
}

/** Sends a request and shows the response as it arrives. A stream of events runs until it is stopped. */
async function exchange({ method, path, body, type }, signal, container) {
  const began = performance.now();
  const init = { method, signal, credentials: 'same-origin', cache: 'no-store', redirect: 'manual' };
  if (body !== undefined) Object.assign(init, { body, headers: { 'content-type': type ?? 'application/json' } });
  try {
    const response = await fetch(address(path), init);
    const view = answerView(response, began);
    fill(container, view.element);
    await readInto(response, view, began);
  } catch (error) {
    if (error.name === 'AbortError') container.append(h('p', { class: 'muted small' }, 'Stopped.'));
    else fill(container, h('p', { class: 'result-error' }, 'The gateway does not answer.'));
  }
}

function answerView(response, began) {
  const isOk = response.status < 400;
  const took = h('span', { class: 'num', 'data-testid': 'api-duration' }, duration(performance.now() - began));
  const size = h('span', { class: 'num muted' });
  const content = h('div', { class: 'api-content' });
  const headers = [...response.headers].sort(([a], [b]) => (a < b ? -1 : 1));
  const element = h('div', { class: 'api-response', 'data-testid': 'api-response', 'data-status': String(response.status) },
    h('div', { class: 'api-status' }, h('span', { class: `badge tone-${isOk ? 'ok' : 'bad'}` }, icon(isOk ? 'check' : 'alert'), statusWords(response)), took, size),
    h('details', { class: 'result-raw' }, h('summary', null, `${headers.length} headers`),
      h('dl', { class: 'facts api-headers' }, headers.map(([name, value]) => [h('dt', null, name), h('dd', { class: 'mono' }, value)]))),
    content);
  return { element, took, size, content };
}

function statusWords(response) {
  if (response.type === 'opaqueredirect') return 'a redirect';
  return `${response.status} ${response.statusText}`.trim();
}

async function readInto(response, view, began) {
  const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
  const live = isStream ? h('pre', { class: 'code', tabindex: '0' }) : null;
  if (live) fill(view.content, live);
  let text = '';
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader.read()) {
    text += chunk.value;
    setText(view.size, bytes(text.length));
    if (live) live.textContent = text.slice(-MAX_SHOWN);
  }
  setText(view.took, duration(performance.now() - began));
  if (!live) fill(view.content, contentOf(text));
}

function contentOf(text) {
  if (text === '') return h('p', { class: 'muted' }, 'No body.');
  const { value, error } = parseJson(text);
  if (!error) return jsonTree(value, { open: 2 });
  return h('pre', { class: 'code', tabindex: '0' }, text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n… ${bytes(text.length - MAX_SHOWN)} more` : text);
}
