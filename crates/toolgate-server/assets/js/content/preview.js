// Shows the results of reading a resource and of getting a prompt. All elements are created here; nothing in a result is
// used as markup.

import { empty, fill, h } from '../dom.js';
import { bytes, jsonTree } from '../format.js';
import { icon } from '../icons.js';
import { showMarkdown } from '../markdown/view.js';
import { link, renderBlock } from '../result.js';
import { visible } from '../text.js';
import { copyText, toast } from '../toast.js';
import { bytesOf, essence, fileName, shownAs, sizeOf } from './kinds.js';

const LONG_TEXT = 20_000;
const ROLES = { user: 'User', assistant: 'Assistant' };

/** The result of `resources/read`. `hrefOf(uri)` is the address of another resource on this page. */
export function contentsView(result, hrefOf) {
  const contents = Array.isArray(result?.contents) ? result.contents.filter((item) => item !== null && typeof item === 'object') : null;
  if (!contents) return jsonTree(result, { open: 3 });
  if (contents.length === 0) return empty('The resource is empty', 'Reading it returned no contents.');
  const isOne = contents.length === 1;
  return h('div', { class: 'contents', 'data-testid': 'contents' }, contents.map((item) => itemView(item, isOne ? null : hrefOf)));
}

/** One item with its type and size. Its URI is a link, unless `hrefOf` is missing because the page shows it already. */
function itemView(item, hrefOf) {
  const shown = shownAs(item);
  const body = h('div', { class: 'content-body' });
  const isPlain = { mode: false };
  const draw = () => fill(body, isPlain.mode ? plainText(shown.text) : drawn(item, shown));
  const source = shown.kind === 'markdown' || shown.kind === 'json'
    ? h('button', { class: 'btn btn-small', type: 'button', 'aria-pressed': 'false', 'data-testid': 'content-source', onclick: (event) => {
      isPlain.mode = !isPlain.mode;
      event.currentTarget.setAttribute('aria-pressed', String(isPlain.mode));
      draw();
    } }, 'Source') : null;
  draw();
  const uri = typeof item.uri === 'string' ? item.uri : '';
  return h('figure', { class: 'content-item', 'data-testid': 'content', 'data-kind': shown.kind },
    h('figcaption', { class: 'content-head' },
      h('span', { class: 'grow' }, hrefOf && uri && h('span', { class: 'mono' }, link(uri, visible(uri), hrefOf)),
        h('span', { class: 'muted small' }, [visible(essence(item.mimeType)) || 'unknown type', bytes(sizeOf(item))].join(', '))),
      source,
      shown.text !== undefined && h('button', { class: 'btn btn-small', type: 'button', onclick: () => copyText(shown.text, 'Content copied') }, icon('copy'), 'Copy'),
      shown.kind !== 'nothing' && h('button', { class: 'btn btn-small', type: 'button', 'data-testid': 'content-download', onclick: () => download(item) }, icon('save'), 'Download')),
    body);
}

function drawn(item, shown) {
  const type = essence(item.mimeType);
  switch (shown.kind) {
    case 'picture':
      return h('img', { class: 'result-image', src: `data:${type};base64,${item.blob}`, alt: `The resource as a picture (${type})` });
    case 'sound':
      return h('audio', { controls: true, preload: 'metadata', src: `data:${type};base64,${item.blob}`, 'aria-label': 'The resource as a sound' });
    case 'markdown': {
      const text = h('div', { class: 'answer-text' });
      showMarkdown(text, shown.text);
      return text;
    }
    case 'json':
      return jsonTree(shown.value, { open: 3 });
    case 'text':
      return plainText(shown.text);
    case 'nothing':
      return h('p', { class: 'muted' }, 'This item has neither text nor data.');
    default:
      return h('p', { class: 'muted' }, "This page can't show files of this type. Download it to open it with another program.");
  }
}

/** A text with its hidden characters escaped. A long one is cut, with a button that shows the rest. */
function plainText(text) {
  if (text === '') return h('p', { class: 'muted' }, 'The text is empty.');
  const pre = h('pre', { class: 'code', tabindex: '0', 'aria-label': 'Text' }, visible(text.slice(0, LONG_TEXT)));
  if (text.length <= LONG_TEXT) return pre;
  const button = h('button', { class: 'btn btn-small', type: 'button' }, `Show all ${bytes(text.length)}`);
  button.addEventListener('click', () => {
    pre.textContent = visible(text);
    button.remove();
  });
  return [pre, button];
}

/** Saves an item as a file. Its type is not kept, so that no browser opens it as a page of this gateway. */
function download(item) {
  const data = bytesOf(item);
  if (data === null) return toast('The server sent data that is not valid base64.', 'bad');
  const url = URL.createObjectURL(new Blob([data], { type: 'application/octet-stream' }));
  const link = h('a', { href: url, download: fileName(item), hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  // The browser reads the data after this turn of the event loop.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** The result of `prompts/get`. */
export function messagesView(result, hrefOf) {
  const messages = Array.isArray(result?.messages) ? result.messages : null;
  if (!messages) return jsonTree(result, { open: 3 });
  const text = typeof result.description === 'string' ? result.description : '';
  return h('div', { class: 'contents', 'data-testid': 'messages' },
    text && h('p', { class: 'muted' }, visible(text)),
    messages.length === 0 && h('p', { class: 'muted' }, 'The prompt has no messages.'),
    messages.map((message) => messageView(message, hrefOf)));
}

function messageView(message, hrefOf) {
  const role = String(message?.role ?? '');
  const blocks = Array.isArray(message?.content) ? message.content : [message?.content];
  return h('section', { class: `prompt-message ${role === 'assistant' ? 'is-assistant' : ''}`, 'data-testid': 'message' },
    h('h3', { class: 'small muted' }, Object.hasOwn(ROLES, role) ? ROLES[role] : visible(role) || 'Unknown role'),
    blocks.map((block) => blockView(block, hrefOf)));
}

function blockView(block, hrefOf) {
  if (block?.type === 'text' && typeof block.text === 'string') return plainText(block.text);
  if (block?.type === 'resource' && block.resource !== null && typeof block.resource === 'object') return itemView(block.resource, hrefOf);
  return renderBlock(block, hrefOf);
}
