// Keyboard shortcuts that work anywhere on the page, and the dialog that lists them.

import { h } from './dom.js';
import { openDialog } from './dialog.js';

const groups = new Set();

/**
 * Registers shortcuts: `const off = registerKeys('Calls', [{ keys: ['j', 'ArrowDown'], label: 'Next call', run(event) {…} }])`.
 * `run` may return false to leave the key to the browser. Shortcuts are off while a field has the focus, unless they set
 * `inFields`, and while a dialog is open. Returns the function that unregisters them.
 */
export function registerKeys(title, entries) {
  const group = { title, entries };
  groups.add(group);
  return () => groups.delete(group);
}

addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (document.querySelector('dialog[open]')) return;
  const typing = isField(event.target);
  for (const entry of [...groups].reverse().flatMap((group) => group.entries)) {
    if (!entry.keys.includes(event.key) || (typing && !entry.inFields)) continue;
    if (entry.run(event) === false) continue;
    event.preventDefault();
    return;
  }
});

function isField(element) {
  return element instanceof HTMLElement
    && (element.isContentEditable || element.matches('textarea, select, input:not([type=checkbox], [type=radio], [type=button])'));
}

const NAMES = { ArrowDown: '↓', ArrowUp: '↑', Escape: 'Esc', ' ': 'Space', PageDown: 'Page down', PageUp: 'Page up' };

/** Opens a dialog that lists the shortcuts. */
export function showKeys() {
  const rows = [...groups].flatMap((group) => group.entries).filter((entry) => entry.label).map((entry) => [
    h('dt', null, entry.keys.map((key) => h('kbd', null, NAMES[key] ?? key))),
    h('dd', null, entry.label),
  ]);
  return openDialog({ title: 'Keyboard shortcuts', body: h('dl', { class: 'keys', 'data-testid': 'keys' }, rows), actions: [{ text: 'Close', value: null }] });
}

registerKeys('Page', [{ keys: ['?'], label: 'Show these shortcuts', run: () => void showKeys() }]);
