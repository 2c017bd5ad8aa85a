// The client of the gateway's HTTP API. Paths such as `/api/…` are resolved relative to the page, so that a proxy may serve
// the gateway under a prefix.

/** A failed request. `status` is 0 if the gateway did not answer; `detail` is a sentence for people. */
export class ApiError extends Error {
  constructor(status, detail, body) {
    super(detail);
    this.name = 'ApiError';
    this.status = status;
    this.detail = detail;
    this.body = body;
  }
}

export function address(path) {
  return new URL(path.replace(/^\//, ''), document.baseURI).href;
}

/** Returns the response as JSON; throws `ApiError`. Options: `signal`. */
export function get(path, options) {
  return request(path, { ...options, method: 'GET' });
}

/** Sends `body` as JSON. Returns the response as JSON, or null if it is empty; throws `ApiError`. */
export function post(path, body, options) {
  return request(path, { ...options, method: 'POST', ...jsonBody(body) });
}

async function request(path, init) {
  const response = await send(path, init);
  const body = await bodyOf(response);
  if (!response.ok) throw failure(response, body);
  return body;
}

function jsonBody(body) {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body ?? {}) };
}

async function send(path, init) {
  try {
    return await fetch(address(path), { credentials: 'same-origin', cache: 'no-store', ...init });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The gateway does not answer.', null);
  }
}

async function bodyOf(response) {
  let text;
  try {
    text = await response.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The connection to the gateway was lost.', null);
  }
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function failure(response, body) {
  if (response.status === 401) dispatchEvent(new CustomEvent('toolgate:signed-out'));
  const reason = body && typeof body === 'object' ? body.detail ?? body.error ?? body.title : null;
  const detail = reason ?? `The gateway answered with ${response.status} ${response.statusText}`.trim();
  return new ApiError(response.status, detail, body);
}

/**
 * Sends a POST whose response is a stream of server-sent events. Calls `onEvent({ event, data, id })` for each, with `data`
 * parsed if it is JSON, and resolves at the end of the stream. Options: `signal` to stop it.
 */
export async function streamPost(path, body, onEvent, options) {
  const init = { ...options, method: 'POST', ...jsonBody(body) };
  init.headers.accept = 'text/event-stream';
  const response = await send(path, init);
  if (!response.ok) throw failure(response, await bodyOf(response));
  const parser = new EventParser(onEvent);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    let chunk;
    try {
      chunk = await reader.read();
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new ApiError(0, 'The connection to the gateway was lost.', null);
    }
    if (chunk.done) return;
    parser.push(chunk.value);
  }
}

/** Parses server-sent events from chunks of text. */
export class EventParser {
  constructor(onEvent) {
    this.onEvent = onEvent;
    this.rest = '';
    this.reset();
  }

  reset() {
    this.event = 'message';
    this.data = [];
  }

  push(text) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    for (const line of lines) this.line(line);
  }

  line(line) {
    if (line === '') return this.dispatch();
    if (line.startsWith(':')) return;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') this.event = value;
    else if (field === 'data') this.data.push(value);
    else if (field === 'id') this.id = value;
  }

  dispatch() {
    if (this.data.length > 0) this.onEvent({ event: this.event, data: parsed(this.data.join('\n')), id: this.id });
    this.reset();
  }
}

/** Parses JSON; returns the text itself if it isn't JSON. */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export { events, connection } from './feed.js';
