// Shows a list of objects as a table, some rows at a time.

import { h } from './dom.js';
import { brief, count } from './format.js';

const PORTION = 50;
const MAX_COLUMNS = 20;

export function objectTable(list, name = null) {
  const columns = columnsOf(list);
  const body = h('tbody');
  const table = h('table', { class: 'table' }, h('caption', { class: 'visually-hidden' }, name ?? 'Result'),
    h('thead', null, h('tr', null, columns.shown.map((each) => h('th', { scope: 'col', class: isNumeric(list, each) && 'num' }, each)))), body);
  const wrap = h('div', { class: 'table-wrap', tabindex: '0', role: 'group', 'aria-label': name ?? 'Result as a table' }, table);
  const note = h('span', { class: 'muted small' });
  const button = h('button', { class: 'btn btn-small', type: 'button' }, 'Show more');
  const more = () => {
    const from = body.children.length;
    body.append(...list.slice(from, from + PORTION).map((item) => rowOf(item, columns.shown)));
    const shown = body.children.length;
    button.hidden = shown === list.length;
    note.textContent = words(name, shown, list.length, columns.left);
  };
  button.addEventListener('click', more);
  more();
  return h('div', { class: 'result' }, wrap, h('div', { class: 'row' }, note, button));
}

function words(name, shown, total, left) {
  const of = shown < total ? `${count(shown)} of ` : '';
  const columns = left > 0 ? `; ${left} more columns under Raw` : '';
  return `${name ? `${name}: ` : ''}${of}${count(total)} ${total === 1 ? 'row' : 'rows'}${columns}`;
}

function columnsOf(list) {
  const names = new Set();
  for (const item of list.slice(0, 200)) for (const key of Object.keys(item)) names.add(key);
  const all = [...names];
  return { shown: all.slice(0, MAX_COLUMNS), left: Math.max(0, all.length - MAX_COLUMNS) };
}

function isNumeric(list, name) {
  const first = list.find((item) => item[name] !== null && item[name] !== undefined);
  return typeof first?.[name] === 'number';
}

function rowOf(item, columns) {
  return h('tr', null, columns.map((name) => cell(item[name])));
}

function cell(value) {
  if (value === undefined || value === null) return h('td', { class: 'muted' }, value === null ? 'null' : '');
  if (typeof value === 'number') return h('td', { class: 'num' }, String(value));
  return h('td', null, typeof value === 'string' ? cut(value) : h('span', { class: 'mono' }, brief(value, 120)));
}

function cut(text) {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
