// Modal dialogs. The native element keeps the focus inside and returns it afterwards.

import { h, uid } from './dom.js';

/**
 * Opens a modal dialog and resolves with the `value` of the chosen action, or with null after Esc or if another view is
 * opened. An action is `{ text, value, primary, danger, testid, check }`; `check()` may return false, or a promise of
 * it, to keep the dialog open.
 */
export function openDialog({ title, body, actions, testid }) {
  return new Promise((resolve) => {
    const id = uid('dialog');
    const dialog = h('dialog', { class: 'dialog', 'aria-labelledby': id, 'data-testid': testid ?? 'dialog' });
    const form = h('form', { method: 'dialog' }, h('h2', { id }, title), body,
      h('div', { class: 'dialog-actions' }, actions.map((action) => actionButton(action, dialog, resolve))));
    form.addEventListener('submit', (event) => event.preventDefault());
    dialog.append(form);
    const leave = () => dialog.close();
    addEventListener('hashchange', leave);
    dialog.addEventListener('close', () => {
      removeEventListener('hashchange', leave);
      dialog.remove();
      resolve(null);
    });
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector('[autofocus]') ?? form.querySelector('.dialog-actions button:last-child'))?.focus();
  });
}

function actionButton(action, dialog, resolve) {
  const kind = action.primary ? 'btn btn-primary' : action.danger ? 'btn btn-danger' : 'btn';
  const button = h('button', { class: kind, type: action.primary ? 'submit' : 'button', 'data-testid': action.testid }, action.text);
  button.addEventListener('click', async () => {
    button.disabled = true;
    const stay = action.check && (await action.check()) === false;
    button.disabled = false;
    if (stay) return;
    resolve(action.value);
    dialog.close();
  });
  return button;
}

/** A yes-or-no question. */
export function confirmDialog({ title, text, yes, no = 'Cancel', danger = false, body }) {
  return openDialog({
    title,
    body: [text && h('p', { class: 'muted' }, text), body],
    actions: [
      { text: no, value: false, testid: 'dialog-cancel' },
      { text: yes, value: true, primary: !danger, danger, testid: 'dialog-confirm' },
    ],
  });
}
