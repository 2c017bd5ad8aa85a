// Checks what a person filled into a server's form. The gateway checks it again. Pure functions.

import { same } from './value.js';

const FORMATS = {
  email: [(text) => /^\S+@[^\s@]+$/.test(text), 'must be an email address, such as name@example.org'],
  uri: [(text) => URL.canParse(text), 'must be an address, such as https://example.org/'],
  date: [isDate, 'must be a date, such as 2026-11-16'],
  'date-time': [(text) => isDate(text.slice(0, 10)) && /^.{10}[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text)),
    'must be a date and time, such as 2026-11-16T08:30:00Z'],
};

/** What is wrong with the `values` of a form that `formModel` has made of `schema`, as `{ parameter, message }`. */
export function violations(schema, values) {
  const properties = Object.entries(schema?.properties ?? {});
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  return properties.flatMap(([key, field]) => {
    const message = Object.hasOwn(values, key) ? problem(field, values[key]) : required.has(key) && 'is missing';
    return message ? [{ parameter: key, message }] : [];
  });
}

function problem(field, value) {
  if (field === null || typeof field !== 'object') return null;
  const options = optionsOf(field);
  if (options) return options.some((option) => same(option, value)) ? null : 'must be one of the choices';
  switch (field.type) {
    case 'string':
      return typeof value === 'string' ? textProblem(field, value) : 'must be text';
    case 'integer':
      return Number.isInteger(value) ? numberProblem(field, value) : 'must be a whole number';
    case 'number':
      return typeof value === 'number' ? numberProblem(field, value) : 'must be a number';
    case 'boolean':
      return typeof value === 'boolean' ? null : 'must be yes or no';
    case 'array':
      return Array.isArray(value) ? listProblem(field, value) : 'must be a list';
    default:
      return null;
  }
}

function optionsOf(field) {
  if (Array.isArray(field.enum)) return field.enum;
  const variants = field.oneOf ?? field.anyOf;
  const isFixed = Array.isArray(variants) && variants.length > 0 && variants.every((variant) => variant !== null && typeof variant === 'object' && 'const' in variant);
  return isFixed ? variants.map((variant) => variant.const) : null;
}

function textProblem({ minLength, maxLength, format }, value) {
  const length = [...value].length;
  if (length < minLength) return `must have at least ${characters(minLength)}`;
  if (length > maxLength) return `must have at most ${characters(maxLength)}`;
  const [isRight, message] = FORMATS[format] ?? [];
  return isRight && !isRight(value) ? message : null;
}

function characters(count) {
  return `${count} character${count === 1 ? '' : 's'}`;
}

function numberProblem({ minimum, maximum }, value) {
  if (value < minimum) return `must be at least ${minimum}`;
  if (value > maximum) return `must be at most ${maximum}`;
  return null;
}

function listProblem({ minItems, maxItems, items }, value) {
  if (value.length < minItems) return `needs at least ${minItems}`;
  if (value.length > maxItems) return `may have at most ${maxItems}`;
  return value.map((item) => problem(items, item)).find(Boolean) ?? null;
}

function isDate(text) {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}
