// Calls that go on as tasks: how far they are, and the button that stops one.

import { h, fill, setText } from '../dom.js';
import { get, post } from '../api.js';
import { confirmDialog } from '../dialog.js';
import { ago } from '../format.js';
import { icon } from '../icons.js';
import { visible } from '../text.js';
import { toast, toastError } from '../toast.js';
import { answerDuring, asksDuring } from './questions.js';

const POLL_INTERVAL = 1500;

let known = new Map();
const watchers = new Set();
let timer = null;

/** The task that a call goes on as, or undefined. Known only while somebody watches. */
export function taskOf(id) {
  return known.get(id);
}

/**
 * Looks for tasks while `isNeeded()` is true, and calls `onChange()` after each look. Returns the function that ends it.
 */
export function watchTasks(isNeeded, onChange) {
  const watcher = { isNeeded, onChange };
  watchers.add(watcher);
  timer ??= setInterval(look, POLL_INTERVAL);
  look();
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = null;
  };
}

async function look() {
  if (document.hidden || ![...watchers].some((each) => each.isNeeded())) return;
  try {
    const tasks = await get('/api/tasks');
    known = new Map(tasks.map((task) => [task.id, task]));
  } catch {
    return; // The strip says that the gateway is away.
  }
  for (const watcher of [...watchers]) watcher.onChange();
}

/** How much is done, from 0 to 1; null if the tool doesn't say. */
export function shareOf(task) {
  if (!(task.total > 0) || !Number.isFinite(task.done)) return null;
  return Math.min(1, Math.max(0, task.done / task.total));
}

/** A task in a word or two, for a row of the list. */
export function taskWord(task) {
  if (task.status === 'input_required') return task.caller_waits ? 'Asks a person' : 'Asks its client';
  const share = shareOf(task);
  return share === null ? 'Task' : `Task, ${Math.floor(share * 100)} %`;
}

/** Shows the task of a call and keeps it up to date; empty if the call is no task. Call `stop()` at the end. */
export function taskPanel(call, otherwise) {
  const fillBar = h('span', { class: 'bar-fill' });
  const bar = h('div', { class: 'bar task-bar', role: 'progressbar', 'aria-label': `Progress of ${call.tool}`, 'aria-valuemin': '0', 'aria-valuemax': '100' }, fillBar);
  const message = h('p', { class: 'task-message' });
  const percentage = h('span', { class: 'num', 'aria-hidden': 'true' });
  const holder = h('span');
  const news = h('span');
  const answerButton = h('button', { class: 'btn btn-small btn-primary', type: 'button', 'data-testid': 'task-answer', onclick: () => answerDuring(call.id) }, 'Answer…');
  const stopButton = h('button', { class: 'btn btn-small', type: 'button', 'data-testid': 'task-cancel', onclick: (event) => cancel(call, event.currentTarget) }, icon('close'), 'Stop task');
  const panel = h('div', { class: 'task', 'data-testid': 'task' },
    h('div', { class: 'task-state' }, h('div', { class: 'task-head' }, message, percentage), bar, h('p', { class: 'task-note muted small' }, holder, news)),
    h('div', { class: 'task-buttons' }, answerButton, stopButton));
  const root = h('div');
  let shown = null;
  const draw = () => {
    const task = taskOf(call.id);
    const next = task ? panel : otherwise;
    if (next !== shown) fill(root, next);
    shown = next;
    if (!task) return;
    const share = shareOf(task);
    setText(message, stateOf(task));
    setText(percentage, share === null ? '' : `${Math.floor(share * 100)} %`);
    bar.hidden = share === null;
    fillBar.style.width = `${(share ?? 0) * 100}%`;
    bar.setAttribute('aria-valuenow', String(Math.floor((share ?? 0) * 100)));
    setText(holder, task.caller_waits ? `${visible(task.server)} works on it while the caller waits.` : 'Its client comes back for the result.');
    setText(news, `Last news ${ago(task.updated_at)}.`);
    answerButton.hidden = !asksDuring(call.id);
    stopButton.hidden = !task.may_cancel;
  };
  draw();
  const stop = watchTasks(() => true, draw);
  return { element: root, stop };
}

function stateOf(task) {
  if (task.status !== 'input_required') return visible(task.message ?? 'Working');
  return task.caller_waits ? 'Waits for an answer' : 'Waits for an answer from its client';
}

async function cancel(call, button) {
  const waits = taskOf(call.id)?.caller_waits;
  const yes = await confirmDialog({
    title: `Stop ${call.tool}?`,
    text: waits ? 'The call is cancelled, and its server is told to stop.' : 'The call is cancelled, and its client learns that there will be no result.',
    yes: 'Stop it',
    no: 'Keep it running',
    danger: true,
  });
  if (!yes) return;
  button.disabled = true;
  // The button goes away with the panel, and the focus must stay here.
  button.closest('.drawer')?.querySelector('.drawer-title')?.focus();
  try {
    await post(`/api/tasks/${encodeURIComponent(call.id)}/cancel`);
    toast(`${call.tool} was stopped.`, 'ok');
  } catch (error) {
    toastError(error);
    button.disabled = false;
  }
}
