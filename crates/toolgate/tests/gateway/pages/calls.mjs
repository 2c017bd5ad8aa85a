// The live list: calls come by themselves, can be held, searched, filtered, and walked through by keys.

import assert from 'node:assert/strict';

const rows = (bench) => bench.page.getByTestId('call-row');
const row = (bench, id) => bench.page.locator(`[data-id="${id}"]`);
const names = (bench) => bench.page.locator('[data-testid=call-row] .call-name').allTextContents();

export async function calls(bench) {
  const { page } = bench;
  await bench.step('a call appears while it runs, and ends in its place', async () => {
    await page.getByTestId('nav-calls').click();
    const running = bench.call('sleep', { milliseconds: 2200 });
    const first = rows(bench).first();
    await bench.until('a running row', async () => (await first.getAttribute('class')).includes('is-running'));
    const id = await first.getAttribute('data-id');
    assert.match(await first.textContent(), /http.*sleep.*house.*Running/i);
    assert.equal((await running).call_id, id);
    await bench.until('its end', async () => /OK/.test(await row(bench, id).locator('.call-outcome').textContent()));
    assert.match(await row(bench, id).locator('.call-ms').textContent(), /^\d+(\.\d+)? s$/);
    assert.match(await row(bench, id).locator('.bar-fill').getAttribute('class'), /tone-warn/);
    const failed = (await bench.call('fail', { text: '<img src=x onerror=alert(1)>' })).call_id;
    await bench.until('its error', async () => /<img src=x onerror=alert\(1\)>.*Tool error/.test(await row(bench, failed).textContent()));
  });

  await bench.step('the list is held and goes on', async () => {
    await page.keyboard.press('p');
    await bench.untilText('call-pause', /^Resume$/);
    const { call_id: id } = await bench.call('echo', { text: 'while it is held' });
    await bench.untilText('call-pause', /^Resume \(1 new\)$/);
    assert.equal(await row(bench, id).count(), 0);
    await bench.id('call-pause').click();
    await row(bench, id).waitFor();
    assert.equal(await bench.text('call-pause'), 'Pause');
  });

  await bench.step('searching and filtering', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('number 7');
    await bench.until('one row', async () => (await rows(bench).count()) === 1);
    assert.match(await rows(bench).first().textContent(), /number 7/);
    assert.match(page.url(), /search=number/);
    await page.keyboard.press('Escape');
    await bench.until('all rows', async () => (await rows(bench).count()) > 10);
    await bench.id('call-filter-outcome').selectOption('failed');
    await bench.until('the failed ones', async () => (await names(bench)).every((name) => name === 'fail') && (await rows(bench).count()) === 2);
    await bench.id('call-filter-outcome').selectOption('');
    await bench.id('call-filter-server').selectOption('house');
    await bench.until('those of the server', async () => (await names(bench)).every((name) => ['fail', 'sleep', 'house__echo'].includes(name)));
    await bench.id('call-filter-server').selectOption('');
    await bench.id('call-filter-origin').selectOption('voice');
    await page.getByText('No call matches').waitFor();
    await bench.id('clear-filter').click();
    await bench.until('all rows', async () => (await rows(bench).count()) > 10);
  });

  await bench.step('the keys', async () => {
    await bench.id('call-list').focus();
    const active = () => page.locator('[data-testid=call-row][aria-selected=true]').getAttribute('aria-rowindex');
    await page.keyboard.press('j');
    await bench.until('the first row', async () => (await active()) === '2');
    await page.keyboard.press('j');
    await bench.until('the second row', async () => (await active()) === '3');
    await page.keyboard.press('k');
    await bench.until('the first row again', async () => (await active()) === '2');
    await page.keyboard.press('Enter');
    await bench.id('drawer').waitFor();
    await page.keyboard.press('j');
    await bench.until('the drawer follows', async () => page.url().endsWith(await page.locator('[aria-selected=true][aria-rowindex="3"]').getAttribute('data-id')));
    await page.keyboard.press('Escape');
    await bench.id('drawer').waitFor({ state: 'hidden' });
    await page.keyboard.press('?');
    await page.getByTestId('keys').waitFor();
    assert.match(await bench.text('keys'), /Next call.*Previous call.*Search.*Pause/);
    await bench.accessible('keys');
    await page.keyboard.press('Escape');
    await page.getByTestId('keys').waitFor({ state: 'detached' });
    await page.keyboard.press('2');
    await bench.id('view-servers').waitFor();
    await page.keyboard.press('1');
    await bench.id('view-calls').waitFor();
  });
}
