// The drawer with the details of one call: beside the list on a wide screen, over the page on a narrow one.

import { h, fill, uid } from '../dom.js';
import { get, events } from '../api.js';
import { ago, bytes, dateTime, duration, jsonTree, outcome, pretty, originLabel } from '../format.js';
import { contentView, entryHref, hrefsOf } from '../content/recorded.js';
import { icon } from '../icons.js';
import { renderResult } from '../result.js';
import { tabs } from '../tabs.js';
import { visible } from '../text.js';
import { copyText } from '../toast.js';
import { actions } from './call-actions.js';
import { taskPanel } from './call-task.js';
import { diff } from './call-diff.js';
import { waterfall } from './waterfall.js';

const NARROW = matchMedia('(max-width: 1100px)');

/** Creates the drawer, whose buttons call `onClose()` and `onStep(by)`. */
export function drawer(options) {
  return new Drawer(options);
}

class Drawer {
  constructor({ onClose, onStep, store }) {
    Object.assign(this, { onClose, onStep, store });
    this.id = null;
    this.onWidthChange = () => this.id && this.cover(NARROW.matches);
    NARROW.addEventListener('change', this.onWidthChange);
    this.outside = (event) => !this.element.contains(event.target) && !event.target.closest('dialog, .toasts') && onClose();
    this.body = h('div', { class: 'drawer-body', tabindex: '-1' });
    this.title = h('h2', { class: 'mono drawer-title', id: uid('drawer'), tabindex: '-1' });
    this.badge = h('span', { class: 'badge', 'data-testid': 'drawer-outcome' });
    const button = (name, label, run, testid) => h('button', { class: 'btn-plain', type: 'button', 'aria-label': label, title: label, 'data-testid': testid, onclick: run }, icon(name));
    this.element = h('div', { class: 'drawer', role: 'complementary', hidden: true, 'data-testid': 'drawer', 'aria-labelledby': this.title.id },
      h('header', { class: 'drawer-head' }, h('div', { class: 'grow drawer-name' }, this.title, this.badge),
        button('up', 'Newer call (k)', () => onStep(-1), 'drawer-newer'), button('down', 'Older call (j)', () => onStep(1), 'drawer-older'),
        button('close', 'Close (Esc)', onClose, 'drawer-close')),
      this.body);
  }

  open(id) {
    if (this.id === id) return;
    this.close(true);
    this.id = id;
    this.stop = events(['call'], { call: (call) => call.id === this.id && this.load() });
    this.element.hidden = false;
    this.cover(NARROW.matches);
    const known = this.store.byId.get(id)?.call;
    if (known) this.head(known);
    this.body.scrollTop = 0;
    this.load();
    if (this.wantsFocus || NARROW.matches) this.focus();
    this.wantsFocus = false;
  }

  close(again = false) {
    this.stop?.();
    this.stop = null;
    this.task?.stop();
    this.task = null;
    this.request?.abort();
    this.id = null;
    if (again) return;
    this.element.hidden = true;
    this.cover(false);
  }

  /** On a narrow screen the drawer is a modal dialog, and the page below is inert. */
  cover(covered) {
    this.element.setAttribute('role', covered ? 'dialog' : 'complementary');
    if (covered) this.element.setAttribute('aria-modal', 'true');
    else this.element.removeAttribute('aria-modal');
    if (covered) document.addEventListener('click', this.outside);
    else document.removeEventListener('click', this.outside);
    const list = this.element.previousElementSibling;
    const bar = this.element.parentElement?.previousElementSibling;
    for (const each of [list, bar, ...document.querySelectorAll('.topbar, .strip')]) if (each) each.inert = covered;
  }

  /** Must be called when the view is left. */
  end() {
    this.close();
    NARROW.removeEventListener('change', this.onWidthChange);
  }

  focus() {
    this.title.focus({ preventScroll: true });
  }

  /** Focuses the drawer when the next call is opened. */
  focusNext() {
    this.wantsFocus = true;
  }

  async load() {
    this.request?.abort();
    this.request = new AbortController();
    const id = this.id;
    try {
      const call = await get(`/api/calls/${encodeURIComponent(id)}`, { signal: this.request.signal });
      if (id === this.id) this.draw(call);
    } catch (error) {
      if (error.name === 'AbortError' || id !== this.id) return;
      const title = error.status === 404 ? 'This call is no longer recorded' : 'The call could not be loaded';
      if (!this.store.byId.has(id)) fill(this.title, 'Call');
      fill(this.body, h('div', { class: 'empty' }, h('h2', null, title), h('p', null, error.detail)));
    }
  }

  head(call) {
    const entry = entryHref(call);
    const href = entry ?? (call.source ? `#/tools/${encodeURIComponent(call.tool)}` : null);
    fill(this.title, href ? h('a', { href, title: entry ? 'Show it on the page of its server' : 'Show the tool' }, call.tool) : call.tool);
    const { text, tone } = outcome(call.outcome);
    this.badge.className = `badge tone-${tone}`;
    this.badge.dataset.status = call.outcome;
    fill(this.badge, h('span', { class: 'dot' }), text);
  }

