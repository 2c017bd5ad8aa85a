// The definition of a tool: its parameters, its output schema, its annotations, and everything as JSON.

import { h } from '../dom.js';
import { duration, jsonTree, pretty } from '../format.js';
import { schemaView } from '../schema-view.js';
import { copyText } from '../toast.js';
import { traits } from './stats.js';

export function mountDefinition(root, tool) {
  const copy = h('button', { class: 'btn btn-small', type: 'button', onclick: () => copyText(pretty(tool), 'Definition copied') }, 'Copy');
  root.append(h('div', { class: 'definition' },
    h('div', { class: 'stack' },
      section('Parameters', schemaView(tool.parameters, tool.parameters, 'This tool takes no parameters.')),
      tool.output_schema && section('Returns', schemaView(tool.output_schema, tool.output_schema, 'Anything.'))),
    h('div', { class: 'stack' },
      section('Behaviour', behaviour(tool)),
      h('section', { class: 'card', 'data-testid': 'tool-schema' }, h('div', { class: 'section-head' }, h('h2', null, 'As JSON'), copy), jsonTree(tool, { open: 2 })))));
  return () => {};
}

function section(title, content) {
  return h('section', { class: 'card' }, h('h2', null, title), content);
}

function behaviour(tool) {
  return h('dl', { class: 'facts' },
    traits(tool).map(([label, value]) => [h('dt', null, label), h('dd', null, value)]),
    h('dt', null, 'source'), h('dd', { class: 'mono' }, tool.source),
    h('dt', null, 'needs approval'), h('dd', null, tool.needs_approval ? 'yes' : 'no'),
    h('dt', null, 'timeout'), h('dd', null, duration(tool.timeout_ms)));
}
