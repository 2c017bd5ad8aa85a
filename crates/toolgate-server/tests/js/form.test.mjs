import assert from 'node:assert/strict';
import { test } from 'node:test';
import { childPath, formModel, hintOf, nearestShown, placeViolations, typeName } from '../../assets/js/form/schema.js';
import { bestVariant, canShow, extras, initialValue, parseJson, parseTyped } from '../../assets/js/form/value.js';
import { violations } from '../../assets/js/form/check.js';
import { at } from '../../assets/js/form/path.js';

const object = (properties, more = {}) => ({ type: 'object', properties, ...more });
const only = (schema, root = {}) => formModel({ ...root, ...object({ x: schema }) }).fields[0];

test('each form of schema becomes its kind of field', () => {
  const table = [
    [{ type: 'string' }, 'string'], [{ type: 'integer' }, 'integer'], [{ type: 'number' }, 'number'], [{ type: 'boolean' }, 'boolean'],
    [{ enum: ['a', 1, null] }, 'enum'], [{ const: 'v2' }, 'enum'], [{ oneOf: [{ const: 1 }, { const: 2 }] }, 'enum'],
    [{ type: 'array', items: { type: 'string' } }, 'array'], [{ type: 'array', items: object({ a: {} }) }, 'array'],
    [{ type: 'array' }, 'json'], [{ type: 'array', prefixItems: [{}], items: { type: 'string' } }, 'json'],
    [object({ a: { type: 'string' } }), 'object'], [{ type: 'object' }, 'json'], [{}, 'json'], [true, 'json'], [{ type: ['string', 'number'] }, 'json'],
    [{ type: ['string', 'null'] }, 'string'], [{ anyOf: [{ type: 'integer' }, { type: 'null' }] }, 'integer'],
    [{ oneOf: [object({ a: {} }), object({ b: {} })] }, 'choice'], [{ allOf: [{ type: 'integer' }, { minimum: 3 }] }, 'integer'],
    [{ $ref: '#/$defs/d' }, 'boolean'],
  ];
  for (const [schema, kind] of table) assert.equal(only(schema, { $defs: { d: { type: 'boolean' } } }).kind, kind, JSON.stringify(schema));
});

test('null beside a type makes the field nullable', () => {
  assert.equal(only({ type: ['string', 'null'] }).nullable, true);
  assert.equal(only({ anyOf: [{ type: 'integer' }, { type: 'null' }] }).nullable, true);
  assert.equal(only({ type: 'string' }).nullable, false);
});

test('required fields come first, the others in the order of the schema', () => {
  const model = formModel(object({ a: {}, b: {}, c: {} }, { required: ['c'] }));
  assert.deepEqual(model.fields.map(({ key, required }) => [key, required]), [['c', true], ['a', false], ['b', false]]);
});

test('a schema that is no object is a form without fields', () => {
  for (const schema of [{}, true, null, { type: 'string' }, { type: 'object' }]) {
    assert.equal(formModel(schema).kind, 'object');
    assert.deepEqual(formModel(schema).fields, []);
  }
});

test('no properties named means any, none named means none', () => {
  const table = [[{ type: 'object' }, true], [{}, true], [{ type: 'object', properties: {} }, false], [{ type: 'object', additionalProperties: false }, false]];
  for (const [schema, free] of table) assert.equal(formModel(schema).free, free, JSON.stringify(schema));
});

test('a schema that refers to itself ends', () => {
  const tree = { type: 'object', properties: { next: { $ref: '#' }, all: { type: 'array', items: { $ref: '#' } } } };
  assert.ok(JSON.stringify(formModel(tree)).length < 200_000);
  const loop = { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } };
  assert.deepEqual(formModel(loop).fields, []);
});

test('what a schema asks for is said in words', () => {
  const table = [
    [{ minimum: 0, maximum: 100 }, '0 to 100'], [{ minimum: 1 }, 'at least 1'], [{ exclusiveMaximum: 3, multipleOf: 2 }, 'less than 3, a multiple of 2'],
    [{ minLength: 1 }, 'at least 1 character'], [{ maxItems: 5, uniqueItems: true }, 'at most 5 items, no duplicate items'], [{}, ''],
  ];
  for (const [schema, wanted] of table) assert.equal(hintOf(schema), wanted);
  assert.equal(typeName({ type: 'array', items: { $ref: '#/components/schemas/Tool' } }), 'list of Tool');
});

