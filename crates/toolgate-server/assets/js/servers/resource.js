// A resource, or a template for the URIs of resources: what is known about it, and its content once it is read.

import { fill, h } from '../dom.js';
import { createForm } from '../form/form.js';
import { formModel } from '../form/schema.js';
import { bytes, dateTime } from '../format.js';
import { icon } from '../icons.js';
import { contentsView } from '../content/preview.js';
import { prose } from '../prose.js';
import { visible } from '../text.js';
import { copyText } from '../toast.js';
import { ContentCall } from './content-call.js';
import { expand, labelOf, resourceHref, variablesOf } from './offer.js';

/** With `reads` the resource is read at once. Returns the function that unmounts it. */
export function mountResource(root, entry, { server, reads }) {
  const call = readCall(server);
  const read = () => call.run({ uri: entry.uri });
  call.button.addEventListener('click', read);
  fill(root, h('div', { class: 'card entry-card' }, head(entry, entry.uri), h('div', { class: 'entry-actions' }, call.button, call.halt)), call.result);
  if (reads) read();
  return () => call.leave();
}

export function mountTemplate(root, entry, { server }) {
  const call = readCall(server);
  const template = String(entry.uriTemplate);
  const names = variablesOf(template);
  const uri = h('code', { class: 'template-uri', 'data-testid': 'template-uri' });
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
  const show = () => uri.replaceChildren(visible(expand(template, form.read())));
  const form = createForm(formModel({ type: 'object', properties }), {}, show);
  const element = h('form', { class: 'card entry-card', novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    call.run({ uri: expand(template, form.read()) });
  } }, head(entry, template), names.length > 0 && form.element,
  h('p', { class: 'small' }, h('span', { class: 'muted' }, 'Reads '), uri),
  h('div', { class: 'entry-actions' }, call.button, call.halt));
  show();
  fill(root, element, call.result);
  return () => call.leave();
}

function readCall(server) {
  const draw = (result) => contentsView(result, (uri) => resourceHref(server, uri));
  return new ContentCall({ path: '/api/resources/read', label: 'Read', testid: 'resource-read', draw });
}

/** The name, the address, the description and the facts of an entry. */
export function head(entry, address) {
  const label = labelOf(entry);
  return h('div', { class: 'entry-head' },
    h('h2', null, visible(label)),
    label !== address && h('button', { class: 'btn-plain mono copyable', type: 'button', title: 'Copy', onclick: () => copyText(address, 'Copied') }, visible(address), icon('copy')),
    typeof entry.description === 'string' && h('p', { class: 'tool-text' }, prose(visible(entry.description))),
    factsOf(entry));
}

function factsOf(entry) {
  const { mimeType, size, annotations } = entry;
  const audience = Array.isArray(annotations?.audience) ? annotations.audience.filter((one) => typeof one === 'string') : [];
  const changed = typeof annotations?.lastModified === 'string' ? dateTime(annotations.lastModified) : '–';
  const facts = [
    ['type', typeof mimeType === 'string' ? visible(mimeType) : ''],
    ['size', Number.isFinite(size) ? bytes(size) : ''],
    ['for', visible(audience.join(', '))],
    ['changed', changed === '–' ? '' : changed],
  ].filter(([, value]) => value !== '');
  return facts.length > 0 && h('dl', { class: 'entry-facts' }, facts.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));
}
