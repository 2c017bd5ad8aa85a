// Shows the result of a tool by its kind: text, JSON tree, table, image, sound or links. It is never used as markup.

import { h } from './dom.js';
import { isBase64, PICTURES, SOUND } from './content/kinds.js';
import { bytes, jsonTree } from './format.js';
import { objectTable } from './table.js';
import { visible } from './text.js';

/** The kinds of MCP content blocks, each with a check for its required fields. */
const BLOCKS = {
  text: (block) => typeof block.text === 'string',
  image: (block) => typeof block.data === 'string',
  audio: (block) => typeof block.data === 'string',
  resource_link: (block) => typeof block.uri === 'string',
  resource: (block) => block.resource !== null && typeof block.resource === 'object',
};
const LONG_TEXT = 20_000;

/**
 * Draws a result and, if `content` is given, its blocks that are not text. `hrefOf(uri)` is the address of a resource on
 * the dashboard; without it only links to the web are links.
 */
export function renderResult(result, content, hrefOf) {
  const beside = Array.isArray(content) ? content.filter((block) => block?.type !== 'text') : [];
  return h('div', { class: 'result' }, renderValue(result, hrefOf), beside.map((block) => renderBlock(block, hrefOf)));
}

/** True for MCP content, even if some blocks are of unknown kinds. Other lists of objects with a `type` are tables. */
function isBlocks(value) {
  if (!Array.isArray(value) || !value.every((each) => typeof each?.type === 'string')) return false;
  const known = value.filter((each) => Object.hasOwn(BLOCKS, each.type));
  return known.length > 0 && known.every((each) => BLOCKS[each.type](each));
}

/** Draws a value in the way that suits it best. */
export function renderValue(value, hrefOf) {
  if (value === undefined || value === null || value === '') return h('p', { class: 'muted' }, '(no output)');
  if (typeof value === 'string') return renderText(value);
  if (isBlocks(value)) return h('div', { class: 'result' }, value.map((block) => renderBlock(block, hrefOf)));
  const rows = rowsOf(value);
  return rows ? objectTable(rows.list, rows.name) : jsonTree(value, { open: 3 });
}

/** Finds a list of objects: the value itself, or the only entry of an object. */
function rowsOf(value) {
  const isList = (each) => Array.isArray(each) && each.length > 0 && each.every((item) => item !== null && typeof item === 'object' && !Array.isArray(item));
  if (isList(value)) return { name: null, list: value };
  const entries = Array.isArray(value) || typeof value !== 'object' ? [] : Object.entries(value);
  return entries.length === 1 && isList(entries[0][1]) ? { name: entries[0][0], list: entries[0][1] } : null;
}

/** Draws a block of MCP content. */
export function renderBlock(block, hrefOf) {
  const draw = { text: textBlock, image: imageBlock, audio: audioBlock, resource_link: linkBlock, resource: resourceBlock }[block?.type];
  return draw ? draw(block, hrefOf) : jsonTree(block);
}

function textBlock(block) {
  return renderText(String(block.text ?? ''));
}

/** Draws a text, or a tree if it is JSON. */
export function renderText(text) {
  const looksLikeJson = /^\s*[[{]/.test(text) && text.length < 2_000_000;
  if (looksLikeJson) {
    try {
      return renderValue(JSON.parse(text));
    } catch {
      // It isn't JSON after all.
    }
  }
  const shown = text.slice(0, LONG_TEXT);
  const pre = h('pre', { class: 'code', tabindex: '0', 'aria-label': 'Text' }, linked(shown));
  if (shown.length === text.length) return pre;
  const button = h('button', { class: 'btn btn-small', type: 'button' }, `Show all ${bytes(text.length)}`);
  button.addEventListener('click', () => {
    pre.textContent = text;
    button.remove();
  });
  return h('div', { class: 'result' }, pre, button);
}

/** Turns the URLs in a text into links. */
function linked(text) {
  return text.split(/(https?:\/\/[^\s<>"'`\])}]+)/).map((part, at) => (at % 2 === 1 ? link(part, part) : part));
}

/** A link for http and https URLs, and to the page of a resource; plain text for others, which a page must not open. */
export function link(uri, text, hrefOf) {
  if (/^https?:\/\//i.test(uri)) return h('a', { href: uri, target: '_blank', rel: 'noopener noreferrer' }, text);
  return hrefOf && uri !== '' ? h('a', { href: hrefOf(uri) }, text) : h('span', null, text);
}

function imageBlock({ mimeType, data }) {
  if (!PICTURES.has(mimeType) || !isBase64(data)) return unshown('An image', mimeType, data);
  const image = h('img', { class: 'result-image', src: `data:${mimeType};base64,${data}`, alt: `Image from the tool (${mimeType})` });
  return h('figure', null, image, h('figcaption', { class: 'muted small' }, `${mimeType}, ${bytes(data.length * 0.75)}`));
}

function audioBlock({ mimeType, data }) {
  if (!SOUND.test(mimeType ?? '') || !isBase64(data)) return unshown('A sound', mimeType, data);
  const audio = h('audio', { controls: true, preload: 'metadata', src: `data:${mimeType};base64,${data}`, 'aria-label': 'Sound from the tool' });
  return h('figure', null, audio, h('figcaption', { class: 'muted small' }, `${mimeType}, ${bytes(data.length * 0.75)}`));
}

function unshown(what, mimeType, data) {
  const size = typeof data === 'string' ? `, ${bytes(data.length * 0.75)}` : '';
  return h('p', { class: 'muted' }, `${what} that can't be shown (${mimeType ?? 'unknown type'}${size}); see Raw.`);
}

function linkBlock({ uri, name, title, description }, hrefOf) {
  const text = title ?? name ?? uri ?? '';
  return h('div', { class: 'result-link' }, link(String(uri ?? ''), visible(String(text)), hrefOf),
    text !== uri && h('div', { class: 'mono small muted' }, visible(String(uri))), description && h('div', { class: 'small muted' }, description));
}

function resourceBlock({ resource = {} }, hrefOf) {
  const body = typeof resource.text === 'string' ? renderText(resource.text) : blobBlock(resource);
  return h('div', { class: 'result' }, h('div', { class: 'mono small muted' }, link(String(resource.uri ?? ''), visible(String(resource.uri ?? '')), hrefOf)), body);
}

function blobBlock({ mimeType, blob }) {
  if (PICTURES.has(mimeType)) return imageBlock({ mimeType, data: blob });
  return SOUND.test(mimeType ?? '') ? audioBlock({ mimeType, data: blob }) : unshown('A file', mimeType, blob);
}
