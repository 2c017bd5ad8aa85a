import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOf, fileName, shownAs, sizeOf } from '../../assets/js/content/kinds.js';
import { contentCommand, contentRequest, entryHref, hrefsOf } from '../../assets/js/content/recorded.js';
import { addressOf, countsOf, expand, findPrompt, findResource, labelOf, matchesEntry, namedServer, ofServer, promptSchema, resourceHref, serverHref, variablesOf } from '../../assets/js/servers/offer.js';

const base64 = (text) => Buffer.from(text).toString('base64');

test('each item of contents is shown in its own way', () => {
  const table = [
    [{ mimeType: 'text/markdown', text: '# a' }, 'markdown'], [{ mimeType: 'Text/Markdown; charset=utf-8', text: '' }, 'markdown'], [{ uri: 'file:///a.md', text: '# a' }, 'markdown'],
    [{ uri: 'file:///a.md', mimeType: 'text/plain', text: '# a' }, 'text'], [{ mimeType: 'application/json', text: '{"a":1}' }, 'json'], [{ mimeType: 'application/ld+json', text: '[]' }, 'json'],
    [{ mimeType: 'text/plain', text: ' {"a":1}' }, 'json'], [{ mimeType: 'application/json', text: '{"a":' }, 'text'], [{ text: '12' }, 'text'],
    [{ mimeType: 'text/html', text: '<script>1</script>' }, 'text'], [{ mimeType: 'text/html', text: '{}' }, 'text'], [{ mimeType: 'image/svg+xml', text: '<svg/>' }, 'text'],
    [{ mimeType: 'image/png', blob: 'AAAA' }, 'picture'], [{ mimeType: 'image/png; x=y', blob: 'AAAA' }, 'picture'], [{ mimeType: 'image/svg+xml', blob: 'AAAA' }, 'file'],
    [{ mimeType: 'text/html', blob: base64('<b>') }, 'text'], [{ mimeType: 'text/plain', blob: '//79' }, 'file'], [{ mimeType: 'audio/wav', blob: 'AAAA' }, 'sound'],
    [{ mimeType: 'audio/"><script>', blob: 'AAAA' }, 'file'], [{ mimeType: 'image/png', blob: 'AA"onerror=' }, 'file'], [{ mimeType: 'application/pdf', blob: 'AAAA' }, 'file'],
    [{ mimeType: 7, blob: 'AAAA' }, 'file'], [{ uri: 'x:1' }, 'nothing'], [{ text: 1, blob: 2 }, 'nothing'],
  ];
  for (const [item, kind] of table) assert.equal(shownAs(item).kind, kind, JSON.stringify(item));
  assert.equal(shownAs({ mimeType: 'text/plain', blob: base64('äöü') }).text, 'äöü');
});

test('sizes and bytes are those of the content, not of its encoding', () => {
  for (const text of ['', 'a', 'ab', 'abc', 'äöü', 'x'.repeat(1000)]) {
    assert.equal(sizeOf({ text }), Buffer.byteLength(text));
    assert.equal(sizeOf({ blob: base64(text) }), Buffer.byteLength(text));
    assert.deepEqual(Buffer.from(bytesOf({ blob: base64(text) })), Buffer.from(text));
  }
  assert.equal(bytesOf({ blob: 'not base64!' }), null);
  assert.equal(bytesOf({ blob: 'AAAAA' }), null);
});

test('a download has a harmless name', () => {
  const table = [
    [{ uri: 'file:///home/me/notes.txt' }, 'notes.txt'], [{ uri: 'memo:readme', mimeType: 'text/markdown' }, 'readme.md'], [{ uri: 'x://a/b%20c.pdf?q=1#top' }, 'b c.pdf'],
    [{ uri: 'file:///../../.bashrc' }, 'bashrc'], [{ uri: 'x:a%2F..%2Fb' }, 'a_.._b'], [{ uri: 'x:exe\u202etxt.pdf' }, 'exe_txt.pdf'], [{ uri: 'x:///' }, 'resource'],
    [{ mimeType: 'image/jpeg' }, 'resource.jpg'], [{ uri: 'x:100%' }, '100_'], [{ uri: 'x:a', mimeType: 'application/x-evil;a' }, 'a'],
  ];
  for (const [item, name] of table) assert.equal(fileName(item), name, JSON.stringify(item));
  assert.ok(fileName({ uri: `x:${'.a'.repeat(200)}.txt` }).length <= 80);
});

test('an address names its server as the gateway writes it', () => {
  const table = [
    ['files', 'file:///a b?c#d', 'toolgate://files/file:///a b?c#d'], ["my server/ä(!'*)", 'x:1', 'toolgate://my%20server%2F%C3%A4%28%21%27%2A%29/x:1'],
    ['maps', 'ui://view/main', 'ui://toolgate/maps/view/main'], ['maps', 'toolgate://b/c:d', 'toolgate://maps/toolgate://b/c:d'],
  ];
  for (const [server, uri, address] of table) {
    assert.equal(addressOf(server, uri), address);
    assert.equal(namedServer(address), server);
  }
  for (const other of ['file:///a', 'toolgate://a', 'toolgate:///a', 'ui://view/main', 'toolgate://%zz/a']) assert.equal(namedServer(other), null, other);
});

