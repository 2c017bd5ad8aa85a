// The button that reads a resource or gets a prompt, and the result. Either is a call, which also appears in the live list.

import { ApiError, post } from '../api.js';
import { fill, h, setAttr } from '../dom.js';
import { icon } from '../icons.js';
import { resultView } from '../tools/result.js';

export class ContentCall {
  /** `draw(result)` shows a successful result. The button submits the form around it. */
  constructor({ path, label, testid, draw }) {
    Object.assign(this, { path, label, draw, running: null });
    this.button = h('button', { class: 'btn btn-primary', type: 'submit', 'data-testid': testid });
    this.halt = h('button', { class: 'btn', type: 'button', onclick: () => this.running?.abort() }, 'Stop');
    this.result = h('div', { class: 'entry-result try-result', 'data-testid': `${testid}-result`, 'aria-live': 'polite' });
    this.show();
  }

  leave() {
    this.running?.abort();
  }

  async run(body) {
    if (this.running) return;
    const running = new AbortController();
    this.running = running;
    this.show();
    const began = performance.now();
    const done = (envelope) => fill(this.result, resultView(envelope, performance.now() - began, this.draw));
    try {
      done(await post(this.path, body, { signal: running.signal }));
    } catch (error) {
      if (error.name === 'AbortError') fill(this.result, h('p', { class: 'muted' }, 'Stopped. This page no longer waits for the result.'));
      else if (error instanceof ApiError && typeof error.body === 'object' && error.body !== null && 'success' in error.body) done(error.body);
      else done({ success: false, error: error.detail ?? error.message });
    } finally {
      this.running = null;
      this.show();
    }
  }

  show() {
    const isRunning = this.running !== null;
    fill(this.button, isRunning ? h('span', { class: 'spinner', 'aria-hidden': 'true' }) : icon('play'), isRunning ? 'Running' : this.label);
    setAttr(this.button, 'aria-disabled', isRunning ? 'true' : null);
    this.halt.hidden = !isRunning;
    this.result.setAttribute('aria-busy', String(isRunning));
  }
}
