// The conversation with the tools, and the page of the API.

import assert from 'node:assert/strict';

export async function chat(bench) {
  const { page } = bench;
  await bench.step('a conversation shows the calls inside of it', async () => {
    await page.getByTestId('nav-chat').click();
    await bench.id('chat-input').fill('what is 2^10');
    await page.keyboard.press('Enter');
    const call = bench.page.locator('[data-testid=chat-call][data-tool=math_eval]');
    await call.waitFor();
    await bench.until('the answer', async () => /1024/.test(await page.locator('[data-role=assistant]').last().textContent()));
    await bench.until('the end of the call', async () => (await call.getAttribute('data-state')) === 'success');
    await call.locator('summary').click();
    await bench.until('its arguments and its result', async () => /Arguments.*"2 \^ 10".*Result.*1024/s.test(await call.textContent()));
    assert.match(await bench.text('chat-model'), /intents/);
    await bench.id('chat-input').fill('What time is it?');
    await bench.id('chat-send').click();
    await bench.until('the second answer', async () => (await page.locator('.turn[data-state=done]').count()) === 2);
    await bench.accessible('chat');
    await call.getByRole('link', { name: 'Open this call' }).click();
    await bench.until('the call', async () => /chat/.test(await bench.text('drawer')));
    await bench.go('#/chat');
    await bench.until('the conversation is still there', async () => (await page.locator('.turn').count()) === 2);
    await bench.id('chat-new').click();
    await page.getByText('Ask, and watch the tools work').waitFor();
    await bench.id('chat-example').first().click();
    await bench.until('an answer', async () => (await page.locator('.turn[data-state=done]').count()) === 1);
  });
}

export async function api(bench) {
  const { page } = bench;
  await bench.step('the API describes itself, and can be tried', async () => {
    await page.getByTestId('nav-api').click();
    await bench.until('its routes', async () => (await bench.id('api-route').count()) > 15);
    await bench.id('api-search').fill('status');
    await bench.until('one route', async () => (await page.locator('[data-testid=api-route]:visible').count()) <= 3);
    const route = bench.id('api-route').filter({ has: page.locator('.api-path', { hasText: /^\/api\/status$/ }) });
    await route.locator('summary').first().click();
    await route.getByTestId('api-send').click();
    await route.getByTestId('api-response').waitFor();
    assert.equal(await route.getByTestId('api-response').getAttribute('data-status'), '200');
    assert.match(await route.getByTestId('api-response').textContent(), /"degraded"/);
    await bench.accessible('api');
    await bench.id('api-search').fill('tools call');
    const call = bench.id('api-route').filter({ has: page.locator('.api-path', { hasText: /^\/api\/tools\/\{name\}\/call$/ }) });
    await call.locator('summary').first().click();
    await call.getByTestId('api-param-name').fill('echo');
    await call.getByTestId('api-body').fill('{ "text": "sent by hand" }');
    await call.getByTestId('api-send').click();
    await bench.until('its answer', async () => /"success": true/.test(await call.getByTestId('api-response').textContent()));
    await call.getByTestId('api-curl').click();
    await bench.until('the command', async () => /^curl -sS .*\/echo\/call/.test(await bench.clipboard()));
  });
}
