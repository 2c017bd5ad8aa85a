// `node content-server.mjs`: an MCP server of resources and prompts of every kind, some of which are markup that must not run.

import { createInterface } from 'node:readline';

const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAGAAAABACAIAAABqVuVZAAAAhElEQVR42u3aoQ0AMAgEQOar7tAdB13VGZDQS15/wskPkXlLWfuU0r0/AAECBAgQIECAAAECBAgQIECAhgH9dnC1HxAgQIAAAQIECBAgQIAAAQIEaBqQwcyiCAgQIECAAAECBAgQIECAAAHyH2QwsygCAgQIECBAgAABAgQIECBAgMYCPeHLAv5Ft3pwAAAAAElFTkSuQmCC';
const MARKUP = '<img src=x onerror=document.title="owned"><script>document.title="owned"</script>';

/** What is read, by URI. */
const CONTENTS = {
  'memo:readme': { mimeType: 'text/markdown', text: `# Read me\n\nSome **bold** text, a [link](https://example.org/a) and a [trap](javascript:document.title='owned').\n\n${MARKUP}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n` },
  'memo:data': { mimeType: 'application/json', text: JSON.stringify({ rooms: ['kitchen', 'hall'], count: 2, note: MARKUP }) },
  'memo:page': { mimeType: 'text/html', text: `<!doctype html><title>x</title>${MARKUP}` },
  'memo:picture': { mimeType: 'image/png', blob: PICTURE },
  'memo:drawing': { mimeType: 'image/svg+xml', blob: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=\'owned\'"/>').toString('base64') },
  'memo:long': { mimeType: 'text/plain', text: `One long line: ${'word '.repeat(400)}\n\u202eend` },
};

const RESOURCES = [
  { uri: 'memo:readme', name: 'readme', title: 'Read me', description: 'What this is about', mimeType: 'text/markdown', size: 200 },
  { uri: 'memo:data', name: 'data', title: 'Rooms', mimeType: 'application/json', annotations: { audience: ['user'], lastModified: '2026-03-01T12:00:00Z' } },
  { uri: 'memo:page', name: MARKUP, description: MARKUP, mimeType: 'text/html' },
  { uri: 'memo:picture', name: 'picture', title: 'Picture', mimeType: 'image/png' },
  { uri: 'memo:drawing', name: 'drawing', title: 'Drawing', mimeType: 'image/svg+xml' },
  { uri: 'memo:long', name: 'long', title: 'A long text', mimeType: 'text/plain' },
  { uri: 'memo:gone', name: 'gone', title: 'Gone by now' },
];

const PROMPTS = [
  { name: 'review', title: 'Review', description: 'Asks for a review of a memo', arguments: [
    { name: 'memo', title: 'Memo', description: 'The `uri` of a memo', required: true }, { name: 'tone', description: MARKUP }] },
  { name: 'plain', description: 'Takes no arguments' },
];

const failure = (code, message) => ({ error: { code, message } });

function read({ uri }) {
  const item = CONTENTS[uri] ?? (/^memo:note\/\w+$/.test(uri) ? { mimeType: 'text/plain', text: `The note ${uri.slice(10)}` } : null);
  return item ? { result: { contents: [{ uri, ...item }] } } : failure(-32002, `There is no memo ${uri}`);
}

function prompt({ name, arguments: given = {} }) {
  if (name === 'plain') return { result: { messages: [{ role: 'user', content: { type: 'text', text: MARKUP } }] } };
  return { result: { description: 'A review', messages: [
    { role: 'user', content: { type: 'text', text: `Review this memo${given.tone ? ` in a ${given.tone} tone` : ''}.` } },
    { role: 'user', content: { type: 'resource_link', uri: given.memo, name: 'The memo' } },
    { role: 'user', content: { type: 'resource', resource: { uri: 'memo:data', ...CONTENTS['memo:data'] } } },
    { role: 'assistant', content: { type: 'text', text: 'Gladly.' } },
  ] } };
}

const METHODS = {
  initialize: () => ({ result: { protocolVersion: '2025-11-25', capabilities: { resources: {}, prompts: {}, tools: {} }, serverInfo: { name: 'content', version: '1' },
    instructions: `Read \`memo:readme\` first.\n\n- Memos are **short**.\n- ${MARKUP}` } }),
  ping: () => ({ result: {} }),
  'tools/list': () => ({ result: { tools: [] } }),
  'resources/list': () => ({ result: { resources: RESOURCES } }),
  'resources/templates/list': () => ({ result: { resourceTemplates: [{ uriTemplate: 'memo:note/{id}', name: 'note', title: 'A note', description: 'A note by its number' }] } }),
  'resources/read': read,
  'prompts/list': () => ({ result: { prompts: PROMPTS } }),
  'prompts/get': prompt,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = METHODS[method]?.(params ?? {}) ?? failure(-32601, 'Method not found');
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
}
