// Tabs. Arrow keys move between them, and a panel is drawn when it is first shown.

import { h, uid } from './dom.js';

/** `entries` are `{ id, text, draw() }`; each tab's test id is `${prefix}-${id}`. */
export function tabs(label, entries, prefix = 'tab') {
  const panels = entries.map(() => h('div', { class: 'tab-panel', role: 'tabpanel', id: uid('panel'), hidden: true }));
  const buttons = entries.map((entry, at) => h('button', {
    class: 'tab', role: 'tab', type: 'button', id: uid('tab'), 'aria-controls': panels[at].id, 'data-testid': `${prefix}-${entry.id}`, onclick: () => show(at),
  }, entry.text));
  const list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': label }, buttons);
  const show = (chosen) => {
    entries.forEach((entry, at) => {
      buttons[at].setAttribute('aria-selected', String(at === chosen));
      buttons[at].tabIndex = at === chosen ? 0 : -1;
      panels[at].hidden = at !== chosen;
      if (at === chosen && !panels[at].hasChildNodes()) panels[at].append(entry.draw());
    });
  };
  list.addEventListener('keydown', (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const at = buttons.indexOf(document.activeElement);
    const next = (at + by + buttons.length) % buttons.length;
    show(next);
    buttons[next].focus();
    event.preventDefault();
  });
  panels.forEach((panel, at) => panel.setAttribute('aria-labelledby', buttons[at].id));
  show(0);
  return h('div', { class: 'tabbed' }, list, panels);
}
