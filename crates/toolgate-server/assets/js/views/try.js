// The form to try a tool, built from its schema or as JSON. The gateway checks the arguments while the user types.

import { ApiError, address, get, post } from '../api.js';
import { callUrl, curl, toolgateCall } from '../commands.js';
import { confirmDialog } from '../dialog.js';
import { debounce, fill, h, setAttr, setText } from '../dom.js';
import { plural, pretty } from '../format.js';
import { createForm } from '../form/form.js';
import { formModel } from '../form/schema.js';
import { canShow, initialValue, isObject, parseJson } from '../form/value.js';
import { icon } from '../icons.js';
import { renderResult } from '../result.js';
import { resourceHref } from '../servers/offer.js';
import { copyText, toast } from '../toast.js';
import { tokenNeeded } from '../token.js';
import { resultView } from '../tools/result.js';
import { asksFirst } from '../tools/stats.js';

const CHECK_AFTER_MS = 250;

/** The input for each tool, kept while other views are open. */
const drafts = new Map();

export function mountTry(root, tool, { from } = {}) {
  const session = new Session(tool);
  fill(root, session.element);
  session.start(from);
  return () => session.leave();
}

class Session {
  constructor(tool) {
    this.tool = tool;
    this.model = formModel(tool.parameters ?? {});
    this.stopping = new AbortController();
    this.checks = 0;
    const hrefOf = tool.server ? (uri) => resourceHref(tool.server, uri) : undefined;
    this.draw = (result, content) => renderResult(result, content, hrefOf);
    this.running = null;
    // After the first attempt to run, all messages are shown, even those of fields not touched yet.
    this.showsAll = false;
    this.checkSoon = debounce(() => this.check(), CHECK_AFTER_MS);
    this.build();
  }

  build() {
    this.editor = h('div', { class: 'try-editor' });
    this.status = h('p', { class: 'try-status', role: 'status', 'data-testid': 'try-status' });
    this.general = h('p', { class: 'field-error', id: 'try-problems', 'data-testid': 'try-error-', hidden: true });
    this.toggle = h('div', { class: 'segmented', role: 'group', 'aria-label': 'Edit as' },
      [['form', 'Form'], ['json', 'JSON']].map(([mode, label]) => h('button', {
        class: 'btn btn-small', type: 'button', 'data-mode': mode, 'data-testid': `try-${mode}-toggle`, onclick: () => this.switchTo(mode),
      }, label)));
    this.run = h('button', { class: 'btn btn-primary', type: 'submit', 'data-testid': 'try-run' });
    this.halt = h('button', { class: 'btn', type: 'button', 'data-testid': 'try-stop', onclick: () => this.running?.abort() }, 'Stop');
    this.result = h('div', { class: 'try-result', 'data-testid': 'try-result', 'aria-live': 'polite' });
    const copy = (label, make) => h('button', { class: 'btn btn-small', type: 'button', onclick: () => this.copy(label, make) }, icon('copy'), label);
    const reset = h('button', { class: 'btn', type: 'button', 'data-testid': 'try-reset', onclick: () => this.reset() }, 'Reset');
    const url = callUrl(address('').replace(/\/$/, ''), this.tool.name);
    const form = h('form', { class: 'card try-form', novalidate: true, 'data-testid': 'try-form', onsubmit: (event) => this.submit(event) },
      h('div', { class: 'section-head' }, h('h2', null, 'Arguments'), this.toggle),
      this.editor, this.general,
      h('div', { class: 'try-actions' }, this.run, this.halt, reset, this.status),
      h('div', { class: 'try-copy' }, h('span', { class: 'muted small' }, 'Copy as'),
        copy('curl', (value) => curl({ method: 'POST', url, body: JSON.stringify(value), token: tokenNeeded() })),
        copy('toolgate call', (value) => toolgateCall(this.tool.name, value))));
    form.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    this.element = h('div', { class: 'try' }, form, h('section', { class: 'try-side', 'aria-label': 'Result' }, this.result));
    this.showRunning(false);
    fill(this.result, waiting());
  }

