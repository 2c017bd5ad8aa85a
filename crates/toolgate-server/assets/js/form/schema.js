// Builds the model of a form from a JSON Schema. Schemas come from tools, so depth and number of fields are bounded.

const MAX_DEPTH = 6;
const MAX_FIELDS = 200;
const MAX_TEXT_LENGTH = 600;
const MAX_TICKS = 30;

/**
 * The model of one value. `kind` is string, number, integer, boolean, enum, set, array, object, choice or json. The last is a
 * JSON editor for values that a form can't show. With `isQuestion`, the form is for a person who answers a server's question
 * and doesn't know its schema.
 */
export function formModel(schema, { isQuestion = false } = {}) {
  const builder = new Builder(schema, isQuestion);
  const root = builder.node(schema, { key: '', required: true, depth: 0 });
  // Arguments are always an object, even if a careless schema doesn't say so.
  if (root.kind === 'object' || root.kind === 'choice') return root;
  return { ...root, kind: 'object', fields: [], free: true };
}

/** The path as the gateway writes it in a violation: `level`, `o.inner.depth`, `a[1]`. */
export function childPath(parent, key) {
  if (typeof key === 'number') return `${parent}[${key}]`;
  return parent === '' ? key : `${parent}.${key}`;
}

/** The field to show a violation at: the one it names, or the nearest one that contains it, or "" for the whole form. */
export function nearestShown(path, shown) {
  let candidate = path === 'arguments' ? '' : path;
  while (candidate !== '' && !shown.has(candidate)) {
    const cut = Math.max(candidate.lastIndexOf('.'), candidate.lastIndexOf('['));
    candidate = cut > 0 ? candidate.slice(0, cut) : '';
  }
  return candidate;
}

/** Groups violations by the field they are shown at. If the violation is deeper, its message begins with the path. */
export function placeViolations(violations, shown) {
  const placed = new Map();
  for (const { parameter, message } of violations) {
    const at = nearestShown(parameter ?? '', shown);
    const inside = at !== parameter && parameter && parameter !== 'arguments';
    const words = inside ? `${parameter}: ${message}` : message;
    placed.set(at, [...(placed.get(at) ?? []), words]);
  }
  return placed;
}

class Builder {
  constructor(root, isQuestion) {
    this.root = root;
    this.isQuestion = isQuestion;
    this.count = 0;
  }

  node(schema, { key, required, depth }) {
    const plain = resolveSchema(schema, this.root);
    const { schema: one, nullable } = withoutNull(plain);
    this.count += 1;
    const base = {
      isQuestion: this.isQuestion,
      key,
      required,
      nullable,
      title: text(one.title),
      description: text(one.description),
      default: one.default,
      hint: hintOf(one),
    };
    if (depth > MAX_DEPTH || this.count > MAX_FIELDS) return { ...base, kind: 'json', typeName: typeName(one) };
    return { ...base, ...this.kind(one, depth), typeName: typeName(one) };
  }

  kind(schema, depth) {
    if ('const' in schema) return { kind: 'enum', options: [schema.const] };
    if (Array.isArray(schema.enum)) return { kind: 'enum', options: schema.enum.slice(0, 500), labels: namesOf(schema) };
    const variants = schema.oneOf ?? schema.anyOf;
    if (Array.isArray(variants) && variants.length) return this.choice(schema, variants, depth);
    switch (guessType(schema)) {
      case 'string':
        return { kind: 'string', format: schema.format ?? null, long: isLong(schema), example: exampleOf(schema) };
      case 'integer':
      case 'number':
        return { kind: guessType(schema), example: exampleOf(schema) };
      case 'boolean':
        return { kind: 'boolean' };
      case 'array':
        return this.array(schema, depth);
      case 'object':
        return this.object(schema, depth);
      default:
        return { kind: 'json' };
    }
  }