test('entries are found under every name they have', () => {
  const list = { resources: [{ uri: 'x:1', server: 'a' }, { uri: 'toolgate://b/x:1', server: 'b' }], templates: [{ uriTemplate: 'y:{z}', server: 'b' }], prompts: [{ name: 'p', server: 'a' }, { name: 'b__p', server: 'b' }] };
  const [a, b] = ['a', 'b'].map((server) => ofServer(server, list));
  assert.deepEqual([a.resources.length, a.templates.length, a.prompts.length], [1, 0, 1]);
  assert.equal(findResource('a', a.resources, 'toolgate://a/x:1'), list.resources[0]);
  assert.equal(findResource('b', b.resources, 'toolgate://b/x:1'), list.resources[1]);
  assert.equal(findResource('b', b.resources, 'x:2'), null);
  assert.equal(findPrompt('b', b.prompts, 'p'), list.prompts[1]);
  assert.equal(findPrompt('b', b.prompts, 'b__p'), list.prompts[1]);
  assert.equal(findPrompt('b', b.prompts, 'q'), null);
  assert.deepEqual([...countsOf(list)], [['a', { resources: 1, prompts: 1 }], ['b', { resources: 2, prompts: 1 }]]);
  assert.equal(serverHref('a/b', { resource: 'x:1?y&z' }), '#/servers/a%2Fb?resource=x%3A1%3Fy%26z');
});

test('no link of a server leads to another one', () => {
  // A recorded result has the server's own URIs, one of which may look like an address.
  assert.equal(hrefsOf({ server: 'a' })('toolgate://b/x:1'), serverHref('a', { resource: 'toolgate://a/toolgate://b/x:1' }));
  assert.equal(hrefsOf({ server: null }), undefined);
  // The gateway has rewritten those of a new result.
  assert.equal(resourceHref('a', 'x:1'), '#/servers/a?resource=x%3A1');
  assert.equal(resourceHref('a', 'toolgate://b/x:1'), serverHref('b', { resource: 'toolgate://b/x:1' }));
});

test('an entry has a name and is searched by all of its texts', () => {
  const table = [[{ title: 'T', name: 'n', uri: 'u' }, 'T'], [{ title: ' ', name: 'n' }, 'n'], [{ uri: 'u' }, 'u'], [{ uriTemplate: 't' }, 't'], [{ title: 7 }, '(without a name)']];
  for (const [entry, label] of table) assert.equal(labelOf(entry), label);
  assert.ok(matchesEntry({ name: 'Read', uri: 'x:One', description: 5 }, 'one READ'));
  assert.ok(!matchesEntry({ name: 'Read' }, 'read two'));
});

test('the arguments of a prompt become a schema, whatever the server lists', () => {
  const schema = promptSchema({ arguments: [{ name: 'a', required: true, description: 'A' }, { name: '__proto__', required: 'yes' }, { name: '' }, null, { name: 7 }] });
  assert.deepEqual(Object.keys(schema.properties), ['a', '__proto__']);
  assert.deepEqual(schema.required, ['a']);
  assert.equal(schema.properties.a.description, 'A');
  assert.deepEqual(promptSchema({ arguments: 'none' }).properties, {});
});

test('templates are filled in as RFC 6570 has it', () => {
  const values = { var: 'value', hello: 'Hello World!', path: '/foo/bar', x: '1024', y: '768', empty: '' };
  const table = [
    ['{var}', 'value'], ['{hello}', 'Hello%20World%21'], ['{+hello}', 'Hello%20World!'], ['{+path}/here', '/foo/bar/here'], ['{#path}', '#/foo/bar'], ['X{.var}', 'X.value'],
    ['{/var,x}/here', '/value/1024/here'], ['{;x,y}', ';x=1024;y=768'], ['{?x,y}', '?x=1024&y=768'], ['?fixed=yes{&x}', '?fixed=yes&x=1024'], ['{x,y}', '1024,768'],
    ['{var:3}', 'val'], ['{/var*}', '/value'], ['{missing}', ''], ['{?empty}', ''], ['plain', 'plain'], ['{', '{'], ['{toString}', ''],
  ];
  for (const [template, uri] of table) assert.equal(expand(template, values), uri, template);
  assert.deepEqual(variablesOf('a:{x}/{y,x}{?z*,w:3}{}'), ['x', 'y', 'z', 'w']);
});

test('a recorded read leads to its entry, and can be made again', () => {
  const read = { tool: 'resources/read', server: 'a b', source: 'mcp:a b', arguments: { uri: 'x:1' } };
  const got = { tool: 'prompts/get', server: 'a', source: 'mcp:a', asked: { name: 'p', arguments: { q: "it's" } }, arguments: { name: '[REDACTED]' } };
  assert.equal(entryHref(read), '#/servers/a%20b?resource=toolgate%3A%2F%2Fa%2520b%2Fx%3A1');
  assert.deepEqual(contentRequest(read), { path: '/api/resources/read', body: { uri: 'toolgate://a%20b/x:1' } });
  assert.equal(contentCommand(read), 'toolgate read toolgate://a%20b/x:1');
  assert.equal(entryHref(got), '#/servers/a?prompt=p');
  assert.deepEqual(contentRequest(got), { path: '/api/prompts/get', body: { name: 'a__p', arguments: { q: "it's" } } });
  assert.equal(contentCommand(got), "toolgate prompt a__p 'q=it'\\''s'");
  assert.equal(contentCommand({ ...got, asked: { name: 'p', arguments: { '--config': '/x' } } }), 'toolgate prompt -- a__p --config=/x');
  for (const other of [{ ...read, tool: 'echo' }, { ...read, server: null }, { ...read, arguments: 'cut' }, { ...read, arguments: { url: 'x' } }]) {
    assert.deepEqual([entryHref(other), contentRequest(other), contentCommand(other)], [null, null, null]);
  }
});
