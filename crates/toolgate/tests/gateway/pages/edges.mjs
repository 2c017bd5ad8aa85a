// What a page must stand: another theme, ten thousand calls, a small screen, and a gateway that is gone.

import assert from 'node:assert/strict';
import http from 'node:http';

const MANY = 10_000;

export async function theme(bench) {
  await bench.step('the theme', async () => {
    const { page } = bench;
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await bench.id('theme-toggle').click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'light');
    await bench.id('theme-toggle').click();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    assert.notEqual(await background(), light);
    await page.reload();
    assert.notEqual(await background(), light);
    await bench.id('theme-toggle').click();
    assert.equal(await background(), light);
  });
}

/** As fast as the gateway takes them, on a few connections that stay open. */
function callMany(url, count) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  const body = JSON.stringify({ text: 'one of many' });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const one = () => new Promise((resolve, reject) => {
    const request = http.request(`${url}/api/tools/echo/call`, { agent, method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', () => (response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`))));
    });
    request.on('error', reject);
    request.end(body);
  });
  let left = count;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await one();
    }
  };
  return Promise.all(Array.from({ length: 16 }, worker)).finally(() => agent.destroy());
}

export async function many(bench) {
  const { page } = bench;
  await bench.step('ten thousand calls', async () => {
    await bench.go('#/calls');
    const known = (await bench.get('/api/status')).calls_total;
    await callMany(bench.url, MANY);
    assert.ok((await bench.get('/api/status')).calls_total >= known + MANY);
    const rows = () => bench.id('call-row').count();
    await bench.until('the count', async () => Number(/^[\d\s.,]+/.exec(await bench.text('call-count'))?.[0].replace(/\D/g, '')) >= MANY / 2);
    assert.ok((await rows()) < 100, 'only what is seen is in the page');
    const list = bench.id('call-list');
    // Frames while it is scrolled from end to end: the page must not stop.
    const longest = await list.evaluate(async (element) => {
      let worst = 0;
      let last = performance.now();
      for (let frame = 0; frame < 60; frame += 1) {
        element.scrollTop = (element.scrollHeight * (frame % 30)) / 30;
        await new Promise((resolve) => requestAnimationFrame(resolve));
        worst = Math.max(worst, performance.now() - last);
        last = performance.now();
      }
      return worst;
    });
    assert.ok(longest < 1000, `a frame took ${longest} ms`);
    await list.evaluate((element) => {
      element.scrollTop = 0;
    });
    const { call_id: id } = await bench.call('house__echo', { text: 'after the flood' });
    await page.locator(`[data-id="${id}"]`).waitFor();
    await bench.id('call-search').fill('after the flood');
    await bench.until('the needle', async () => (await rows()) === 1);
    await bench.id('call-search').fill('');
    await bench.picture('ten thousand');
  });
}

export async function phone(bench) {
  const { page } = bench;
  await bench.step('a small screen', async () => {
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 360, height: 740 });
    const { call_id: id } = await bench.call('house__echo', { text: 'w'.repeat(300) });
    const places = ['#/calls', `#/calls/${id}`, '#/servers', '#/tools', '#/tools/sleep', '#/tools/volume?tab=try', '#/chat', '#/api'];
    for (const place of places) {
      await bench.go(place);
      await page.waitForLoadState('networkidle').catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 300));
      const { over, inner } = await page.evaluate(() => ({ over: document.documentElement.scrollWidth, inner: innerWidth }));
      assert.ok(over <= inner, `${place} is ${over} wide on a screen of ${inner}`);
      await bench.picture(`phone ${place.replaceAll(/[#/?=]+/g, ' ').replace(id, 'drawer').trim()}`);
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
    await bench.untilText('connection-band', /The gateway does not answer\. What you see is from/);
    await bench.untilText('strip-status', /^DOWN$/);
    assert.ok((await bench.id('call-row').count()) > 5, 'what was there stays to be read');
    await bench.id('retry-now').click();
    await bench.accessible('lost');
  }, [/ERR_CONNECTION_REFUSED/, /ERR_INCOMPLETE_CHUNKED_ENCODING/, /ERR_CONNECTION_RESET/, /ERR_EMPTY_RESPONSE/]);
}