  choice(schema, variants, depth) {
    const resolved = variants.slice(0, 20).map((variant) => resolveSchema(variant, this.root));
    if (resolved.every((variant) => 'const' in variant)) {
      return {
        kind: 'enum',
        options: resolved.map((variant) => variant.const),
        labels: resolved.map((variant) => text(variant.title) || text(variant.description)),
      };
    }
    const { oneOf: _one, anyOf: _any, ...shared } = schema;
    const models = resolved.map((variant) =>
      this.node(merge(shared, variant), { key: '', required: true, depth: depth + 1 }),
    );
    return { kind: 'choice', variants: models.map((model, index) => ({ label: labelOf(model, index), model })) };
  }

  array(schema, depth) {
    const items = schema.items;
    const isSimple = items !== null && typeof items === 'object' && !Array.isArray(items) && !schema.prefixItems;
    if (!isSimple) return { kind: 'json' };
    const item = this.node(items, { key: '', required: true, depth: depth + 1 });
    const bounds = { min: schema.minItems ?? 0, max: schema.maxItems ?? Infinity };
    // Distinct values of a short list are ticked rather than added one by one.
    if (item.kind === 'enum' && item.options.length <= MAX_TICKS && (schema.uniqueItems || this.isQuestion)) return { kind: 'set', item, ...bounds };
    return { kind: 'array', item, ...bounds };
  }

  object(schema, depth) {
    const properties = Object.entries(schema.properties ?? {}).filter(([, value]) => isSchema(value) || value === true);
    if (properties.length === 0 && depth > 0) return { kind: 'json' };
    const required = new Set(Array.isArray(schema.required) ? schema.required : []);
    const fields = properties.map(([key, value]) =>
      this.node(value, { key, required: required.has(key), depth: depth + 1 }),
    );
    // Required properties come first; otherwise the tool's own order is kept.
    fields.sort((a, b) => Number(b.required) - Number(a.required));
    // A schema without `properties` accepts any property; one with an empty `properties` has none.
    return { kind: 'object', fields, free: schema.properties === undefined && schema.additionalProperties !== false };
  }
}

/** The schema with references into the document `root` resolved and `allOf` merged. */
export function resolveSchema(schema, root, left = 8) {
  if (!isSchema(schema)) return {};
  if (typeof schema.$ref === 'string' && left > 0) {
    const { $ref, ...rest } = schema;
    return merge(resolveSchema(pointer(root, $ref), root, left - 1), rest);
  }
  if (Array.isArray(schema.allOf) && left > 0) {
    const { allOf, ...rest } = schema;
    return allOf.slice(0, 20).reduce((whole, part) => merge(whole, resolveSchema(part, root, left - 1)), rest);
  }
  return schema;
}

