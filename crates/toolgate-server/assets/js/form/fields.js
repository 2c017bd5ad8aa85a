// The fields of a form, by kind. Each is `{ element, read() }`; `read` returns undefined if nothing is to be sent.
// Composite fields read their parts. The context `form` knows every field by its path, to show messages beside it.

import { fill, h, uid } from '../dom.js';
import { brief, pretty } from '../format.js';
import { prose } from '../prose.js';
import { childPath } from './schema.js';
import { bestVariant, emptyOf, extras, fromEntries, initialValue, isFixed, isObject, parseJson, parseTyped, same } from './value.js';

/** Creates the field for `model` at `path` with a first `value`. */
export function field(model, path, value, form) {
  const make = { object: objectField, array: arrayField, choice: choiceField, enum: enumField, set: setField, boolean: booleanField, json: jsonField }[model.kind];
  return (make ?? textField)(model, path, value, form);
}

/** The label, explanation, control and messages of a field. `control` gets the ids of the elements that describe it. */
function labelled(model, path, form, makeControl, { group = false } = {}) {
  const id = uid('f');
  const [hintId, errorId] = [`${id}-hint`, `${id}-error`];
  const control = makeControl({ id, describedBy: `${hintId} ${errorId}`, labelId: `${id}-label` });
  const error = h('p', { class: 'field-error', id: errorId, 'data-testid': `try-error-${path}`, hidden: true });
  const name = [h('span', { class: 'field-name' }, nameOf(model, path)), !model.isQuestion && h('span', { class: 'field-type' }, model.typeName),
    mustBeGiven(model) && h('span', { class: 'field-required' }, 'required')];
  const label = group ? h('span', { class: 'field-label', id: `${id}-label` }, name) : h('label', { class: 'field-label', for: id, id: `${id}-label` }, name);
  const element = h('div', { class: `field field-${model.kind}`, 'data-testid': `try-field-${path}`, 'data-path': path },
    label, h('div', { class: 'field-hint', id: hintId }, prose(explanation(model))), control, error);
  form.register(path, {
    show(messages) {
      fill(error, messages.map((message) => h('span', { class: 'field-message' }, message)));
      error.hidden = messages.length === 0;
      for (const each of controlsOf(element, group)) each.setAttribute('aria-invalid', String(messages.length > 0));
    },
    focus: () => controlsOf(element, group)[0]?.focus(),
  });
  return element;
}

function controlsOf(element, group) {
  const all = [...element.querySelectorAll('input, select, textarea')];
  return group ? all.slice(0, 1) : all;
}

function nameOf(model, path) {
  if (model.isQuestion && model.title) return model.title;
  if (model.key !== '') return model.key;
  return /\[(\d+)\]$/.exec(path)?.[0] ?? 'value';
}

/** Items of a list aren't labelled as required: they were added on purpose. */
function mustBeGiven(model) {
  return model.required && model.key !== '';
}

function explanation(model) {
  const said = model.description || (model.title !== model.key && !model.isQuestion ? model.title : '');
  const words = [said, model.hint && `${capital(model.hint)}.`];
  // A question is filled in with it already.
  if (model.default !== undefined && !model.isQuestion) words.push(`Default: ${brief(model.default, 80)}.`);
  if (model.nullable) words.push('May be null.');
  // A tool's description gets a full stop only if another sentence follows.
  if (words.filter(Boolean).length > 1 && /[^.!?:…\s]\s*$/.test(said ?? '')) words[0] = `${said.trimEnd()}.`;
  return words.filter(Boolean).join(' ');
}