  async start(from) {
    const draft = drafts.get(this.tool.name);
    this.mode = draft?.mode ?? (this.model.free ? 'json' : 'form');
    this.show(draft?.value ?? initialValue(this.model) ?? {});
    if (!from) return;
    try {
      const call = await get(`/api/calls/${encodeURIComponent(from)}`, { signal: this.stopping.signal });
      this.show(call.asked ?? call.arguments ?? {});
    } catch (error) {
      if (error.name !== 'AbortError') toast(`The arguments of that call could not be loaded. ${error.detail ?? ''}`, 'warn');
    }
  }

  leave() {
    const given = this.read();
    if (isObject(given.value)) drafts.set(this.tool.name, { mode: this.mode, value: given.value });
    this.stopping.abort();
    this.running?.abort();
  }

  reset() {
    drafts.delete(this.tool.name);
    this.showsAll = false;
    this.show(initialValue(this.model) ?? {});
    fill(this.result, waiting());
  }

  /** Draws the editor with `value`. If the form can't show the whole value, switches to JSON. */
  show(value) {
    if (this.mode === 'form' && !canShow(this.model, value)) {
      this.mode = 'json';
      toast("The form can't show these arguments, so they are shown as JSON.", 'info');
    }
    this.form = null;
    if (this.mode === 'form') {
      this.form = createForm(this.model, value, () => this.checkSoon());
      const hasFields = this.form.element.querySelector('input, select, textarea, button');
      const none = this.model.free ? 'This tool takes any object: enter it as JSON.' : 'This tool takes no arguments.';
      fill(this.editor, hasFields ? this.form.element : h('p', { class: 'muted' }, none));
    } else {
      this.json = h('textarea', {
        class: 'textarea mono try-json', rows: '14', spellcheck: 'false', autocomplete: 'off', 'aria-label': 'Arguments as JSON',
        'aria-describedby': 'try-problems', 'data-testid': 'try-json', value: pretty(value), oninput: () => this.checkSoon(),
      });
      fill(this.editor, this.json);
    }
    for (const button of this.toggle.children) button.setAttribute('aria-pressed', String(button.dataset.mode === this.mode));
    this.check();
  }

  switchTo(mode) {
    if (mode === this.mode) return;
    const { value, error } = this.read();
    if (error) return toast('Correct the JSON before you switch to the form.', 'warn');
    this.mode = mode;
    this.show(value);
  }

  /** `{ value }`, or `{ error }` if the input is not a JSON object. */
  read() {
    if (this.mode === 'form') {
      const value = this.form.read();
      const [broken] = this.form.broken().values();
      return { value, error: broken };
    }
    const { value, error } = parseJson(this.json.value);
    if (error) return { error };
    return isObject(value ?? {}) ? { value: value ?? {} } : { error: 'Arguments must be a JSON object: { … }.' };
  }

  /** Lets the gateway check the arguments. Resolves with false if they would be rejected. */
  async check() {
    const { value, error } = this.read();
    this.checks += 1;
    const number = this.checks;
    if (error) return this.showCheck({ valid: false, violations: [], local: error });
    try {
      const answer = await post(`/api/tools/${encodeURIComponent(this.tool.name)}/check`, value, { signal: this.stopping.signal });
      return number === this.checks ? this.showCheck(answer) : answer.valid;
    } catch (problem) {
      if (problem.name === 'AbortError') return false;
      // If the check isn't available, the call itself reports what is wrong.
      setText(this.status, '');
      return true;
    }
  }

  showCheck(answer) {
    const violations = answer.violations ?? [];
    const rest = this.form ? this.form.show(violations, this.showsAll) : violations.map(({ parameter, message }) => (parameter ? `${parameter}: ${message}` : message));
    const words = [this.form ? null : answer.local, ...rest, !answer.valid && !violations.length && !answer.local ? answer.error : null].filter(Boolean);
    const isShown = words.length > 0 && (this.showsAll || !this.form || rest.length > 0 || answer.local);
    fill(this.general, isShown ? words.map((word) => h('span', { class: 'field-message' }, word)) : null);
    this.general.hidden = !isShown;
    if (!this.form) this.json.setAttribute('aria-invalid', String(!answer.valid));
    const isEmpty = answer.valid && this.isEmpty();
    this.status.className = `try-status ${isEmpty ? 'tone-muted' : answer.valid ? 'tone-ok' : 'tone-warn'}`;
    setText(this.status, answer.valid ? notes(answer, isEmpty) : problems(violations.length + (answer.local ? 1 : 0)));
    return answer.valid;
  }

