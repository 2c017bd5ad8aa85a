// Calls that go on as tasks: how far they are, and the button that stops them.

import assert from 'node:assert/strict';

const DESKTOP = { width: 1360, height: 850 };
const PHONE = { width: 390, height: 844 };
const EXTENSION = 'io.modelcontextprotocol/tasks';

/** A request of an MCP client of 2026-07-28 that supports tasks. */
async function ask(bench, method, name, params) {
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': { extensions: { [EXTENSION]: {} } } };
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json', 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': name };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } });
  return (await bench.request('/mcp', { method: 'POST', headers, body })).body.result;
}

export async function tasks(bench) {
  const { page } = bench;
  const row = () => page.getByTestId('call-row').first();
  const rowSays = (pattern) => bench.until(`the row says ${pattern}`, async () => pattern.test(await row().textContent()));
  const open = async () => {
    await bench.go('#/calls');
    await row().click();
    await bench.id('task').waitFor();
  };
  /** Both widths, both colour schemes. */
  const look = async (name) => {
    await bench.accessible(name);
    await page.setViewportSize(PHONE);
    await bench.accessible(`${name} phone`);
    const [panel, body] = await Promise.all([bench.id('task').boundingBox(), page.evaluate(() => document.documentElement.clientWidth)]);
    assert.ok(panel.x >= 0 && panel.x + panel.width <= body, 'the panel fits');
    await page.setViewportSize(DESKTOP);
  };
  const stop = async () => {
    await bench.id('task-cancel').click();
    await bench.id('dialog-confirm').click();
    await bench.untilText('toasts', /task was stopped\./);
    await bench.untilText('drawer-outcome', /^Cancelled$/);
    await bench.until('no panel', async () => (await bench.id('task').count()) === 0);
  };

  await bench.step('a call whose server works on it as a task shows how far it is, and is stopped', async () => {
    const waiting = bench.call('task', { ms: 100_000, total: 1000, text: 'a shelf' });
    await bench.go('#/calls');
    await rowSays(/task.*Task, \d %/);
    await bench.accessible('tasks list');
    await page.setViewportSize(PHONE);
    await bench.accessible('tasks list phone');
    await page.setViewportSize(DESKTOP);
    await open();
    await bench.untilText('task', /^it is working\d %studio works on it while the caller waits\.Last news/);
    const bar = bench.id('task').getByRole('progressbar');
    const before = Number(await bar.getAttribute('aria-valuenow'));
    await bench.until('progress', async () => Number(await bar.getAttribute('aria-valuenow')) > before);
    await look('task of a server');

    await bench.id('task-cancel').click();
    await page.getByText('Stop task?').waitFor();
    assert.match(await bench.text('dialog'), /its server is told to stop/);
    await bench.accessible('task stop dialog');
    assert.equal(await bench.text('dialog-cancel'), 'Keep it running');
    await bench.id('dialog-cancel').click();
    assert.equal((await bench.get('/api/tasks')).length, 1, 'nothing was stopped');
    assert.ok(!(await bench.id('task-answer').isVisible()), 'nothing is asked');
    await stop();
    assert.ok(await page.evaluate(() => document.activeElement.closest('[data-testid=drawer]')), 'the focus stays');
    assert.equal((await waiting).error_kind, 'cancelled');
    assert.deepEqual(await bench.get('/api/tasks'), []);
    await bench.accessible('task stopped');
  });

  await bench.step('a task that an MCP client holds says so, and its client learns that it was stopped', async () => {
    const { taskId } = await ask(bench, 'tools/call', 'task', { name: 'task', arguments: { ms: 100_000, total: 20 } });
    assert.ok(taskId);
    await open();
    await bench.untilText('task', /Its client comes back for the result/);
    await look('task of a client');
    await bench.id('task-cancel').click();
    assert.match(await bench.text('dialog'), /its client learns/);
    await bench.id('dialog-cancel').click();
    await stop();
    assert.equal((await ask(bench, 'tasks/get', taskId, { taskId })).status, 'cancelled');
  });

  await bench.step('a task that asks says that it waits for an answer, and goes on with it', async () => {
    const waiting = bench.call('task', { ask: 1, text: 'done' });
    await bench.id('question-banner').waitFor();
    await open();
    await rowSays(/Asks a person/);
    await bench.untilText('task', /^Waits for an answer/);
    await look('task that asks');
    // On a phone the drawer covers the band with the question.
    await page.setViewportSize(PHONE);
    await bench.id('task-answer').click();
    await bench.id('question-dialog').waitFor();
    await bench.accessible('task question phone');
    await bench.id('try-field-who').locator('input').fill('Ada');
    await bench.id('question-accept').click();
    assert.equal((await waiting).success, true);
    await bench.untilText('drawer-outcome', /^OK$/);
    await bench.until('no panel', async () => (await bench.id('task').count()) === 0);
    await page.setViewportSize(DESKTOP);
  });
}
