// The frame around every view: navigation, theme, keyboard shortcuts, sign-out and banners.

import { h, fill, setAttr } from './dom.js';
import { address } from './api.js';
import { icon } from './icons.js';
import { registerKeys, showKeys } from './keys.js';
import { may, onRights } from './rights.js';
import { onStatus, strip } from './strip.js';
import { approvals } from './views/approvals.js';
import { questions } from './views/questions.js';

const NAV = [['calls', 'Calls'], ['servers', 'Servers'], ['tools', 'Tools'], ['chat', 'Chat'], ['voice', 'Voice'], ['api', 'API']];
/** The right that a view needs; without it the view is hidden. */
const NEEDS = { voice: 'read_turns' };
const THEMES = { system: 'system', light: 'light', dark: 'dark' };
const THEME_ICONS = { system: 'system', light: 'sun', dark: 'moon' };

/** Draws the frame and starts everything that runs while the page is open. */
export function shell() {
  const links = NAV.map(([view, title]) =>
    h('a', { href: `#/${view}`, 'data-testid': `nav-${view}`, 'data-view': view }, icon(view), title));
  fill(document.getElementById('nav'), links);
  onRights(() => {
    for (const link of links) link.hidden = !isOpen(link.dataset.view);
  });
  fill(document.getElementById('topbar-tools'), keysButton(), themeButton(), signOut());
  const bands = document.getElementById('bands');
  strip(document.getElementById('strip'), bands);
  bands.append(signedOutBand(), signInBand());
  approvals(bands);
  questions(bands);
  registerKeys('Page', NAV.map(([view, title], at) => ({
    keys: [String(at + 1)],
    label: title,
    run: () => {
      if (!isOpen(view)) return false;
      location.hash = `#/${view}`;
      return undefined;
    },
  })));
}

function isOpen(view) {
  return !NEEDS[view] || may(NEEDS[view]);
}

/** Marks the view shown in the navigation. */
export function markCurrent(view) {
  for (const link of document.querySelectorAll('#nav a')) {
    setAttr(link, 'aria-current', link.dataset.view === view ? 'page' : null);
  }
}

function keysButton() {
  const props = { class: 'btn btn-icon keys-button', type: 'button', 'aria-label': 'Keyboard shortcuts', title: 'Keyboard shortcuts (?)', 'data-testid': 'keys-button', onclick: () => showKeys() };
  return h('button', props, icon('keys'));
}

function themeButton() {
  const button = h('button', { class: 'btn btn-icon', type: 'button', 'data-testid': 'theme-toggle' });
  const show = (name) => {
    fill(button, icon(THEME_ICONS[name]));
    setAttr(button, 'aria-label', `Theme: ${THEMES[name]}`);
    setAttr(button, 'title', `Theme: ${THEMES[name]}`);
  };
  button.addEventListener('click', () => {
    const order = Object.keys(THEMES);
    const next = order[(order.indexOf(theme()) + 1) % order.length];
    setTheme(next);
    show(next);
  });
  show(theme());
  return button;
}

function theme() {
  return document.documentElement.dataset.theme ?? 'system';
}

function setTheme(theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === 'system') localStorage.removeItem('toolgate.theme');
    else localStorage.setItem('toolgate.theme', theme);
  } catch {
    // Without storage the choice lasts until the page is reloaded.
  }
}

/** Only shown when signed in. A form, so that the browser itself goes to the sign-in page. */
function signOut() {
  const button = h('button', { class: 'btn', type: 'submit', 'data-testid': 'sign-out' }, icon('exit'), h('span', { class: 'wide-only' }, 'Sign out'));
  setAttr(button, 'aria-label', 'Sign out');
  const form = h('form', { method: 'post', action: address('/logout'), hidden: true }, button);
  onStatus((status) => {
    form.hidden = !status.signed_in;
    setAttr(button, 'title', status.caller ? `Signed in as ${status.caller}` : null);
  });
  return form;
}

/** If no token is needed, anybody may call tools, but everything else needs the operator's session. */
function signInBand() {
  const band = h('div', { class: 'band tone-info', role: 'status', hidden: true, 'data-testid': 'sign-in-band' }, icon('shield'),
    h('span', { class: 'band-text' }, h('strong', null, 'You are not signed in.'),
      ' To see and approve calls and to manage servers, open the sign-in link that ', h('code', null, 'toolgate serve'),
      ' printed to its terminal or log. Each link works once; ', h('code', null, 'kill -USR1'), ' with its process id prints a new one.'));
  onStatus((status) => {
    band.hidden = status.token_needed || status.signed_in !== false;
  });
  return band;
}

function signedOutBand() {
  const again = h('button', { class: 'btn btn-small', type: 'button', onclick: () => location.reload() }, 'Sign in');
  const band = h('div', { class: 'band tone-warn', role: 'alert', hidden: true, 'data-testid': 'signed-out-band' }, icon('alert'),
    h('span', { class: 'band-text' }, h('strong', null, 'Your session has ended.'), ' Sign in to continue.'), again);
  addEventListener('toolgate:signed-out', () => {
    band.hidden = false;
  });
  return band;
}