  async submit(event) {
    event.preventDefault();
    if (this.running) return;
    this.showsAll = true;
    if (!(await this.check())) return this.form ? this.form.focusFirst() : this.json.focus();
    const { value } = this.read();
    if (asksFirst(this.tool) && !(await confirmDialog(question(this.tool, value)))) return;
    await this.call(value);
  }

  async call(value) {
    this.running = new AbortController();
    this.showRunning(true);
    const began = performance.now();
    if (this.tool.needs_approval) fill(this.result, h('p', { class: 'try-waiting muted' }, 'Waiting for approval at the top of the page.'));
    try {
      const envelope = await post(`/api/tools/${encodeURIComponent(this.tool.name)}/call`, value, { signal: this.running.signal });
      fill(this.result, resultView(envelope, performance.now() - began, this.draw));
      if (envelope.error_kind === 'invalid_arguments') this.showRefusal();
    } catch (error) {
      if (error.name === 'AbortError') fill(this.result, h('p', { class: 'muted' }, 'Stopped. This page no longer waits for the result; the tool may still be running.'));
      else if (error instanceof ApiError && isObject(error.body) && 'success' in error.body) fill(this.result, resultView(error.body, performance.now() - began));
      else fill(this.result, resultView({ success: false, error: error.detail ?? error.message, tool_name: this.tool.name }, performance.now() - began));
    } finally {
      this.running = null;
      this.showRunning(false);
      // On a narrow screen the result is below the form, out of view.
      if (matchMedia('(max-width: 1000px)').matches) this.result.scrollIntoView({ block: 'nearest' });
    }
  }

  /** True if no field is filled in. That may be valid, but the status shouldn't look like success. */
  isEmpty() {
    const { value } = this.read();
    return this.model.fields?.length > 0 && isObject(value) && Object.keys(value).length === 0;
  }

  /** The tool itself may reject arguments that its schema allows. */
  showRefusal() {
    this.status.className = 'try-status tone-warn';
    setText(this.status, 'The tool does not accept these arguments');
  }

  showRunning(isRunning) {
    fill(this.run, isRunning ? h('span', { class: 'spinner', 'aria-hidden': 'true' }) : icon('play'), isRunning ? 'Running' : 'Run');
    setAttr(this.run, 'aria-disabled', isRunning ? 'true' : null);
    this.halt.hidden = !isRunning;
    this.result.setAttribute('aria-busy', String(isRunning));
  }

  copy(label, make) {
    const { value, error } = this.read();
    if (error) return toast('Correct the JSON before you copy it.', 'warn');
    copyText(make(value), `Copied as ${label}`);
  }
}

function waiting() {
  return h('div', { class: 'try-waiting muted' }, h('p', null, 'The result appears here.'),
    h('p', { class: 'small' }, h('kbd', null, 'Ctrl'), ' ', h('kbd', null, 'Enter'), ' runs from any field.'));
}

function question(tool, value) {
  const why = tool.annotations?.destructive === true
    ? 'According to the tool, it may delete or overwrite something.'
    : 'Its calls need approval at the top of this page.';
  return { title: `Run ${tool.name}?`, text: why, body: h('pre', { class: 'code', tabindex: '0' }, pretty(value)), yes: 'Run it', danger: true };
}

function problems(count) {
  return count > 0 ? `${plural(count, 'field')} to fill in or correct` : 'Correct the marked fields';
}

/** What the gateway does with the arguments before the tool gets them. */
function notes(answer, isEmpty) {
  const words = [isEmpty ? 'Nothing filled in' : 'Valid'];
  if (answer.renamed?.length) words.push(`renamed: ${answer.renamed.map(([old, name]) => `${old} → ${name}`).join(', ')}`);
  if (answer.dropped?.length) words.push(`left out: ${answer.dropped.join(', ')}`);
  if (answer.needs_approval) words.push('needs approval');
  return words.join(' · ');
}
