// The cards of the servers.

import assert from 'node:assert/strict';

export async function servers(bench) {
  await bench.step('a card for each server, with what it wrote and where it failed', async () => {
    await bench.page.getByTestId('nav-servers').click();
    const card = (name) => bench.page.locator(`[data-testid=server-card][data-server=${name}]`);
    const part = (name, id) => card(name).getByTestId(id);
    await bench.until('the cards', async () => (await bench.id('server-card').count()) === 3);
    assert.equal(await part('house', 'server-state').textContent(), 'Connected');
    assert.equal(await part('gone', 'server-state').textContent(), 'Failed');
    assert.match(await card('gone').textContent(), /was not found on the PATH: install it/);
    assert.equal(await bench.id('server-card').first().getAttribute('data-server'), 'gone');
    const { pid } = (await bench.get('/api/servers')).find(({ name }) => name === 'house');
    assert.equal(await part('house', 'server-transport').textContent(), `stdio, pid ${pid}`);
    assert.equal(await part('house', 'server-era').textContent(), 'legacy');
    assert.equal(await part('house', 'server-tools').textContent(), '26');
    assert.equal(await part('house', 'server-polluted').textContent(), '1');
    assert.equal(await part('house', 'server-restarts').textContent(), '0');
    await part('house', 'server-polluted_lines').locator('summary').click();
    assert.equal(await part('house', 'server-polluted_lines').locator('pre').textContent(), 'Starting up');
    await part('house', 'server-stderr').locator('summary').click();
    assert.equal(await part('house', 'server-stderr').locator('pre').textContent(), 'listening on <b>stdio</b>');
    await bench.accessible('servers');

    await part('house', 'reconnect').click();
    await bench.untilText('toasts', /house is being connected again/);
    await bench.until('another process', async () => {
      const now = /pid (\d+)/.exec(await part('house', 'server-transport').textContent());
      return now && Number(now[1]) !== pid && (await part('house', 'server-state').textContent()) === 'Connected';
    });
    assert.equal((await bench.call('house__echo', { text: 'back' })).result, 'back');
  });
}
