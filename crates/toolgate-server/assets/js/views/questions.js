// Questions of servers: a band for each above every view, and a dialog to answer it. All of their texts are untrusted.

import { ApiError, events, get, post } from '../api.js';
import { openDialog } from '../dialog.js';
import { fill, h, patchList, setText } from '../dom.js';
import { originLabel, plural, span } from '../format.js';
import { violations } from '../form/check.js';
import { createForm } from '../form/form.js';
import { formModel } from '../form/schema.js';
import { initialValue } from '../form/value.js';
import { icon } from '../icons.js';
import { reveal, visible } from '../text.js';
import { setWaiting } from '../title.js';
import { toast, toastError } from '../toast.js';

/** Clicks in the first milliseconds are ignored: they were meant for what was there before the band appeared. */
const CLICK_GUARD = 600;

/** The open questions by id. */
const waiting = new Map();

/** Shows the bands in `bands` while the page is open. */
export function questions(bands) {
  const list = h('div', { class: 'approvals', role: 'region', 'aria-label': 'Questions of servers', hidden: true });
  const live = h('div', { class: 'visually-hidden', role: 'alert' });
  bands.append(list, live);
  const drop = (id) => {
    waiting.get(id)?.close?.();
    waiting.delete(id);
  };
  const draw = () => {
    const now = Date.now();
    for (const [id, each] of waiting) if (now >= each.ends) drop(id);
    list.hidden = waiting.size === 0;
    setWaiting('questions', waiting.size);
    patchList(list, [...waiting.values()], (each) => each.question.id, create, update);
  };
  const take = (question) => {
    if (question.gone) {
      drop(question.id);
    } else if (!waiting.has(question.id)) {
      waiting.set(question.id, { question, ends: ending(question) });
      setText(live, `The server ${visible(question.server)} asks a question.`);
    }
    draw();
  };
  const refresh = () => get('/api/questions').then((all) => {
    const ids = new Set(all.map((each) => each.id));
    for (const id of [...waiting.keys()]) if (!ids.has(id)) drop(id);
    all.forEach(take);
    draw();
  }, () => {});
  events(['question'], { question: take, open: refresh, lagged: refresh });
  setInterval(() => waiting.size > 0 && draw(), 500);
}

/** Whether a server asks something during this call that the user may answer. */
export function asksDuring(call) {
  return [...waiting.values()].some(({ question }) => question.call === call);
}

/** Opens the dialog that answers the first question of this call, if there is one. */
export function answerDuring(call) {
  const entry = [...waiting.values()].find(({ question }) => question.call === call);
  if (entry && !entry.close) openQuestion(entry);
}

/** When the question expires by this machine's clock, which may differ from the gateway's. Never later than its full time. */
function ending({ asked_at, expires_at }) {
  const given = Date.parse(expires_at) - Date.parse(asked_at);
  return Date.now() + Math.min(Math.max(Date.parse(expires_at) - Date.now(), 0) || given, given);
}

function create(entry) {
  const { question } = entry;
  const createdAt = performance.now();
  const server = visible(question.server);
  const act = (run) => (event) => {
    if (performance.now() - createdAt < CLICK_GUARD) return;
    run(event.currentTarget);
  };
  const decline = async (button) => {
    button.disabled = true;
    if (!(await settle(question, { action: 'decline' }))) button.disabled = false;
  };
  return h('div', { class: 'band approval tone-info', 'data-testid': 'question-banner', 'data-id': question.id },
    icon('chat'),
    h('div', { class: 'band-text' },
      h('div', null, h('strong', null, server), ' asks during ', h('span', { class: 'mono' }, visible(question.tool)), ...callerOf(question)),
      h('div', { class: 'question-message', 'data-testid': 'question-message' }, reveal(question.message).nodes)),
    h('span', { class: 'approval-left num', 'data-testid': 'question-left' }),
    h('span', { class: 'row' },
      h('button', { class: 'btn', type: 'button', 'data-testid': 'question-decline', 'aria-label': `Decline the question of ${server}`, onclick: act(decline) }, icon('close'), 'Decline'),
      h('button', { class: 'btn btn-primary', type: 'button', 'data-testid': 'question-open', 'aria-label': `Answer the question of ${server}`, onclick: act(() => openQuestion(entry)) },
        question.url ? 'Show the page…' : 'Answer…')));
}

function callerOf({ caller, origin }) {
  const { long } = originLabel(origin);
  return caller ? [', called by ', h('strong', null, visible(caller)), ` through ${long}`] : [`, called through ${long}`];
}

