// Shows a JSON Schema for reading: names, types, required properties and descriptions. Inner objects are drawn only when
// they are unfolded, so that recursive schemas work.

import { h } from './dom.js';
import { brief } from './format.js';
import { hintOf, resolveSchema, typeName } from './form/schema.js';
import { prose } from './prose.js';

const MAX_ROWS = 200;

/** `root` is the document that references point into; `nothing` is shown if there are no properties. */
export function schemaView(schema, root, nothing) {
  const { properties, required } = partsOf(schema, root);
  if (properties.length === 0) return simple(schema, root, nothing);
  const rows = properties.slice(0, MAX_ROWS).map(([name, value]) => row(name, resolveSchema(value, root), root, required.has(name)));
  const more = properties.length > MAX_ROWS && h('li', { class: 'muted' }, `and ${properties.length - MAX_ROWS} more`);
  return h('ul', { class: 'schema' }, rows, more);
}

function partsOf(schema, root) {
  const one = resolveSchema(schema, root);
  return { properties: Object.entries(one.properties ?? {}), required: new Set(Array.isArray(one.required) ? one.required : []) };
}

function simple(schema, root, nothing) {
  const one = resolveSchema(schema, root);
  const inner = inside(one, root);
  const name = typeName(one);
  if (!inner && (name === 'anything' || name === 'object')) return h('p', { class: 'muted' }, nothing);
  return h('div', { class: 'schema' }, h('p', null, h('span', { class: 'schema-type' }, name), detail(one)), inner);
}

function row(name, schema, root, isRequired) {
  return h('li', null,
    h('div', { class: 'schema-line' }, h('code', { class: 'schema-name' }, name), h('span', { class: 'schema-type' }, typeName(schema)),
      isRequired && h('span', { class: 'schema-required' }, 'required'), detail(schema)),
    schema.description && h('div', { class: 'schema-text' }, prose(schema.description)),
    inside(schema, root));
}

function detail(schema) {
  const words = [hintOf(schema)];
  if (Array.isArray(schema.enum)) words.push(schema.enum.slice(0, 40).map((option) => brief(option, 60)).join(' · '));
  if ('const' in schema) words.push(brief(schema.const, 60));
  if (schema.default !== undefined) words.push(`default ${brief(schema.default, 60)}`);
  const said = words.filter(Boolean).join('; ');
  return said && h('span', { class: 'schema-detail' }, said);
}

function inside(schema, root) {
  if (schema.properties && Object.keys(schema.properties).length) return folded('properties', () => schemaView(schema, root, ''));
  if (schema.items && typeof schema.items === 'object') {
    const item = resolveSchema(schema.items, root);
    return item.properties || item.items ? folded('each item', () => schemaView(item, root, '')) : null;
  }
  const variants = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(variants)) return null;
  return folded(`${variants.length} forms`, () => h('ol', { class: 'schema-forms' }, variants.slice(0, 20).map((variant) => h('li', null, schemaView(variant, root, 'anything')))));
}

function folded(label, draw) {
  const details = h('details', { class: 'schema-inner' }, h('summary', null, label));
  details.addEventListener('toggle', () => details.append(draw()), { once: true });
  return details;
}