  draw(call) {
    this.head(call);
    this.task?.stop();
    this.task = goesOn(call) ? taskPanel(call, waiting(call)) : null;
    const go = (id) => {
      location.hash = location.hash.replace(/^#\/calls\/[^?]*/, `#/calls/${encodeURIComponent(id)}`);
    };
    fill(this.body, facts(call), problem(call), this.task?.element, actions(call, go),
      section('Steps', waterfall(call)), section('Arguments', diff(call)),
      call.outcome !== 'running' && result(call), schema(call));
  }
}

function section(title, ...children) {
  return h('section', { class: 'drawer-section' }, h('h3', null, title), children);
}

function facts(call) {
  const entries = [
    ['Began', `${dateTime(call.started_at)}, ${ago(call.started_at)}`, true],
    ['Took', Number.isFinite(call.duration_ms) && duration(call.duration_ms)],
    ['Server', call.server ?? call.source],
    ['Asked by', call.caller ? `${call.caller} through ${originLabel(call.origin).long}` : originLabel(call.origin).long],
    ['Approval', approval(call.approval), true],
    ['Process', call.run?.command && `${call.run.command}, pid ${call.run.pid}`],
    ['Size', call.result_bytes === null || call.result_bytes === undefined ? null : bytes(call.result_bytes)],
    ['Call', copyable(call.id, 'Call id copied'), true],
    ['Trace', call.trace_id && copyable(call.trace_id, 'Trace id copied'), true],
  ];
  return h('dl', { class: 'drawer-facts' }, entries.filter(([, value]) => value).map(([name, value, wide]) => ['dt', 'dd'].map((tag) => h(tag, { class: wide && 'is-wide' }, tag === 'dt' ? name : value))));
}

/** Who approved or declined the call, how and when. */
function approval(answer) {
  if (!answer) return null;
  const means = { option: '--yes' }[answer.means] ?? answer.means;
  const by = answer.by ? `${visible(answer.by)} (${means})` : `the ${means}`;
  return `${answer.granted ? 'approved' : 'declined'} by ${by}, ${dateTime(answer.at)}`;
}

function copyable(text, said) {
  return h('button', { class: 'btn-plain mono copyable', type: 'button', title: 'Copy', onclick: () => copyText(text, said) }, text);
}

function problem(call) {
  if (call.outcome === 'interrupted' && !call.error) {
    return h('div', { class: 'problem tone-warn' }, h('p', null, 'The gateway stopped while this call was running, so it is unknown what the call did.'));
  }
  if (!call.error && !call.hint) return null;
  const { tone } = outcome(call.outcome);
  const details = call.details === null || call.details === undefined ? null
    : h('details', null, h('summary', null, 'Details'), typeof call.details === 'string' ? h('pre', { class: 'code', tabindex: '0' }, call.details) : jsonTree(call.details));
  return h('div', { class: `problem tone-${tone}`, 'data-testid': 'drawer-error' }, h('p', null, visible(call.error ?? '')), call.hint && h('p', { class: 'muted' }, call.hint), details);
}

/** A task of a gateway that was restarted goes on, although its call counts as interrupted until it ends. */
function goesOn(call) {
  return call.outcome === 'running' || call.outcome === 'interrupted';
}

function waiting(call) {
  if (call.outcome !== 'running') return null;
  return h('p', { class: 'muted row' }, h('span', { class: 'spinner' }), 'Waiting for the result');
}

function result(call) {
  const raw = () => h('pre', { class: 'code', tabindex: '0', 'data-testid': 'drawer-raw', 'aria-label': 'The call as JSON' }, pretty(rawOf(call)));
  const shown = () => h('div', { 'data-testid': 'drawer-result' }, call.success ? [cutNote(call), contentView(call) ?? renderResult(call.result, call.content, hrefsOf(call))] : h('p', { class: 'muted' }, 'The call returned no result.'));
  return h('section', { class: 'drawer-section' }, tabs('Result', [
    { id: 'result', text: 'Result', draw: shown },
    { id: 'raw', text: 'Raw', draw: raw },
  ], 'drawer-tab'));
}

function cutNote(call) {
  return call.result_cut && h('p', { class: 'muted small' }, 'The result was too long to store; this is its beginning.');
}

/** The recorded call without the tool's definition, which is shown under Schema. */
function rawOf(call) {
  const { tool_definition: _, ...rest } = call;
  return rest;
}

function schema(call) {
  const tool = call.tool_definition;
  const body = tool ? jsonTree(tool.parameters, { open: 3 }) : h('p', { class: 'muted' }, 'This tool no longer exists.');
  return h('details', { class: 'drawer-section', 'data-testid': 'drawer-schema' }, h('summary', null, h('h3', null, 'Schema')),
    tool?.description && h('p', { class: 'muted' }, tool.description), body,
    tool?.output_schema && [h('h4', null, 'Result'), jsonTree(tool.output_schema, { open: 2 })]);
}
