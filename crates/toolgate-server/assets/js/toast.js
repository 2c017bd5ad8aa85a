// Short messages at the edge of the page, and the clipboard.

import { h } from './dom.js';

let container = null;

/** Shows `text` for a few seconds; `kind` is ok, info, warn or bad. Errors and warnings stay longer. */
export function toast(text, kind = 'info') {
  container ??= document.body.appendChild(h('div', { class: 'toasts', role: 'status', 'aria-live': 'polite', 'data-testid': 'toasts' }));
  while (container.children.length > 2) container.firstChild.remove();
  const close = h('button', { class: 'btn-plain', type: 'button', 'aria-label': 'Dismiss' }, '×');
  const item = h('div', { class: `toast tone-${kind}`, 'data-testid': 'toast' }, h('span', null, text), close);
  const remove = () => item.remove();
  close.addEventListener('click', remove);
  container.append(item);
  setTimeout(remove, kind === 'bad' || kind === 'warn' ? 8000 : 3500);
}

/** Shows the error of a failed request. */
export function toastError(error) {
  if (error?.name !== 'AbortError') toast(error?.detail ?? error?.message ?? String(error), 'bad');
}

/** Copies `text` and shows `message`. The clipboard API needs HTTPS or localhost; otherwise `execCommand` is used. */
export async function copyText(text, message = 'Copied') {
  try {
    await navigator.clipboard.writeText(text);
    toast(message, 'ok');
  } catch {
    const field = h('textarea', { class: 'visually-hidden', 'aria-hidden': 'true' });
    const focused = document.activeElement;
    field.value = text;
    (document.querySelector('dialog[open]') ?? document.body).append(field);
    field.select();
    const copied = document.execCommand('copy');
    field.remove();
    focused?.focus?.();
    toast(copied ? message : 'The browser does not allow this page to copy text.', copied ? 'ok' : 'bad');
  }
}

/** A command with a button that copies it, for empty states. */
export function command(text) {
  const button = h('button', { class: 'btn btn-small', type: 'button', 'aria-label': `Copy: ${text}` }, 'Copy');
  button.addEventListener('click', () => copyText(text, 'Command copied'));
  return h('div', { class: 'command' }, h('code', null, text), button);
}
