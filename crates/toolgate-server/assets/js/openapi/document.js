// Reads an OpenAPI document. Pure functions.

import { resolveSchema } from '../form/schema.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options'];

/** Every route: `{ id, method, path, tag, summary, description, parameters, body, responses }`. */
export function routesOf(document) {
  return Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => route(document, path, item, method)));
}

function route(document, path, item, method) {
  const operation = item[method];
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map((one) => follow(document, one));
  const [summary, ...rest] = words(operation);
  return {
    id: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    tag: operation.tags?.[0] ?? 'other',
    summary: summary ?? '',
    description: rest.join('\n\n'),
    parameters: parameters.map((one) => ({ ...one, schema: resolveSchema(one.schema ?? {}, document) })),
    body: bodyOf(document, operation.requestBody),
    responses: Object.entries(operation.responses ?? {}).map(([status, one]) => responseOf(document, status, follow(document, one))),
  };
}

/** The paragraphs of the summary and description; the first one is shown as the summary. Joins the lines of each. */
function words(operation) {
  const all = [operation.summary, operation.description].filter(Boolean).join('\n\n');
  const paragraphs = all.split(/\n\s*\n/).map((one) => one.replaceAll(/\s*\n\s*/g, ' ').trim());
  return paragraphs.filter((one, index) => one !== paragraphs[index - 1]);
}

function follow(document, value) {
  return value?.$ref ? resolveSchema(value, document) : (value ?? {});
}

function bodyOf(document, given) {
  const body = follow(document, given);
  const [type, media] = Object.entries(body.content ?? {})[0] ?? [];
  return type ? { type, required: body.required === true, schema: media.schema ?? {}, example: exampleOf(document, media) } : null;
}

function responseOf(document, status, response) {
  const [type, media] = Object.entries(response.content ?? {})[0] ?? [];
  return { status, description: response.description ?? '', type: type ?? null, schema: media?.schema ?? null };
}

function exampleOf(document, media) {
  if (media.example !== undefined) return media.example;
  const [named] = Object.values(media.examples ?? {});
  return named?.value ?? sample(media.schema ?? {}, document);
}

/** A sample value for a schema. Objects have only their required properties, or all if none is required. */
export function sample(schema, document, left = 5) {
  const one = resolveSchema(schema, document);
  for (const given of [one.example, one.examples?.[0], one.const, one.default, one.enum?.[0]]) if (given !== undefined) return given;
  const variants = one.oneOf ?? one.anyOf;
  if (Array.isArray(variants) && variants.length) return sample(variants[0], document, left - 1);
  const type = Array.isArray(one.type) ? one.type.find((each) => each !== 'null') : one.type;
  if (one.properties && left > 0) {
    const names = Object.keys(one.properties);
    const wanted = one.required?.length ? names.filter((name) => one.required.includes(name)) : names;
    return Object.fromEntries(wanted.map((name) => [name, sample(one.properties[name], document, left - 1)]));
  }
  return { string: '', integer: one.minimum ?? 0, number: one.minimum ?? 0, boolean: false, array: [], null: null }[type] ?? {};
}

/** The order of the tags unless the document defines one. */
const FIRST_TAGS = ['tools', 'calls', 'chat', 'events', 'servers', 'mcp'];

/** Groups routes by tag, in the order of the document's own list of tags or else of `FIRST_TAGS`. */
export function byTag(document, routes) {
  const groups = new Map((document.tags ?? FIRST_TAGS.map((name) => ({ name }))).map(({ name, description }) => [name, { name, description: description ?? '', routes: [] }]));
  for (const one of routes) {
    if (!groups.has(one.tag)) groups.set(one.tag, { name: one.tag, description: '', routes: [] });
    groups.get(one.tag).routes.push(one);
  }
  return [...groups.values()].filter((group) => group.routes.length > 0);
}

/** Fills in the parameters of the path and the query. `missing` names the path parameters without a value. */
export function fillPath(path, parameters, values) {
  const missing = [];
  const filled = path.replace(/\{\*?([^}]+)\}/g, (whole, name) => {
    const value = values[`path ${name}`] ?? '';
    if (value === '') missing.push(name);
    return value === '' ? whole : encodeURIComponent(value);
  });
  const query = new URLSearchParams();
  for (const { in: location, name } of parameters) {
    const value = values[`query ${name}`] ?? '';
    if (location === 'query' && value !== '') query.append(name, value);
  }
  const text = query.toString();
  return { path: text ? `${filled}?${text}` : filled, missing };
}

/** True if every word is in the method, path, summary or tag. */
export function routeMatches(one, query) {
  const text = `${one.id} ${one.summary} ${one.tag}`.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
