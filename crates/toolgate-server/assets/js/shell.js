// The frame: navigation, theme, keys, sign-out.

import { h, fill, setAttr } from './dom.js';
import { icon } from './icons.js';

const NAV = [['calls', 'Calls'], ['servers', 'Servers'], ['tools', 'Tools'], ['chat', 'Chat'], ['api', 'API']];
const THEMES = { system: 'the system’s', light: 'light', dark: 'dark' };

/** Draws the frame and starts what lives as long as the page. */
export function shell() {
  const links = NAV.map(([view, title]) =>
    h('a', { href: `#/${view}`, 'data-testid': `nav-${view}`, 'data-view': view }, icon(view), title));
  fill(document.getElementById('nav'), links);
  fill(document.getElementById('topbar-tools'), themeButton());
}

/** Marks the view shown in the navigation. */
export function markCurrent(view) {
  for (const link of document.querySelectorAll('#nav a')) {
    setAttr(link, 'aria-current', link.dataset.view === view ? 'page' : null);
  }
}

function themeButton() {
  const button = h('button', { class: 'btn btn-icon', type: 'button', 'data-testid': 'theme-toggle', onclick: () => next() });
  const show = (theme) => {
    fill(button, icon({ system: 'system', light: 'sun', dark: 'moon' }[theme]));
    setAttr(button, 'aria-label', `Theme: ${THEMES[theme]}. Change it.`);
    setAttr(button, 'title', `Theme: ${THEMES[theme]}`);
  };
  const next = () => {
    const order = Object.keys(THEMES);
    const theme = order[(order.indexOf(document.documentElement.dataset.theme ?? 'system') + 1) % order.length];
    setTheme(theme);
    show(theme);
  };
  show(document.documentElement.dataset.theme ?? 'system');
  return button;
}

function setTheme(theme) {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === 'system') localStorage.removeItem('toolgate.theme');
    else localStorage.setItem('toolgate.theme', theme);
  } catch {
    // Not kept, then.
  }
}