function capital(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function textField(model, path, value, form) {
  let input;
  const isNumber = model.kind !== 'string';
  const element = labelled(model, path, form, ({ id, describedBy }) => {
    const shared = {
      id, 'aria-describedby': describedBy, 'aria-required': String(model.required), placeholder: model.example || null, value: value === undefined ? '' : shownText(value),
      autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off', oninput: () => form.changed(path), onblur: () => form.left(path),
    };
    const isLong = model.long || (typeof value === 'string' && value.includes('\n'));
    input = isLong ? h('textarea', { class: 'textarea', rows: '4', ...shared })
      : h('input', { class: `input ${isNumber ? 'input-number' : ''}`, type: inputType(model), inputmode: isNumber ? 'decimal' : null, ...shared });
    return input;
  });
  return { element, read: () => parseTyped(model.kind, input.value) };
}

function shownText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function inputType(model) {
  if (model.isQuestion && model.format === 'date') return 'date';
  return { email: 'email', uri: 'url', url: 'url', password: 'password' }[model.format] ?? 'text';
}

const UNSET = '';

function enumField(model, path, value, form) {
  let select;
  const labels = optionLabels(model);
  const chosen = isFixed(model) && value === undefined ? 0 : model.options.findIndex((option) => same(option, value));
  const element = labelled(model, path, form, ({ id, describedBy }) => {
    select = h('select', { class: 'select', id, 'aria-describedby': describedBy, 'aria-required': String(model.required), onchange: () => form.left(path) },
      !isFixed(model) && h('option', { value: UNSET }, model.required ? 'Choose…' : 'Not set'),
      labels.map((label, index) => h('option', { value: String(index) }, label)));
    select.value = chosen < 0 ? UNSET : String(chosen);
    return select;
  });
  return { element, read: () => (select.value === UNSET ? undefined : model.options[Number(select.value)]) };
}

/** What a person chooses from. A question has words of its own; a tool's arguments need the exact value. */
function optionLabels(model) {
  const own = (option) => (typeof option === 'string' ? option : JSON.stringify(option));
  return model.options.map((option, index) => {
    const label = model.labels?.[index];
    if (model.isQuestion && label) return label;
    return [own(option), label].filter(Boolean).join(' – ');
  });
}

/** Several of a few values, each with a box to tick. */
function setField(model, path, value, form) {
  const chosen = Array.isArray(value) ? value : [];
  const boxes = optionLabels(model.item).map((label, index) => ({
    label, meaning: model.item.options[index],
    input: h('input', { type: 'checkbox', checked: chosen.some((each) => same(each, model.item.options[index])), onchange: () => form.left(path) }),
  }));
  let touched = value !== undefined;
  const element = labelled(model, path, form, ({ describedBy, labelId }) =>
    h('div', { class: 'ticks', role: 'group', 'aria-labelledby': labelId, 'aria-describedby': describedBy, onchange: () => { touched = true; } },
      boxes.map(({ label, input }) => h('label', { class: 'pill' }, input, label))), { group: true });
  const read = () => {
    const ticked = boxes.filter(({ input }) => input.checked).map(({ meaning }) => meaning);
    return ticked.length > 0 || (touched && model.required) ? ticked : undefined;
  };
  return { element, read };
}

function booleanField(model, path, value, form) {
  const name = uid('b');
  const words = model.isQuestion ? ['Yes', 'No', 'No answer'] : ['true', 'false', 'not set'];
  const options = [[words[0], true], [words[1], false], ...(model.required ? [] : [[words[2], undefined]])];
  const radios = options.map(([label, meaning]) => ({
    label, meaning,
    input: h('input', { type: 'radio', name, checked: meaning === value && (value !== undefined || !model.required), onchange: () => form.left(path) }),
  }));
  const element = labelled(model, path, form, ({ describedBy, labelId }) =>
    h('div', { class: 'pills', role: 'radiogroup', 'aria-labelledby': labelId, 'aria-describedby': describedBy, 'aria-required': String(model.required) },
      radios.map(({ label, input }) => h('label', { class: 'pill' }, input, label))), { group: true });
  return { element, read: () => radios.find(({ input }) => input.checked)?.meaning };
}

/** A JSON editor for values that a form can't show. Text that is not valid JSON is reported and not sent. */
function jsonField(model, path, value, form) {
  let area;
  const element = labelled(model, path, form, ({ id, describedBy }) => {
    area = h('textarea', {
      class: 'textarea mono', id, rows: '4', 'aria-describedby': describedBy, spellcheck: 'false', autocomplete: 'off', placeholder: 'JSON',
      value: value === undefined ? '' : pretty(value), oninput: () => form.changed(path), onblur: () => form.left(path),
    });
    return area;
  });
  return {
    element,
    read() {
      const { value: parsed, error } = parseJson(area.value);
      form.local(path, error ?? null);
      return parsed;
    },
  };
}

function objectField(model, path, value, form) {
  const given = isObject(value) ? value : {};
  const parts = model.fields.map((part) => [part.key, field(part, childPath(path, part.key), given[part.key] ?? undefined, form)]);
  const kept = extras(model, given);
  const fixed = new Set(model.fields.filter(isFixed).map((part) => part.key));
  const read = () => {
    const entries = parts.map(([key, part]) => [key, part.read()]).filter(([, each]) => each !== undefined);
    const whole = { ...kept, ...fromEntries(entries) };
    // An object of constants only counts as not filled in.
    const isGiven = value !== undefined || Object.keys(whole).some((key) => !fixed.has(key));
    return isGiven || model.required ? whole : undefined;
  };
  const note = Object.keys(kept).length > 0 && h('p', { class: 'field-hint' }, `Also sent, as entered in JSON: ${Object.keys(kept).join(', ')}`);
  const body = [parts.map(([, part]) => part.element), note];
  if (path === '' || model.bare) return { element: h('div', { class: 'fields' }, body), read };
  return { element: group(model, path, form, h('div', { class: 'fields' }, body)), read };
}

/** A frame around the fields of an object or a list, with its own messages. */
function group(model, path, form, ...body) {
  const error = h('p', { class: 'field-error', 'data-testid': `try-error-${path}`, hidden: true });
  const about = explanation(model);
  const element = h('fieldset', { class: `group group-${model.kind}`, 'data-testid': `try-field-${path}`, 'data-path': path },
    h('legend', null, h('span', { class: 'field-name' }, nameOf(model, path)), h('span', { class: 'field-type' }, model.typeName),
      mustBeGiven(model) && h('span', { class: 'field-required' }, 'required')),
    about && h('div', { class: 'field-hint' }, prose(about)), body, error);
  form.register(path, {
    show(messages) {
      fill(error, messages.map((message) => h('span', { class: 'field-message' }, message)));
      error.hidden = messages.length === 0;
    },
    focus: () => element.querySelector('input, select, textarea, button')?.focus(),
  });
  return element;
}

function arrayField(model, path, value, form) {
  let parts = [];
  let touched = value !== undefined;
  const list = h('div', { class: 'items' });
  const add = h('button', { class: 'btn btn-small', type: 'button', 'data-testid': `try-add-${path}` }, 'Add an item');
  const draw = (values) => {
    form.forget(path);
    parts = values.map((each, index) => field(model.item, childPath(path, index), each, form));
    fill(list, parts.map((part, index) => h('div', { class: 'item' }, part.element, removeButton(index))));
    add.hidden = parts.length >= model.max;
  };
  const values = () => parts.map((part) => part.read() ?? emptyOf(model.item));
  const removeButton = (index) => h('button', {
    class: 'btn-plain item-remove', type: 'button', 'aria-label': `Remove ${childPath(path, index)}`,
    onclick() {
      draw(values().toSpliced(index, 1));
      form.left(path);
      add.focus();
    },
  }, '×');
  add.addEventListener('click', () => {
    touched = true;
    draw([...values(), initialValue(model.item)]);
    form.changed(path);
    list.lastElementChild?.querySelector('input, select, textarea')?.focus();
  });
  const element = group(model, path, form, list, h('div', null, add));
  draw(Array.isArray(value) ? value : []);
  return { element, read: () => (parts.length || (touched && model.required) ? values() : undefined) };
}

function choiceField(model, path, value, form) {
  let part;
  const start = bestVariant(model.variants, value);
  const body = h('div', { class: 'variant' });
  const select = h('select', { class: 'select', 'aria-label': `Variant of ${path || 'the arguments'}`, 'data-testid': `try-variant-${path}` },
    model.variants.map(({ label }, index) => h('option', { value: String(index) }, label)));
  const draw = (index, given) => {
    form.forget(path);
    const chosen = model.variants[index].model;
    const own = { ...chosen, bare: true, required: chosen.kind === 'object' ? model.required : chosen.required };
    part = field(own, path, given, innerForm(form, path));
    fill(body, part.element);
  };
  select.value = String(start);
  select.addEventListener('change', () => {
    draw(Number(select.value), initialValue(model.variants[Number(select.value)].model));
    form.changed(path);
  });
  const chooser = h('div', { class: 'row' }, h('span', { class: 'field-hint' }, 'Variant'), select);
  const element = path === '' ? h('div', { class: 'fields' }, chooser, body) : group(model, path, form, chooser, body);
  draw(start, value);
  return { element, read: () => part.read() };
}

/** A variant has the same path as its choice, so only the choice shows messages for it. */
function innerForm(form, path) {
  return { ...form, register: (at, place) => at !== path && form.register(at, place) };
}
