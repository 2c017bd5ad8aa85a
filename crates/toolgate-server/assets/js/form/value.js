// The values of a form: initial values, and how typed text is read. Pure functions.

/** The initial value of a form: defaults and required constants. */
export function initialValue(model) {
  if (model.default !== undefined) return structuredClone(model.default);
  if (isFixed(model)) return model.options[0];
  if (model.kind === 'object') {
    const given = model.fields.map((field) => [field.key, initialValue(field)]).filter(([, value]) => value !== undefined);
    const isGiven = model.required || given.some(([key]) => !isFixed(model.fields.find((field) => field.key === key)));
    return isGiven ? fromEntries(given) : undefined;
  }
  if (model.kind === 'choice' && model.required) return initialValue(model.variants[0].model);
  if (model.kind === 'array' && model.required && model.min > 0) {
    return Array.from({ length: Math.min(model.min, 20) }, () => initialValue(model.item) ?? emptyOf(model.item));
  }
  return undefined;
}

/** True if only one value is allowed and it is required. */
export function isFixed(model) {
  return model.kind === 'enum' && model.required && model.options.length === 1;
}

/** Builds an object whose properties are its own, even one named `__proto__`, which a hostile schema may use. */
export function fromEntries(entries) {
  return Object.fromEntries(entries);
}

/** The value of a list item that was added but not filled in yet. */
export function emptyOf(model) {
  return { string: '', object: {}, array: [], set: [] }[model.kind] ?? null;
}

/**
 * Converts typed text to a value. Text that should be a number but isn't is sent unchanged, so that the gateway's check
 * says what is wrong. An empty field is not sent.
 */
export function parseTyped(kind, typed) {
  if (kind === 'string') return typed === '' ? undefined : typed;
  const trimmed = typed.trim();
  if (trimmed === '') return undefined;
  if (kind === 'number' || kind === 'integer') return isNumber(trimmed) ? Number(trimmed) : typed;
  return typed;
}

function isNumber(typed) {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(typed) && Number.isFinite(Number(typed));
}

/** Parses JSON. Returns `{ value }`, or `{ error }` with line and column. */
export function parseJson(typed) {
  if (typed.trim() === '') return { value: undefined };
  try {
    return { value: JSON.parse(typed) };
  } catch (error) {
    return { error: describeSyntax(typed, error) };
  }
}

function describeSyntax(typed, error) {
  const reported = /at position (\d+)/.exec(error.message)?.[1];
  const position = reported === undefined ? firstErrorPosition(typed) : Number(reported);
  if (position >= typed.trimEnd().length) return 'This is not valid JSON: it ends too early.';
  const before = typed.slice(0, position).split('\n');
  const found = typed.slice(position).match(/^[\w.+-]+|^[\s\S]/)[0].slice(0, 20);
  return `This is not valid JSON: unexpected ${JSON.stringify(found)} (line ${before.length}, column ${before.at(-1).length + 1}).`;
}

/** The position of the first error. Not every browser reports it. */
function firstErrorPosition(typed) {
  const token = /\s*(?:"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|(?:true|false|null)\b|[{}[\],:])/y;
  while (token.lastIndex < typed.length) {
    const from = token.lastIndex;
    if (!token.test(typed)) return from + typed.slice(from).search(/\S|$/);
  }
  return typed.length;
}

/** Scores how well a value fits a variant, to choose the variant in which it is shown. */
export function fits(model, value) {
  if (value === undefined) return 0;
  if (value === null) return model.nullable ? 1 : 0;
  switch (model.kind) {
    case 'enum':
      return model.options.some((option) => same(option, value)) ? 3 : 0;
    case 'object':
      return isObject(value) ? objectFit(model, value) : 0;
    case 'array':
    case 'set':
      return Array.isArray(value) ? 2 : 0;
    case 'integer':
      return Number.isInteger(value) ? 2 : 0;
    case 'choice':
      return Math.max(...model.variants.map((variant) => fits(variant.model, value)));
    case 'json':
      return 0.5;
    default:
      return typeof value === model.kind ? 2 : 0;
  }
}

function objectFit(model, value) {
  const fixed = model.fields.filter((field) => field.kind === 'enum' && field.options.length === 1);
  if (fixed.some((field) => field.key in value && !same(field.options[0], value[field.key]))) return 0;
  const missing = model.fields.some((field) => field.required && !(field.key in value));
  const known = model.fields.filter((field) => field.key in value).length;
  return (missing ? 0.5 : 1) + known;
}

/** The variant that fits best; the first if none does. */
export function bestVariant(variants, value) {
  const scores = variants.map((variant) => fits(variant.model, value));
  const best = Math.max(...scores);
  return best > 0 ? scores.indexOf(best) : 0;
}

export function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

export function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** The properties of a value that the form has no field for; they are sent unchanged. */
export function extras(model, value) {
  if (!isObject(value)) return {};
  const known = new Set(model.fields.map((field) => field.key));
  return fromEntries(Object.entries(value).filter(([key]) => !known.has(key)));
}

/** True if the form can show the whole value. */
export function canShow(model, value) {
  if (value === undefined) return true;
  if (value === null) return model.kind === 'json';
  if (model.kind === 'object') {
    return isObject(value) && model.fields.every((field) => canShow(field, value[field.key]));
  }
  if (model.kind === 'array') return Array.isArray(value) && value.every((item) => canShow(model.item, item));
  if (model.kind === 'set') return Array.isArray(value) && value.every((item, at) => canShow(model.item, item) && !value.slice(0, at).some((other) => same(other, item)));
  if (model.kind === 'choice') return model.variants.some((variant) => canShow(variant.model, value));
  if (model.kind === 'enum') return model.options.some((option) => same(option, value));
  if (model.kind === 'json') return true;
  if (model.kind === 'boolean') return typeof value === 'boolean';
  return typeof value === 'string' || (typeof value === 'number' && model.kind !== 'string');
}
