// Recorded reads of resources and uses of prompts. They are recorded with the server's own URIs and names.

import { quote } from '../commands.js';
import { addressOf, serverHref } from '../servers/offer.js';
import { contentsView, messagesView } from './preview.js';

/** What was read or got, as `{ kind, key }` with an address that names the server; null for calls of tools. */
function entryOf({ tool, server, source, asked, arguments: given }) {
  const params = asked ?? given;
  // A server may have a tool of the same name, whose calls have other arguments.
  if (!server || !source || params === null || typeof params !== 'object') return null;
  if (tool === 'resources/read' && typeof params.uri === 'string') return { kind: 'resource', key: addressOf(server, params.uri) };
  if (tool === 'prompts/get' && typeof params.name === 'string') return { kind: 'prompt', key: `${server}__${params.name}`, name: params.name, given: params.arguments ?? {} };
  return null;
}

/** The link to the entry on the page of its server, or null. */
export function entryHref(call) {
  const entry = entryOf(call);
  return entry && serverHref(call.server, { [entry.kind]: entry.name ?? entry.key });
}

/** The request of the API that does it again: `{ path, body }`, or null. */
export function contentRequest(call) {
  const entry = entryOf(call);
  if (!entry) return null;
  return entry.kind === 'resource' ? { path: '/api/resources/read', body: { uri: entry.key } } : { path: '/api/prompts/get', body: { name: entry.key, arguments: entry.given } };
}

/** The command that does it again, or null. */
export function contentCommand(call) {
  const entry = entryOf(call);
  if (!entry) return null;
  if (entry.kind === 'resource') return `toolgate read ${quote(entry.key)}`;
  const words = [entry.key, ...Object.entries(entry.given).map(([name, value]) => `${name}=${value}`)];
  // A server's names must not be read as options.
  const isOption = words.some((word) => word.startsWith('-'));
  return ['toolgate', 'prompt', ...(isOption ? ['--'] : []), ...words.map(quote)].join(' ');
}

/** Makes links of a recorded result lead to the page of its server; undefined for calls of other tools. */
export function hrefsOf({ server }) {
  return server ? (uri) => serverHref(server, { resource: addressOf(server, uri) }) : undefined;
}

/** The result as its preview, or null for calls of tools. */
export function contentView(call) {
  const entry = entryOf(call);
  if (!entry || call.result_cut) return null;
  const hrefOf = hrefsOf(call);
  return entry.kind === 'resource' ? contentsView(call.result, hrefOf) : messagesView(call.result, hrefOf);
}
