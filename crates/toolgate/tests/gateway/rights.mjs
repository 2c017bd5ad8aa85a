// `node rights.mjs NODE_MODULES URL PICTURES TOKEN OTHER`: what a token with a list of tools is shown, and who asked.
// OTHER is the token of `kitchen`, which may use `echo` and the tools of the server `house`.

import assert from 'node:assert/strict';
import { openBench } from './pages/bench.mjs';

const [modules, url, pictures, token, kitchen] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures });
const { page } = bench;

const enter = async (as) => {
  await page.goto(url);
  await page.getByLabel('Token').fill(as);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await bench.id('view-calls').waitFor();
};
const call = (as) => bench.request('/api/tools/echo/call', {
  method: 'POST', headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json' }, body: '{"text":"hello"}',
});
const askers = () => page.locator('[data-testid=call-row] .call-asker').allTextContents();

try {
  await bench.step('a token with a list is not shown what it may not do', async () => {
    await enter(kitchen);
    await call(kitchen);
    await bench.id('nav-voice').waitFor({ state: 'hidden' });
    await bench.go('#/servers');
    await bench.id('server-card').waitFor();
    assert.equal(await bench.page.getByTestId('reconnect').isVisible(), false);
    await bench.accessible('kitchen servers');
    await bench.go('#/calls');
    await bench.id('call-row').first().click();
    await bench.id('copy-curl').waitFor();
    assert.equal(await bench.id('replay').count(), 0);
    assert.equal(await bench.id('save-mock').count(), 0);
    assert.equal(await bench.id('sign-out').getAttribute('title'), 'Signed in as kitchen');
    await page.keyboard.press('Escape');
    await page.keyboard.press('5');
    assert.ok(await bench.id('view-calls').isVisible(), 'no key leads there either');
    await bench.id('sign-out').click();
  }, [/status of 401/]);

  await bench.step('whoever may do everything is, and sees who asked', async () => {
    await enter(token);
    await call(token);
    await bench.id('nav-voice').waitFor();
    await bench.until('both callers', async () => (await askers()).sort().join() === 'kitchenHTTP,serve.tokenHTTP');
    await bench.id('call-filter-caller').selectOption('kitchen');
    await bench.until('one of them', async () => (await askers()).join() === 'kitchenHTTP');
    assert.match(page.url(), /caller=kitchen/);
    await bench.accessible('asked by');
    await bench.id('call-row').first().click();
    await bench.until('the drawer says it', async () => /Asked bykitchen through the HTTP API/.test(await bench.text('drawer')));
    assert.equal(await bench.id('save-mock').count(), 1);
    await bench.go('#/servers');
    await bench.id('reconnect').waitFor();
  }, [/status of 401/]);
} finally {
  await bench.close();
}