test('paths are written as the gateway writes them', () => {
  assert.equal(childPath('', 'level'), 'level');
  assert.equal(childPath(childPath('o', 'inner'), 'depth'), 'o.inner.depth');
  assert.equal(childPath('a', 1), 'a[1]');
  assert.equal(childPath(childPath('a', 1), 'name'), 'a[1].name');
});

test('a violation is shown at its field or at the nearest that holds it', () => {
  const shown = new Set(['level', 'o', 'o.inner', 'a', 'a[0]']);
  const table = [['level', 'level'], ['o.inner.depth', 'o.inner'], ['a[1]', 'a'], ['a[0].x', 'a[0]'], ['unknown', ''], ['arguments', ''], ['', '']];
  for (const [path, wanted] of table) assert.equal(nearestShown(path, shown), wanted, path);
});

test('a message away from its field says whose it is', () => {
  const placed = placeViolations([
    { parameter: 'level', message: 'must be at most 100' }, { parameter: 'o.depth', message: 'must be integer' },
    { parameter: 'arguments', message: 'has unknown properties: z' }, { parameter: '', message: 'and 3 more' },
  ], new Set(['level', 'o']));
  assert.deepEqual([...placed], [['level', ['must be at most 100']], ['o', ['o.depth: must be integer']], ['', ['has unknown properties: z', 'and 3 more']]]);
});

test('a form starts with defaults and with constants that must be given', () => {
  const model = formModel(object({
    a: { default: 5 }, b: { type: 'string' }, v: { const: 'v2' }, o: object({ x: { default: 1 } }),
    list: { type: 'array', minItems: 2, items: { type: 'string' } },
  }, { required: ['v', 'list'] }));
  assert.deepEqual(initialValue(model), { v: 'v2', list: ['', ''], a: 5, o: { x: 1 } });
});

test('constants alone do not begin an object that need not be given', () => {
  const card = object({ kind: { const: 'card' }, number: { type: 'string' } }, { required: ['kind'] });
  assert.deepEqual(initialValue(formModel(object({ pay: card }))), {});
  assert.deepEqual(initialValue(formModel(object({ pay: card }, { required: ['pay'] }))), { pay: { kind: 'card' } });
});

test('what is typed becomes a value, and what cannot stays text for the check to judge', () => {
  const table = [
    ['string', '', undefined], ['string', ' a ', ' a '], ['integer', '12', 12], ['number', '-1.5e3', -1500], ['number', ' ', undefined],
    ['integer', 'twelve', 'twelve'], ['number', '1e999', '1e999'], ['number', '0x10', '0x10'], ['number', '.5', 0.5],
  ];
  for (const [kind, typed, wanted] of table) assert.equal(parseTyped(kind, typed), wanted, `${kind} ${typed}`);
});

test('invalid JSON is reported with its position', () => {
  assert.deepEqual(parseJson(' '), { value: undefined });
  assert.deepEqual(parseJson('{"a": 1}'), { value: { a: 1 } });
  const table = [
    ['{\n  "a": nope\n}', 'unexpected "nope" (line 2, column 8).'], ['{"a": ', 'it ends too early.'], ['{"a": 1', 'it ends too early.'],
    ['{"a" 1}', 'unexpected "1" (line 1, column 6).'], ['{"a": 1,}', 'unexpected "}" (line 1, column 9).'], ['{"a": "b', 'it ends too early.'],
    ["{'a': 1}", `unexpected "'" (line 1, column 2).`], ['{} x', 'unexpected "x" (line 1, column 4).'],
  ];
  for (const [typed, wanted] of table) assert.equal(parseJson(typed).error, `This is not valid JSON: ${wanted}`, typed);
});

test('a value opens the variant it fits', () => {
  const card = object({ kind: { const: 'card' }, number: { type: 'string' } }, { required: ['kind', 'number'] });
  const invoice = object({ kind: { const: 'invoice' }, to: { type: 'string' } }, { required: ['kind', 'to'] });
  const { variants } = only({ oneOf: [card, invoice] });
  assert.deepEqual(variants.map(({ label }) => label), ['kind: card', 'kind: invoice']);
  assert.equal(bestVariant(variants, { kind: 'invoice' }), 1);
  assert.equal(bestVariant(variants, { number: '1' }), 0);
  assert.equal(bestVariant(variants, undefined), 0);
  assert.equal(bestVariant(only({ anyOf: [{ type: 'string' }, { type: 'integer' }] }).variants, 7), 1);
});

