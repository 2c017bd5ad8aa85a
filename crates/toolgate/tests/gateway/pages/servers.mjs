// The cards of the servers.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';

export async function servers(bench) {
  await bench.step('a card for each server, with what it wrote and where it failed', async () => {
    await bench.page.getByTestId('nav-servers').click();
    const card = (name) => bench.page.locator(`[data-testid=server-card][data-server=${name}]`);
    const part = (name, id) => card(name).getByTestId(id);
    await bench.until('the cards', async () => (await bench.id('server-card').count()) === 3);
    assert.equal(await part('house', 'server-state').textContent(), 'Connected');
    assert.equal(await part('gone', 'server-state').textContent(), 'Failed');
    assert.ok(!(await part('house', 'server-health').isVisible()), 'a server without a health tool says nothing of it');
    assert.match(await card('gone').textContent(), /was not found on the PATH: install it/);
    assert.equal(await bench.id('server-card').first().getAttribute('data-server'), 'gone');
    const { pid } = (await bench.get('/api/servers')).find(({ name }) => name === 'house');
    assert.equal(await part('house', 'server-transport').textContent(), `stdio, pid ${pid}`);
    assert.ok((await part('house', 'server-transport').boundingBox()).height < 30, 'on one line');
    assert.equal(await part('house', 'server-protocol').textContent(), 'MCP 2025-11-25');
    const offered = (await bench.get('/api/tools')).filter(({ server }) => server === 'house').length;
    assert.ok(offered > 20, `many tools: ${offered}`);
    assert.equal(await part('house', 'server-tools').textContent(), String(offered));
    assert.equal(await part('house', 'server-polluted').textContent(), '1 line');
    assert.equal(await part('names', 'server-polluted').textContent(), 'none');
    assert.ok(await part('names', 'server-offered').getByRole('link', { name: 'markup' }).isVisible(), 'a few tools are listed at once');
    assert.ok(!(await part('house', 'server-offered').getByRole('link', { name: 'echo' }).first().isVisible()), 'many are folded away');
    await part('house', 'server-offered').locator('summary').click();
    assert.equal(await part('house', 'server-offered').getByRole('link').count(), offered);
    await part('house', 'server-offered').locator('summary').click();
    assert.equal(await part('house', 'server-restarts').textContent(), '0');
    await part('house', 'server-polluted_lines').locator('summary').click();
    assert.equal(await part('house', 'server-polluted_lines').locator('pre').textContent(), 'Starting up');
    await part('house', 'server-stderr').locator('summary').click();
    assert.equal(await part('house', 'server-stderr').locator('pre').textContent(), 'listening on <b>stdio</b>');
    const [log, page] = await Promise.all([part('house', 'server-stderr').locator('pre').boundingBox(), bench.page.locator('.page').boundingBox()]);
    assert.ok(log.width > page.width * 0.8, `stderr has ${log.width} of ${page.width}`);
    await bench.accessible('servers');

    await part('house', 'reconnect').click();
    await bench.untilText('toasts', /house was reconnected/);
    await bench.until('another process', async () => {
      const now = /pid (\d+)/.exec(await part('house', 'server-transport').textContent());
      return now && Number(now[1]) !== pid && (await part('house', 'server-state').textContent()) === 'Connected';
    });
    assert.equal((await bench.call('house__echo', { text: 'back' })).result, 'back');
  });
}

/** The gateway's only server, `house`, is connected and can't reach its broker. `file` is its configuration. */
export async function degraded(bench, file) {
  await bench.step('the card of a server that cannot do its work says why', async () => {
    await bench.go('#/servers');
    await bench.untilText('server-state', /^Degraded$/);
    await bench.untilText('server-health', /^Connected, but it can't do its work: .*MQTT broker.* \(check_zwave_health\)$/);
    await bench.untilText('strip-status', /^DEGRADED$/);
    await bench.untilText('strip-reason', /^house: connected, but can't do its work: /);
    await bench.accessible('degraded server');
  });

  await bench.step('an edit that needs a restart is told', async () => {
    assert.doesNotMatch(await bench.text('strip-reason'), /Restart/);
    const config = JSON.parse(await readFile(file, 'utf8'));
    await writeFile(file, JSON.stringify({ ...config, serve: { rate: 1000 } }));
    await bench.untilText('strip-reason', / · Restart the gateway to apply changed settings: serve\.rate$/);
  });
}

/** The gateway's only server, `house`, lists the tools of `file`; the one that is there is agreed to. */
export async function changed(bench, file) {
  await bench.step('a tool that changed is shown with the difference, and agreed to on the card', async () => {
    await bench.go('#/servers');
    await bench.untilText('server-state', /^Connected$/);
    assert.ok(!(await bench.id('server-changes').isVisible()));
    const tool = { name: 'look', description: 'Looks\u202e, and <b>wipes</b>', inputSchema: { type: 'object' }, annotations: { destructiveHint: true } };
    await writeFile(file, JSON.stringify([tool]));
    await bench.id('reconnect').click();
    await bench.untilText('server-changes', /^1 tool withheld until you agree/);
    const text = await bench.text('server-changes');
    assert.match(text, /look changed, withheld/);
    assert.match(text, /annotations: \(none\) → \{"destructiveHint":true\}/);
    assert.match(text, /description: Looks → Looks\\u\{202e\}, and <b>wipes<\/b>/);
    await bench.untilText('strip-reason', /^house: withheld tools: 1; /);
    await bench.accessible('changed tools');
    assert.equal((await bench.call('look', {})).error_kind, 'denied');
    await bench.id('server-trust').click();
    await bench.untilText('toasts', /The current tools of house were accepted/);
    await bench.until('nothing to agree to', async () => !(await bench.id('server-changes').isVisible()));
    assert.equal((await bench.call('look', {})).success, true);
  });
}
