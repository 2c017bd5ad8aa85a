// The banner with the calls that wait for approval. It is above every view and never takes the focus.

import { h, patchList, setText } from '../dom.js';
import { get, post, events } from '../api.js';
import { count, plural, span, originLabel } from '../format.js';
import { icon } from '../icons.js';
import { reveal, visible } from '../text.js';
import { setWaiting } from '../title.js';
import { toast, toastError } from '../toast.js';

/** Clicks in the first milliseconds are ignored: they were meant for what was there before the banner appeared. */
const CLICK_GUARD = 600;
/** How much fits without scrolling. */
const MAX_LINES = 10;
const MAX_CHARACTERS = 800;

/** Shows the banner in `bands` while the page is open. */
export function approvals(bands) {
  const waiting = new Map();
  const list = h('div', { class: 'approvals', role: 'region', 'aria-label': 'Approvals', hidden: true });
  const live = h('div', { class: 'visually-hidden', role: 'alert' });
  bands.append(list, live);
  const draw = () => {
    const now = Date.now();
    for (const [id, each] of waiting) if (now >= each.ends) waiting.delete(id);
    list.hidden = waiting.size === 0;
    setWaiting('approvals', waiting.size);
    patchList(list, [...waiting.values()], (each) => each.approval.id, create, update);
  };
  const take = (approval) => {
    if (approval.gone) {
      waiting.delete(approval.id);
    } else if (!waiting.has(approval.id)) {
      waiting.set(approval.id, { approval, ends: ending(approval) });
      setText(live, `${approval.tool} waits for your approval, asked by ${callerOf(approval).join('')}.`);
    }
    draw();
  };
  const refresh = () => get('/api/approvals').then((all) => {
    const ids = new Set(all.map((each) => each.id));
    for (const id of waiting.keys()) if (!ids.has(id)) waiting.delete(id);
    all.forEach(take);
    draw();
  }, () => {});
  events(['approval'], { approval: take, open: refresh, lagged: refresh });
  setInterval(() => waiting.size > 0 && draw(), 500);
}

/** When the approval expires by this machine's clock, which may differ from the gateway's. Never later than its full time. */
function ending({ asked_at, expires_at }) {
  const given = Date.parse(expires_at) - Date.parse(asked_at);
  return Date.now() + Math.min(Math.max(Date.parse(expires_at) - Date.now(), 0) || given, given);
}

function create({ approval }) {
  const createdAt = performance.now();
  const decide = (approve) => async (event) => {
    if (performance.now() - createdAt < CLICK_GUARD) return;
    const buttons = event.currentTarget.parentElement.querySelectorAll('button');
    for (const button of buttons) button.disabled = true;
    try {
      await post(`/api/approvals/${encodeURIComponent(approval.id)}`, { approve });
      toast(`${approval.tool} ${approve ? 'approved' : 'declined'}.`, approve ? 'ok' : 'info');
    } catch (error) {
      toastError(error);
      for (const button of buttons) button.disabled = false;
    }
  };
  return h('div', { class: 'band approval tone-warn', 'data-testid': 'approval-banner', 'data-id': approval.id },
    icon('shield'), question(approval),
    h('span', { class: 'approval-left num', 'data-testid': 'approval-left' }),
    h('span', { class: 'row' },
      h('button', { class: 'btn', type: 'button', 'data-testid': 'refuse', 'aria-label': `Decline ${approval.tool}`, onclick: decide(false) }, icon('close'), 'Decline'),
      h('button', { class: 'btn btn-primary', type: 'button', 'data-testid': 'approve', 'aria-label': `Approve ${approval.tool}`, onclick: decide(true) }, icon('check'), 'Approve')));
}

/** The name of the caller's token, if there is one, and the origin. */
function callerOf({ caller, origin }) {
  const { long } = originLabel(origin);
  return caller ? [caller, ` through ${long}`] : ['', long];
}

function question(approval) {
  const where = approval.server ? ` on ${visible(approval.server)}` : '';
  const [caller, rest] = callerOf(approval);
  const name = reveal(approval.tool);
  const args = reveal(JSON.stringify(approval.arguments, null, 2));
  const marks = name.marks + args.marks;
  const pre = h('pre', { class: 'code approval-arguments', tabindex: '0', 'aria-label': 'Arguments', 'data-testid': 'approval-arguments' }, args.nodes);
  return h('div', { class: 'band-text' },
    h('div', null, h('strong', { class: 'mono' }, name.nodes), `${where} needs your approval, asked by `, caller && h('strong', null, visible(caller)), rest),
    marks > 0 && h('div', { class: 'approval-marks', 'data-testid': 'approval-marks' }, icon('alert'),
      `${plural(marks, 'hidden or look-alike character')}, marked below`),
    pre, longNote(approval.arguments));
}

/** A note if the arguments are too long to be seen without scrolling. */
function longNote(args) {
  const lines = JSON.stringify(args, null, 2).split('\n').length;
  const size = JSON.stringify(args).length;
  return (lines > MAX_LINES || size > MAX_CHARACTERS) && h('div', { class: 'muted small' }, `${count(size)} characters on ${plural(lines, 'line')}; scroll to read them all.`);
}

function update(element, { ends }) {
  setText(element.querySelector('.approval-left'), `${span(Math.ceil((ends - Date.now()) / 1000))} left`);
}
