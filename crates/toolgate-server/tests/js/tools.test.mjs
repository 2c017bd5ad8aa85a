import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callUrl, curl, quote, toolgateCall } from '../../assets/js/commands.js';
import { byTag, fillPath, routeMatches, routesOf, sample } from '../../assets/js/openapi/document.js';
import { asksFirst, badgesOf, errorClasses, matches, recent, rowsOf, sorted } from '../../assets/js/tools/stats.js';

const tool = (name, annotations = {}, more = {}) => ({ name, source: 'builtin', description: 'Does things', annotations, needs_approval: false, ...more });

test('rates and shares are those of the last minutes', () => {
  const series = [{ calls: 100, failures: 100 }, ...Array.from({ length: 6 }, () => ({ calls: 5, failures: 1 }))];
  assert.deepEqual(recent({ series }, 10, 1), { calls: 30, failures: 6, share: 0.2, perMinute: 30 });
  assert.equal(recent({ series: series.slice(1) }, 10, 5).perMinute, 30, 'of one minute there is');
  assert.equal(recent({ series: series.slice(5) }, 10, 5).perMinute, 10, 'never less than a minute');
  assert.deepEqual(recent(null, 10, 5), { calls: 0, failures: 0, share: null, perMinute: 0 });
});

test('tools sort by number downwards, by name upwards, and turn around', () => {
  const stats = { step_s: 10, tools: [{ tool: 'b', p95_ms: 9, series: [{ calls: 2, failures: 1 }] }, { tool: 'c', p95_ms: 3, series: [{ calls: 4, failures: 0 }] }] };
  const rows = rowsOf([tool('b'), tool('a'), tool('c')], stats);
  const names = (column, reverse) => sorted(rows, column, reverse).map((row) => row.tool.name).join('');
  assert.deepEqual([names('name'), names('calls'), names('errors'), names('p95'), names('p95', true), names('source')], ['abc', 'cba', 'bca', 'bca', 'acb', 'abc']);
});

test('search wants every word, anywhere', () => {
  assert.ok(matches(tool('read_file', {}, { source: 'mcp:files' }), 'FILES does'));
  assert.ok(!matches(tool('read_file'), 'read write'));
  assert.ok(matches(tool('x'), ''));
});

test('only what may do harm asks first', () => {
  const table = [
    [tool('a', { destructive: true }), true], [tool('a', { destructive: true, read_only: true }), false], [tool('a', { destructive: null }), false],
    [tool('a'), false], [tool('a', { read_only: true }, { needs_approval: true }), true],
  ];
  for (const [one, wanted] of table) assert.equal(asksFirst(one), wanted);
  assert.deepEqual(badgesOf(tool('a', { destructive: true }, { needs_approval: true })).map(({ text }) => text), ['destructive', 'needs approval']);
});

test('kinds of failure come most frequent first', () => {
  assert.deepEqual(errorClasses({ calls: 10, errors: { timeout: 1, tool_error: 4, denied: 0 } }).map(({ kind, share }) => [kind, share]), [['tool_error', 0.4], ['timeout', 0.1]]);
  assert.deepEqual(errorClasses(null), []);
});

test('commands are quoted so that a shell reads them as they are', () => {
  assert.equal(quote('plain-word.1'), 'plain-word.1');
  assert.equal(quote("it's $HOME `x`"), "'it'\\''s $HOME `x`'");
  assert.equal(quote(''), "''");
  assert.equal(toolgateCall('echo', { a: "it's" }), `toolgate call echo '{"a":"it'\\''s"}'`);
  assert.equal(curl({ url: 'http://h/api/tools' }), 'curl -sS http://h/api/tools');
  assert.equal(curl({ method: 'POST', url: callUrl('http://h', 'a b'), body: '{}', token: true }),
    `curl -sS http://h/api/tools/a%20b/call -H "Authorization: Bearer $TOOLGATE_TOKEN" -H 'content-type: application/json' -d '{}'`);
  assert.equal(curl({ method: 'DELETE', url: 'http://h/x' }), 'curl -sS -X DELETE http://h/x');
});

const DOCUMENT = {
  tags: [{ name: 'second' }, { name: 'first' }],
  paths: {
    '/a/{id}': {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
      get: { tags: ['first'], summary: 'Reads it.', responses: { 200: { description: 'it', content: { 'application/json': { schema: { $ref: '#/components/schemas/A' } } } } } },
      post: { summary: 'Changes\nit.', description: 'In place.\n\nNow.', requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/A' } } } } },
    },
  },
  components: { schemas: { A: { type: 'object', required: ['n'], properties: { n: { type: 'integer', minimum: 3 }, self: { $ref: '#/components/schemas/A' } } } } },
};

test('routes are read with their parameters, body and answers, under their tags', () => {
  const routes = routesOf(DOCUMENT);
  assert.deepEqual(routes.map(({ id, tag, summary, description }) => [id, tag, summary, description]), [['GET /a/{id}', 'first', 'Reads it.', ''], ['POST /a/{id}', 'other', 'Changes it.', 'In place.\n\nNow.']]);
  assert.deepEqual(routes[1].body.example, { n: 3 });
  assert.equal(routes[0].parameters[0].name, 'id');
  assert.deepEqual(byTag(DOCUMENT, routes).map(({ name }) => name), ['first', 'other']);
  assert.ok(routeMatches(routes[0], 'get reads'));
  assert.ok(!routeMatches(routes[0], 'post'));
});

test('a sample of a schema that refers to itself ends', () => {
  assert.deepEqual(sample({ properties: { self: { $ref: '#/x' } } }, { x: { properties: { self: { $ref: '#/x' } } } }, 2), { self: { self: {} } });
  const table = [[{ type: 'string' }, ''], [{ type: ['null', 'boolean'] }, false], [{ enum: ['b', 'a'] }, 'b'], [{ oneOf: [{ const: 7 }] }, 7], [{ type: 'array' }, []], [{}, {}]];
  for (const [schema, wanted] of table) assert.deepEqual(sample(schema, {}), wanted);
});

test('a path is filled in and escaped, and says what it lacks', () => {
  const parameters = [{ name: 'id', in: 'path' }, { name: 'q', in: 'query' }, { name: 'r', in: 'query' }];
  assert.deepEqual(fillPath('/a/{id}', parameters, { 'path id': 'x/y', 'query q': 'a&b', 'query r': '' }), { path: '/a/x%2Fy?q=a%26b', missing: [] });
  assert.deepEqual(fillPath('/a/{id}', parameters, {}), { path: '/a/{id}', missing: ['id'] });
});
