// `node signin.mjs NODE_MODULES URL PICTURES TOKEN OTHER`: the way in and out of a gateway that asks for a token and has no servers.
// OTHER is the token of `kitchen`, which has to ask for `volume`.

import assert from 'node:assert/strict';
import { openBench } from './pages/bench.mjs';

const [modules, url, pictures, token, kitchen] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures });
const { page } = bench;
const field = page.getByLabel('Token');
const signIn = page.getByRole('button', { name: 'Sign in' });
const REFUSED = [/status of 401/];

try {
  await bench.step('nobody is let in without a token', async () => {
    const response = await page.goto(url);
    assert.equal(response.status(), 401);
    await field.waitFor();
    assert.ok(await page.locator('main svg').isVisible(), 'the logo');
    await bench.accessible('sign in');
    assert.equal((await bench.request('/api/tools')).status, 401);
  }, REFUSED);

  await bench.step('nor with a wrong one', async () => {
    await field.fill('wrong-horse-battery-staple');
    await signIn.click();
    await page.getByText('That is not a token of this gateway.').waitFor();
    await bench.accessible('wrong token');
    assert.equal((await bench.context.cookies()).length, 0);
  }, REFUSED);

  await bench.step('the right one opens the dashboard', async () => {
    await field.fill(token);
    await signIn.click();
    await page.getByText('No calls yet').waitFor();
    const [cookie] = await bench.context.cookies();
    assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite, cookie.path], [`toolgate_session_${new URL(page.url()).port}`, true, 'Strict', '/']);
    assert.ok(!cookie.value.includes(token));
    await bench.untilText('strip-status', /^OK$/);
    await bench.go('#/tools/math_eval?tab=try');
    await bench.id('try-field-expression').locator('input, textarea').first().fill('6*7');
    await bench.id('try-run').click();
    await bench.untilText('try-result', /42/);
    await bench.go('#/calls');
    await bench.id('call-row').first().waitFor();
    await bench.id('call-row').first().click();
    await bench.id('copy-curl').click();
    await bench.until('a command that names no token', async () => {
      const copied = await bench.clipboard();
      return copied.includes('$TOOLGATE_TOKEN') && !copied.includes(token);
    });
  });

  await bench.step('who asks for approval is named, and how', async () => {
    const given = { action: 'set', level: 100 };
    const ask = (path, headers, body) => bench.request(path, {
      method: 'POST', headers: { authorization: `Bearer ${kitchen}`, 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
    });
    const mcp = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'volume' };
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'volume', arguments: given, _meta: meta } };
    for (const [way, asking] of [
      ['the HTTP API', () => ask('/api/tools/volume/call', {}, given)],
      ['an MCP client', () => ask('/mcp', mcp, message)],
    ]) {
      const waiting = asking();
      await bench.id('approval-banner').waitFor();
      assert.match(await bench.text('approval-banner'), new RegExp(`^volume needs your approval, asked by kitchen through ${way}`));
      await page.getByRole('alert').filter({ hasText: `asked by kitchen through ${way}` }).waitFor({ state: 'attached' });
      await bench.accessible(`asked by ${way}`);
      await bench.until('the refusal', async () => {
        await bench.id('refuse').click({ timeout: 1000 }).catch(() => {});
        return (await bench.id('approval-banner').count()) === 0;
      });
      assert.match(JSON.stringify(await waiting), /volume/);
    }
  });

  await bench.step('a gateway without servers says how to add one', async () => {
    await bench.go('#/servers');
    await page.getByText('No MCP servers yet').waitFor();
    assert.match(await bench.text('empty'), /toolgate add/);
    await bench.accessible('no servers');
  });

  await bench.step('and out again', async () => {
    await bench.id('sign-out').click();
    await field.waitFor();
    await page.goto(url);
    await field.waitFor();
    assert.equal((await bench.context.request.get(`${url}/api/tools`)).status(), 401);
  }, REFUSED);

  await bench.step('a session that ends elsewhere is said', async () => {
    await field.fill(token);
    await signIn.click();
    await bench.id('view-calls').waitFor();
    await bench.context.clearCookies();
    await bench.go('#/servers');
    await bench.id('signed-out-band').waitFor();
  }, [...REFUSED, /Failed to fetch dynamically imported module/]);
} finally {
  await bench.close();
}