function update(element, entry) {
  const left = `${span(Math.ceil((entry.ends - Date.now()) / 1000))} left`;
  setText(element.querySelector('.approval-left'), left);
  entry.showLeft?.(left);
}

/** Sends an answer. True if it was delivered. */
async function settle(question, answer, onInvalid) {
  try {
    await post(`/api/questions/${encodeURIComponent(question.id)}`, answer);
    const done = { accept: 'answered', decline: 'declined', cancel: 'dismissed' }[answer.action];
    toast(`The question of ${visible(question.server)} was ${done}.`, answer.action === 'accept' ? 'ok' : 'info');
    return true;
  } catch (error) {
    if (onInvalid && error instanceof ApiError && error.status === 422 && Array.isArray(error.body?.violations)) onInvalid(error.body.violations);
    else toastError(error);
    return false;
  }
}

async function openQuestion(entry) {
  const { question } = entry;
  const part = question.url ? pagePart(question) : formPart(question);
  // Set before the dialog opens: a field that gets and loses the focus counts as left empty.
  part.element.querySelector('input, select, textarea')?.setAttribute('autofocus', '');
  const left = h('span', { class: 'num', 'data-testid': 'question-dialog-left' });
  entry.showLeft = (text) => setText(left, text);
  const send = (answer) => () => settle(question, answer);
  const closing = openDialog({
    testid: 'question-dialog',
    title: `${visible(question.server)} asks`,
    body: [
      h('p', { class: 'question-message' }, reveal(question.message).nodes),
      part.element,
      h('p', { class: 'muted small question-note' },
        h('span', null, `Your answer goes to the server ${visible(question.server)}${question.url ? '' : '. Don’t enter passwords or keys'}.`), left),
    ],
    actions: [
      { text: 'Not now', testid: 'question-later' },
      { text: 'Dismiss', testid: 'question-cancel', check: send({ action: 'cancel' }) },
      { text: 'Decline', testid: 'question-refuse', check: send({ action: 'decline' }) },
      { text: part.accept, primary: true, testid: 'question-accept', check: part.send },
    ],
  });
  const dialog = document.querySelector('[data-testid="question-dialog"]');
  entry.close = () => dialog.close();
  await closing;
  entry.close = null;
  entry.showLeft = null;
}

/** The page that the server wants to be opened. It is never opened by itself, and its host is shown in full. */
function pagePart(question) {
  const { host, protocol } = new URL(question.url);
  const shown = reveal(question.url);
  return {
    accept: 'I did it',
    send: () => settle(question, { action: 'accept' }),
    element: h('div', { class: 'question-page' },
      h('p', null, 'It wants you to open a page of ', h('strong', { class: 'mono', 'data-testid': 'question-host' }, host), protocol === 'http:' && ' (without encryption)', '.'),
      /(^|\.)xn--/.test(host) && h('p', { class: 'approval-marks tone-warn' }, icon('alert'), 'The name has letters that may look like others.'),
      h('p', { class: 'code question-url', 'data-testid': 'question-url' }, shown.nodes),
      shown.marks > 0 && h('p', { class: 'approval-marks tone-warn' }, icon('alert'), `${plural(shown.marks, 'hidden or look-alike character')}, marked above`),
      h('p', null, h('a', { class: 'btn', href: question.url, target: '_blank', rel: 'noopener noreferrer', referrerpolicy: 'no-referrer', 'data-testid': 'question-link' }, `Open ${host}`))),
  };
}

function formPart(question) {
  const { schema } = question;
  const model = formModel(schema, { isQuestion: true });
  const general = h('p', { class: 'field-error', role: 'alert', 'data-testid': 'question-error', hidden: true });
  let showsAll = false;
  let rejected = [];
  const show = () => {
    const rest = form.show([...violations(schema, form.read()), ...rejected], showsAll);
    fill(general, rest.map((message) => h('span', { class: 'field-message' }, message)));
    general.hidden = rest.length === 0;
  };
  const form = createForm(model, initialValue(model) ?? {}, () => {
    rejected = [];
    show();
  });
  const hasFields = model.fields.length > 0;
  return {
    accept: hasFields ? 'Send' : 'Accept',
    element: h('div', { class: 'question-form', 'data-testid': 'question-form' }, hasFields && form.element, general),
    async send() {
      showsAll = true;
      rejected = [];
      show();
      if (violations(schema, form.read()).length > 0) {
        form.focusFirst();
        return false;
      }
      return settle(question, { action: 'accept', content: form.read() }, (wrong) => {
        rejected = wrong;
        show();
        form.focusFirst();
      });
    },
  };
}
