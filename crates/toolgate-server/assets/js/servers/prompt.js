// A prompt: a form for its arguments, and its messages once it is filled in.

import { fill, h } from '../dom.js';
import { createForm } from '../form/form.js';
import { formModel } from '../form/schema.js';
import { messagesView } from '../content/preview.js';
import { ContentCall } from './content-call.js';
import { promptSchema, resourceHref } from './offer.js';
import { head } from './resource.js';

/** The arguments that were given to each prompt, kept while other views are open. */
const drafts = new Map();

/** Returns the function that unmounts it. */
export function mountPrompt(root, entry, { server }) {
  const call = new ContentCall({ path: '/api/prompts/get', label: 'Fill in', testid: 'prompt-get', draw: (result) => messagesView(result, (uri) => resourceHref(server, uri)) });
  const schema = promptSchema(entry);
  const names = Object.keys(schema.properties);
  const draft = drafts.get(entry.name) ?? {};
  const form = createForm(formModel(schema), Object.fromEntries(Object.entries(draft).filter(([name]) => names.includes(name))), () => form.show([], false));
  const submit = (event) => {
    event.preventDefault();
    const given = form.read();
    const missing = schema.required.filter((name) => !Object.hasOwn(given, name));
    form.show(missing.map((name) => ({ parameter: name, message: 'is required' })), true);
    if (missing.length > 0) return form.focusFirst();
    call.run({ name: entry.name, arguments: given });
  };
  fill(root, h('form', { class: 'card entry-card', novalidate: true, 'data-testid': 'prompt-form', onsubmit: submit },
    head(entry, String(entry.name)), names.length > 0 ? form.element : h('p', { class: 'muted' }, 'This prompt takes no arguments.'),
    h('div', { class: 'entry-actions' }, call.button, call.halt)), call.result);
  return () => {
    drafts.set(entry.name, form.read());
    call.leave();
  };
}
