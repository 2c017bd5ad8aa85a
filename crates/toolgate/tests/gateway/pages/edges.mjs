// What a page must stand: another theme, ten thousand calls, a small screen, and a gateway that is gone.

import assert from 'node:assert/strict';

export async function theme(bench) {
  await bench.step('the theme', async () => {
    const { page } = bench;
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    const turned = (dark) => bench.until(`it is ${dark ? 'dark' : 'light'}`, async () => ((await background()) !== light) === dark);
    const chosen = () => page.evaluate(() => document.documentElement.dataset.theme);
    await bench.id('theme-toggle').click();
    assert.equal(await chosen(), 'light');
    await bench.id('theme-toggle').click();
    assert.equal(await chosen(), 'dark');
    await turned(true);
    await page.reload();
    await turned(true);
    await bench.id('theme-toggle').click();
    assert.equal(await chosen(), undefined);
    await turned(false);
  });
}

export async function missing(bench) {
  await bench.step('an address that is none', async () => {
    await bench.page.goto(`${bench.url}/#/nonsense`);
    await bench.id('view-missing').waitFor();
    await bench.page.getByText('There is no page #/nonsense').waitFor();
    await bench.accessible('missing');
    await bench.page.getByRole('link', { name: 'Show the calls' }).click();
    await bench.id('view-calls').waitFor();
    await bench.page.goto(`${bench.url}/`);
    await bench.id('view-calls').waitFor();
  });
}

/** On a gateway with that many calls in its journal. */
export async function many(bench) {
  const { page } = bench;
  const list = bench.id('call-list');
  const rows = () => bench.id('call-row').count();
  await bench.step('ten thousand calls are there to be scrolled through', async () => {
    await page.goto(bench.url);
    await list.waitFor();
    await bench.until('the oldest call', async () => {
      await list.evaluate((element) => {
        element.scrollTop = element.scrollHeight;
      });
      return (await bench.text('call-count')) === '10,000 calls' && (await page.getByText('{"n":0}').count()) === 1;
    });
    assert.ok((await rows()) < 100, 'more than what is seen is in the page');
  });

  await bench.step('and the page does not stop for them', async () => {
    const scrolled = () => list.evaluate(async (element) => {
      const took = [];
      let last = performance.now();
      for (let frame = 0; frame < 30; frame += 1) {
        element.scrollTop = (element.scrollHeight * frame) / 30;
        await new Promise((resolve) => requestAnimationFrame(resolve));
        took.push(performance.now() - last);
        last = performance.now();
      }
      return took.sort((one, other) => one - other);
    });
    // The machine may be busy with others: a page that is quick is so once in a while all the same.
    await bench.until('half of the frames take less than 50 ms', async () => (await scrolled())[15] < 50);
    await list.evaluate((element) => {
      element.scrollTop = 0;
    });
    const { call_id: id } = await bench.call('echo', { text: 'after all of them' });
    await page.locator(`[data-id="${id}"]`).waitFor();
    await bench.id('call-search').fill('"n":4711');
    await bench.until('the needle', async () => (await rows()) === 1);
    await bench.id('call-search').fill('');
    await bench.until('all of them', async () => (await bench.text('call-count')) === '10,001 calls');
    await bench.picture('ten thousand');
  });
}

export async function phone(bench) {
  const { page } = bench;
  await bench.step('a small screen', async () => {
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 360, height: 740 });
    const { call_id: id } = await bench.call('house__echo', { text: 'w'.repeat(300) });
    const places = ['#/calls', `#/calls/${id}`, '#/servers', '#/tools', '#/tools/sleep', '#/tools/volume?tab=try', '#/chat', '#/voice', '#/api'];
    for (const place of places) {
      await bench.go(place);
      await bench.until('something to see', () => page.evaluate(() => main.textContent.length > 60 && !main.textContent.includes('Loading…')));
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      const { over, inner } = await page.evaluate(() => ({ over: document.documentElement.scrollWidth, inner: innerWidth }));
      assert.ok(over <= inner, `${place} is ${over} wide on a screen of ${inner}`);
      const wrapped = await page.evaluate(() => [...document.querySelectorAll('.tool-line')].filter((line) => {
        const [name, button] = ['.tool-name', '.tool-try'].map((part) => line.querySelector(part).getBoundingClientRect());
        return button.top >= name.bottom;
      }).length);
      assert.equal(wrapped, 0, 'a button stands below the name of its tool');
      const top = await page.evaluate(() => main.getBoundingClientRect().top);
      assert.ok(top <= (place === '#/chat' ? 60 : 120), `${place} begins ${top} below the top`);
      const name = `phone ${place.replaceAll(/[#/?=]+/g, ' ').replace(id, 'drawer').trim()}`;
      await bench.check(name);
      await bench.picture(name);
    }
    await bench.go(`#/calls/${id}`);
    await bench.id('drawer-close').click();
    await bench.id('drawer').waitFor({ state: 'hidden' });
    await page.setViewportSize(wide);
  });
}

/** Ends the gateway. */
export async function lost(bench, pid) {
  await bench.step('the gateway is gone', async () => {
    await bench.go('#/calls');
    process.kill(pid, 'SIGKILL');
    await bench.id('connection-band').waitFor();
    await bench.untilText('connection-band', /The gateway does not answer\. This page was last updated at/);
    await bench.untilText('strip-status', /^DOWN$/);
    assert.ok((await bench.id('call-row').count()) > 0, 'what was there stays to be read');
    await bench.id('retry-now').click();
    await bench.accessible('lost');
  }, [/ERR_CONNECTION_REFUSED/, /ERR_INCOMPLETE_CHUNKED_ENCODING/, /ERR_CONNECTION_RESET/, /ERR_EMPTY_RESPONSE/]);
}
