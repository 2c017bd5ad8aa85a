// What servers offer besides tools: finds, names and addresses resources and prompts. Pure functions.

/** The link to the page of a server, or to one entry of it: `{ resource }`, `{ template }` or `{ prompt }`. */
export function serverHref(server, entry = {}) {
  const query = new URLSearchParams(entry).toString();
  return `#/servers/${encodeURIComponent(server)}${query ? `?${query}` : ''}`;
}

/** The address of a server's own URI that names the server, as the gateway writes it. */
export function addressOf(server, uri) {
  const name = encodeURIComponent(server).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  return /^ui:\/\//i.test(uri) ? `ui://toolgate/${name}/${uri.slice(5)}` : `toolgate://${name}/${uri}`;
}

/** The server that an address names, or null if it names none. */
export function namedServer(uri) {
  const [, name] = /^(?:toolgate:\/\/|ui:\/\/toolgate\/)([^/]*)\//.exec(uri) ?? [];
  try {
    return name ? decodeURIComponent(name) : null;
  } catch {
    return null;
  }
}

/** The link to a resource that a result of a server links to. */
export function resourceHref(server, uri) {
  return serverHref(namedServer(uri) ?? server, { resource: uri });
}

/** The entries of one server: `{ resources, templates, prompts }`. */
export function ofServer(server, { resources = [], templates = [], prompts = [] }) {
  const own = (entries) => entries.filter((entry) => entry.server === server);
  return { resources: own(resources), templates: own(templates), prompts: own(prompts) };
}

/** How much each server offers: a map of its name to `{ resources, prompts }`. Templates count as resources. */
export function countsOf({ resources = [], templates = [], prompts = [] }) {
  const counts = new Map();
  const add = (entries, key) => {
    for (const { server } of entries) {
      const count = counts.get(server) ?? { resources: 0, prompts: 0 };
      counts.set(server, count);
      count[key] += 1;
    }
  };
  add(resources, 'resources');
  add(templates, 'resources');
  add(prompts, 'prompts');
  return counts;
}

/** The name of an entry for people. */
export function labelOf(entry) {
  const words = [entry.title, entry.name, entry.uri, entry.uriTemplate];
  return words.find((word) => typeof word === 'string' && word.trim() !== '') ?? '(without a name)';
}

/** Finds a server's resource by the URI it is offered under, or by the address that names the server. */
export function findResource(server, resources, uri) {
  return resources.find((entry) => entry.uri === uri) ?? resources.find((entry) => addressOf(server, String(entry.uri)) === uri) ?? null;
}

/** Finds a server's prompt by the name it is offered under, or by the server's own name for it. */
export function findPrompt(server, prompts, name) {
  return prompts.find((entry) => entry.name === name) ?? prompts.find((entry) => entry.name === `${server}__${name}`) ?? null;
}

/** True if every word is in the texts of the entry. */
export function matchesEntry(entry, query) {
  const text = [entry.title, entry.name, entry.uri, entry.uriTemplate, entry.description].filter((part) => typeof part === 'string').join(' ').toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** A JSON Schema of a prompt's arguments, which are all strings. */
export function promptSchema(prompt) {
  const named = (Array.isArray(prompt.arguments) ? prompt.arguments : []).filter((one) => typeof one?.name === 'string' && one.name !== '');
  const text = (value) => (typeof value === 'string' ? value : undefined);
  return {
    type: 'object',
    properties: Object.fromEntries(named.map(({ name, title, description }) => [name, { type: 'string', title: text(title), description: text(description) }])),
    required: named.filter(({ required }) => required === true).map(({ name }) => name),
  };
}

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g;
/** For each operator of RFC 6570: what comes first, what separates values, whether names are written, and whether reserved characters stay. */
const OPERATORS = {
  '': ['', ',', false, false], '+': ['', ',', false, true], '#': ['#', ',', false, true], '.': ['.', '.', false, false], '/': ['/', '/', false, false],
  ';': [';', ';', true, false], '?': ['?', '&', true, false], '&': ['&', '&', true, false],
};

/** The variables of a URI template, each once. */
export function variablesOf(template) {
  const names = [...template.matchAll(EXPRESSION)].flatMap(([, , list]) => list.split(',').map((one) => nameOf(one).name));
  return [...new Set(names)].filter(Boolean);
}

/** The URI of a template (RFC 6570) with values that are strings. Empty values are left out. */
export function expand(template, values) {
  return template.replace(EXPRESSION, (_, operator, list) => {
    const [first, separator, isNamed, isReserved] = OPERATORS[operator];
    const parts = list.split(',').map(nameOf).filter(({ name }) => Object.hasOwn(values, name) && values[name] !== '').map(({ name, length }) => {
      const value = encoded([...String(values[name])].slice(0, length).join(''), isReserved);
      return isNamed ? `${name}=${value}` : value;
    });
    return parts.length > 0 ? first + parts.join(separator) : '';
  });
}

/** A variable with its modifiers: `{name*}` for lists, `{name:3}` for the beginning. */
function nameOf(variable) {
  const [, name, length] = /^(.*?)(?::(\d{1,4})|\*)?$/s.exec(variable.trim());
  return { name, length: length === undefined ? Infinity : Number(length) };
}

function encoded(text, isReserved) {
  if (isReserved) return encodeURI(text).replaceAll('%5B', '[').replaceAll('%5D', ']').replace(/%25([0-9A-Fa-f]{2})/g, '%$1');
  return encodeURIComponent(text).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
}