test('a form shows a value only if it loses nothing of it', () => {
  const model = formModel(object({ s: { type: 'string' }, n: { type: 'number' }, b: { type: 'boolean' }, l: { type: 'array', items: { type: 'integer' } }, any: {} }));
  const table = [
    [{}, true], [{ s: 'a', n: 1, b: true, l: [1], any: [null] }, true], [{ n: 'typed' }, true], [{ other: 1 }, true],
    [{ s: 5 }, false], [{ s: null }, false], [{ b: 'yes' }, false], [{ l: 'x' }, false], [{ l: [null] }, false],
  ];
  for (const [value, wanted] of table) assert.equal(canShow(model, value), wanted, JSON.stringify(value));
  assert.deepEqual(extras(model, { s: 'a', other: 1 }), { other: 1 });
});

test('a hostile property name stays a name', () => {
  const model = formModel(JSON.parse('{"type":"object","properties":{"__proto__":{"default":1}}}'));
  const value = initialValue(model);
  assert.deepEqual(Object.keys(value), ['__proto__']);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  assert.equal(at({}, 'constructor.name'), undefined);
});

test('a value is found by its path', () => {
  const value = { o: { a: [{ x: 1 }] }, 'odd name': 2 };
  assert.equal(at(value, 'o.a[0].x'), 1);
  assert.equal(at(value, 'odd name'), 2);
  assert.equal(at(value, 'o.b.c'), undefined);
});

test('several of a few values are ticked', () => {
  const names = { type: 'array', items: { enum: ['a', 'b'] } };
  assert.equal(only(names).kind, 'array');
  assert.equal(only({ ...names, uniqueItems: true }).kind, 'set');
  assert.equal(formModel(object({ x: names }), { isQuestion: true }).fields[0].kind, 'set');
  assert.ok(canShow(only({ ...names, uniqueItems: true }), ['b', 'a']));
  assert.ok(!canShow(only({ ...names, uniqueItems: true }), ['b', 'b']));
  assert.deepEqual(only({ enum: [1, 2], enumNames: ['one', 'two'] }).labels, ['one', 'two']);
});

test('an answer to a question is checked in the page', () => {
  const schema = object({
    name: { type: 'string', minLength: 2, maxLength: 4 }, mail: { type: 'string', format: 'email' }, page: { type: 'string', format: 'uri' },
    day: { type: 'string', format: 'date' }, at: { type: 'string', format: 'date-time' }, count: { type: 'integer', minimum: 1, maximum: 9 },
    ratio: { type: 'number' }, sure: { type: 'boolean' }, color: { oneOf: [{ const: 'r', title: 'Red' }] },
    pets: { type: 'array', minItems: 1, maxItems: 2, items: { anyOf: [{ const: 'cat' }, { const: 'dog' }, { const: 'emu' }] } },
  }, { required: ['name'] });
  const right = { name: 'Ada', mail: 'a@b', page: 'https://x/', day: '2024-02-29', at: '2026-11-16T08:30:00.5+01:00', count: 9, ratio: 0.5, sure: false, color: 'r', pets: ['cat'] };
  assert.deepEqual(violations(schema, right), []);
  const table = [
    ['name', 'A'], ['name', 'Adaline'], ['mail', 'a@'], ['mail', 'a b@c'], ['page', 'x'], ['day', '2023-02-29'], ['day', '16.11.2026'], ['at', '2026-11-16T08:30:00'],
    ['at', '2026-11-16T25:30:00Z'], ['count', 10], ['count', 1.5], ['count', 'x'], ['ratio', 'x'], ['sure', 'x'], ['color', 'b'], ['pets', []], ['pets', ['cat', 'dog', 'emu']], ['pets', ['cow']],
  ];
  for (const [key, value] of table) assert.deepEqual(violations(schema, { ...right, [key]: value }).map(({ parameter }) => parameter), [key], `${key} ${value}`);
  assert.deepEqual(violations(schema, {}), [{ parameter: 'name', message: 'is missing' }]);
  assert.deepEqual(violations(null, {}), []);
});