function isSchema(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function pointer(root, reference) {
  if (!reference.startsWith('#')) return {};
  const steps = reference.slice(1).split('/').filter(Boolean).map(decodeStep);
  return steps.reduce((value, step) => (Object.hasOwn(value ?? {}, step) ? value[step] : undefined), root);
}

function decodeStep(step) {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

function merge(a, b) {
  const merged = { ...a, ...b };
  if (a.properties && b.properties) merged.properties = { ...a.properties, ...b.properties };
  if (Array.isArray(a.required) && Array.isArray(b.required)) merged.required = [...a.required, ...b.required];
  return merged;
}

/** Treats `["string", "null"]` and `anyOf: [X, null]` as X that may be null. */
function withoutNull(schema) {
  if (Array.isArray(schema.type) && schema.type.includes('null')) {
    const types = schema.type.filter((type) => type !== 'null');
    return { schema: { ...schema, type: types.length === 1 ? types[0] : types }, nullable: true };
  }
  for (const word of ['anyOf', 'oneOf']) {
    const variants = schema[word];
    if (!Array.isArray(variants)) continue;
    const others = variants.filter((variant) => variant?.type !== 'null');
    if (others.length === variants.length) continue;
    const { [word]: _variants, ...rest } = schema;
    if (others.length === 1 && isSchema(others[0])) return { schema: merge(others[0], rest), nullable: true };
    return { schema: { ...rest, [word]: others }, nullable: true };
  }
  return { schema, nullable: false };
}

function guessType(schema) {
  if (typeof schema.type === 'string') return schema.type;
  if (Array.isArray(schema.type)) return schema.type.length === 1 ? schema.type[0] : 'any';
  if (schema.properties) return 'object';
  if (schema.items) return 'array';
  return 'any';
}

/** The type in words. An unresolved reference is shown by its name. */
export function typeName(schema) {
  if (!isSchema(schema)) return 'anything';
  if (typeof schema.$ref === 'string') return schema.$ref.split('/').at(-1);
  if ('const' in schema) return 'constant';
  if (schema.enum) return 'choice';
  if (schema.oneOf || schema.anyOf) return 'one of several variants';
  const type = guessType(schema);
  if (type === 'array') return isSchema(schema.items) ? `list of ${typeName(schema.items)}` : 'list';
  if (type === 'string' && schema.format) return String(schema.format);
  if (type === 'any') return Array.isArray(schema.type) ? schema.type.join(' or ') : 'anything';
  return type;
}

const HINTS = [
  ['minimum', (value) => `at least ${value}`],
  ['exclusiveMinimum', (value) => `more than ${value}`],
  ['maximum', (value) => `at most ${value}`],
  ['exclusiveMaximum', (value) => `less than ${value}`],
  ['multipleOf', (value) => `a multiple of ${value}`],
  ['minLength', (value) => `at least ${count(value, 'character')}`],
  ['maxLength', (value) => `at most ${count(value, 'character')}`],
  ['minItems', (value) => `at least ${count(value, 'item')}`],
  ['maxItems', (value) => `at most ${count(value, 'item')}`],
  ['uniqueItems', (value) => (value ? 'no duplicate items' : '')],
  ['pattern', (value) => `must match ${text(value).slice(0, 80)}`],
];

/** The constraints of the schema in words, shown before anything is typed. */
export function hintOf(schema) {
  const { minimum, maximum } = schema;
  const range = minimum !== undefined && maximum !== undefined;
  const words = HINTS.filter(([name]) => schema[name] !== undefined && !(range && /^m(in|ax)imum$/.test(name)));
  const said = words.map(([name, say]) => say(schema[name])).filter(Boolean);
  if (range) said.unshift(`${minimum} to ${maximum}`);
  return said.join(', ');
}

/** The names of an `enum`, as MCP had them before `oneOf`. */
function namesOf(schema) {
  return Array.isArray(schema.enumNames) ? schema.enumNames.slice(0, 500).map(text) : undefined;
}

function count(value, noun) {
  return `${value} ${noun}${value === 1 ? '' : 's'}`;
}

function isLong(schema) {
  const named = /text|body|content|code|query|prompt|message|script/i.test(schema.title ?? '');
  return (schema.maxLength ?? 0) > 300 || named || schema.contentMediaType !== undefined;
}

const FORMAT_EXAMPLES = {
  'date-time': '2026-11-16T08:30:00Z',
  date: '2026-11-16',
  time: '08:30:00Z',
  duration: 'PT5M',
  email: 'name@example.org',
  uri: 'https://example.org/',
  url: 'https://example.org/',
  hostname: 'example.org',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uuid: '9f0c1c1e-8a55-4d7a-9d2e-0e6f3f1b2c3d',
};

function exampleOf(schema) {
  const given = Array.isArray(schema.examples) ? schema.examples[0] : schema.example;
  if (typeof given === 'string' || typeof given === 'number') return String(given).slice(0, 120);
  return FORMAT_EXAMPLES[schema.format] ?? '';
}

function labelOf(model, index) {
  if (model.title) return model.title;
  if (model.kind === 'object' && model.fields.length) {
    const fixed = model.fields.find((field) => field.kind === 'enum' && field.options.length === 1);
    if (fixed) return `${fixed.key}: ${String(fixed.options[0])}`;
    return `{ ${model.fields.slice(0, 3).map((field) => field.key).join(', ')}${model.fields.length > 3 ? ', …' : ''} }`;
  }
  return model.typeName === 'anything' ? `form ${index + 1}` : model.typeName;
}

function text(value) {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT_LENGTH) : '';
}
