// The actions for a recorded call: copy it as a command, run it again, save its result as a mock.

import { h } from '../dom.js';
import { address, post } from '../api.js';
import { curl, toolgateCall } from '../commands.js';
import { contentCommand, contentRequest } from '../content/recorded.js';
import { pretty } from '../format.js';
import { icon } from '../icons.js';
import { confirmDialog, openDialog } from '../dialog.js';
import { may } from '../rights.js';
import { copyText, toast, toastError } from '../toast.js';
import { tokenNeeded } from '../token.js';

export function asCurl(call) {
  const request = contentRequest(call) ?? { path: `/api/tools/${encodeURIComponent(call.tool)}/call`, body: askedOf(call) };
  return curl({ method: 'POST', url: address(request.path), body: JSON.stringify(request.body), token: tokenNeeded() });
}

function askedOf(call) {
  return call.asked ?? call.arguments ?? {};
}

/** The row of buttons. `onReplayed(id)` receives the id of the new call. */
export function actions(call, onReplayed) {
  const button = (testid, name, text, run, props) => h('button', { class: 'btn btn-small', type: 'button', 'data-testid': testid, onclick: run, ...props }, icon(name), text);
  const gone = call.tool_definition ? {} : { disabled: true, title: 'This tool no longer exists' };
  const failed = call.success === true ? {} : { disabled: true, title: 'Only a successful result can be saved' };
  const entry = contentCommand(call);
  const name = entry ? 'toolgate command' : 'toolgate call';
  return h('div', { class: 'row drawer-actions' },
    may('replay_calls') && button('replay', 'replay', 'Replay', (event) => replay(call, event.currentTarget, onReplayed), gone),
    may('add_tools') && !entry && button('save-mock', 'save', 'Save as mock', () => saveMock(call), failed),
    button('copy-curl', 'copy', 'curl', () => copyText(asCurl(call), 'curl command copied'), { 'aria-label': 'Copy as curl', title: 'Copy as curl' }),
    button('copy-cli', 'copy', name, () => copyText(entry ?? toolgateCall(call.tool, askedOf(call)), 'toolgate command copied'), { 'aria-label': `Copy as ${name}`, title: `Copy as ${name}` }));
}

async function replay(call, button, onReplayed) {
  const readOnly = call.tool_definition?.annotations?.read_only === true;
  const yes = readOnly || (await confirmDialog({
    title: `Run ${call.tool} again?`,
    text: 'The tool is not marked as read-only, so it may change something again. It is called with the original arguments:',
    body: h('pre', { class: 'code', tabindex: '0' }, pretty(askedOf(call))),
    yes: 'Run it again',
  }));
  if (!yes) return;
  button.disabled = true;
  try {
    const envelope = await post(`/api/calls/${encodeURIComponent(call.id)}/replay`, readOnly ? {} : { confirm: true });
    toast(envelope?.success ? `${call.tool} ran again.` : `${call.tool} failed: ${envelope?.error ?? 'no reason given'}`, envelope?.success ? 'ok' : 'warn');
    if (envelope?.call_id) onReplayed(envelope.call_id);
  } catch (error) {
    toastError(error);
  } finally {
    button.disabled = false;
  }
}

async function saveMock(call) {
  const name = h('input', { class: 'input mono', id: 'mock-name', autofocus: true, value: `${call.tool}_mock`, spellcheck: 'false', autocomplete: 'off', 'aria-describedby': 'mock-error', 'data-testid': 'mock-name' });
  const problem = h('p', { class: 'field-error', id: 'mock-error', role: 'alert' });
  let saved = null;
  const check = async () => {
    try {
      saved = await post(`/api/calls/${encodeURIComponent(call.id)}/mock`, { name: name.value.trim() });
      return true;
    } catch (error) {
      problem.textContent = error.detail ?? String(error);
      name.setAttribute('aria-invalid', 'true');
      name.focus();
      return false;
    }
  };
  await openDialog({
    title: 'Save as mock',
    testid: 'mock-dialog',
    body: [h('p', { class: 'muted' }, 'A tool that always returns the result of this call.'),
      h('div', { class: 'field dialog-field' }, h('label', { class: 'field-label', for: 'mock-name' }, 'Name'), name, problem)],
    actions: [{ text: 'Cancel', value: null }, { text: 'Save', value: true, primary: true, check, testid: 'mock-save' }],
  });
  if (saved) await showMock(saved);
}

function showMock(saved) {
  const definition = pretty(saved.definition);
  return openDialog({
    title: `${saved.name} was saved`,
    testid: 'mock-saved',
    body: [saved.note && h('p', { class: 'field-error', 'data-testid': 'mock-note' }, `Note: ${saved.note}.`),
      h('p', { class: 'muted' }, `${saved.kept[0].toUpperCase()}${saved.kept.slice(1)}. Its entry for "tools" in the configuration:`),
      h('pre', { class: 'code', tabindex: '0' }, definition)],
    actions: [
      { text: 'Copy', value: null, testid: 'mock-copy', check: () => copyText(definition, 'Definition copied').then(() => false) },
      { text: 'Done', value: null, primary: true },
    ],
  });
}
