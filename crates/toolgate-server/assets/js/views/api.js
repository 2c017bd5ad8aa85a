// The gateway's API as its OpenAPI document describes it: routes with their requests and responses, and a form for each.

import { address, get } from '../api.js';
import { empty, fill, h, setText } from '../dom.js';
import { plural } from '../format.js';
import { registerKeys } from '../keys.js';
import { byTag, routeMatches, routesOf } from '../openapi/document.js';
import { tryout } from '../openapi/tryout.js';
import { prose } from '../prose.js';
import { schemaView } from '../schema-view.js';
import { command } from '../toast.js';
import { curl } from '../commands.js';

export function mount(root, params) {
  const state = { gone: false, open: new Set() };
  const page = h('div', { class: 'page api' }, h('p', { class: 'muted' }, 'Loading…'));
  fill(root, page);
  get('/openapi.json').then(
    (document) => {
      if (!state.gone) draw(page, document, state, params.id);
    },
    (error) => fill(page, h('h1', { class: 'visually-hidden' }, 'API'), empty('The API description could not be loaded', error.detail)),
  );
  const forgetKeys = registerKeys('API', [{ keys: ['/'], label: 'Search routes', run: () => page.querySelector('.api-search')?.focus() }]);
  return () => {
    state.gone = true;
    forgetKeys();
    for (const leave of state.open) leave();
  };
}

function draw(page, document, state, wanted) {
  const routes = routesOf(document);
  const groups = byTag(document, routes).map((group) => drawGroup(group, document, state));
  const total = h('p', { class: 'muted', role: 'status' }, plural(routes.length, 'route'));
  const none = h('div', { hidden: true }, empty('No route matches', 'Search covers methods, paths, tags and summaries.'));
  const search = h('input', { class: 'input api-search', type: 'search', placeholder: 'Search routes', 'aria-label': 'Search routes', 'data-testid': 'api-search', autocomplete: 'off' });
  search.addEventListener('input', () => {
    const found = groups.reduce((sum, group) => sum + group.filter(search.value.trim()), 0);
    setText(total, found === routes.length ? plural(found, 'route') : `${found} of ${plural(routes.length, 'route')}`);
    none.hidden = found > 0;
  });
  const first = curl({ url: address('/api/tools') });
  fill(page,
    h('div', { class: 'page-head' }, h('h1', null, 'API'), total, h('span', { class: 'grow' }),
      h('a', { class: 'btn', href: address('/openapi.json'), target: '_blank', rel: 'noopener' }, 'openapi.json'), search),
    h('div', { class: 'api-intro' }, h('p', { class: 'muted' }, document.info?.description ?? 'Everything this page shows comes from these routes. From a terminal:'), command(first)),
    groups.map(({ element }) => element), none);
  if (wanted) groups.forEach((group) => group.reveal(wanted));
}

function drawGroup(group, document, state) {
  const routes = group.routes.map((route) => ({ route, element: drawRoute(route, document, state) }));
  const element = h('section', { class: 'api-group', 'aria-label': group.name },
    h('h2', null, group.name), group.description && h('p', { class: 'muted' }, group.description), h('div', { class: 'api-routes' }, routes.map((one) => one.element)));
  return {
    element,
    filter(query) {
      let shown = 0;
      for (const one of routes) {
        one.element.hidden = !routeMatches(one.route, query);
        shown += one.element.hidden ? 0 : 1;
      }
      element.hidden = shown === 0;
      return shown;
    },
    reveal(id) {
      const found = routes.find((one) => one.route.id === id);
      if (!found) return;
      found.element.open = true;
      found.element.scrollIntoView({ block: 'start' });
    },
  };
}

function drawRoute(route, document, state) {
  const element = h('details', { class: 'api-route', 'data-testid': 'api-route', 'data-route': route.id },
    h('summary', null,
      h('span', { class: `method method-${route.method.toLowerCase()}` }, route.method), h('code', { class: 'api-path' }, route.path), h('span', { class: 'api-summary' }, prose(route.summary))));
  element.addEventListener('toggle', () => {
    const form = tryout(route);
    state.open.add(form.leave);
    element.append(h('div', { class: 'api-body' }, about(route, document), form.element));
  }, { once: true });
  return element;
}

function about(route, document) {
  return h('div', { class: 'api-about' },
    route.description && h('div', { class: 'api-text' }, prose(route.description)),
    route.body && h('section', null, h('h3', null, 'Body'), h('p', { class: 'muted small' }, route.body.type), schemaView(route.body.schema, document, 'Any JSON object.')),
    h('section', null, h('h3', null, 'Responses'), h('ul', { class: 'api-answers' }, route.responses.map((one) => answer(one, document)))));
}

function answer({ status, description, type, schema }, document) {
  const line = [h('b', { class: 'num' }, status), ' ', prose(description), type && h('span', { class: 'field-type' }, type)];
  if (!schema) return h('li', null, line);
  const details = h('details', { class: 'schema-inner' }, h('summary', null, line));
  details.addEventListener('toggle', () => details.append(schemaView(schema, document, 'Any JSON.')), { once: true });
  return h('li', null, details);
}
