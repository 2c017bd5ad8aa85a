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
    assert.match(await bench.text('chat-model'), /^OfflineUnderstands simple sentences/);
    assert.ok(!(await page.locator('.answer-foot').first().isVisible()), 'nothing to tell of a model that is not there');
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

const ANSWER = `# Rooms

**Two** are *cold*, says \`sensor\`:

| Room | °C |
|---|---:|
| Bath | 17 |

1. Heat
   - the bath
2. See [the manual](https://example.org/m)

\`\`\`sh
ls -l
\`\`\`

<img src=x onerror="document.title='owned'"><script>document.title='owned'</script> [bad](javascript:alert(1)) ![far](https://example.org/p.png)`;

/** As the gateway sends it, in small pieces; there is no model here that writes Markdown. */
function streamed(answer) {
  const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const pieces = answer.match(/[^]{1,7}/g).map((text) => event('text', { text }));
  return [event('conversation', { id: 'c', provider: 'openai', model: 'm', why: 'it is set' }), ...pieces,
    event('done', { answer, end: 'length', rounds: 2, input_tokens: 9, output_tokens: 99, duration_ms: 1200 })].join('');
}

export async function markdown(bench) {
  const { page } = bench;
  await bench.step('Markdown is drawn, and nothing in it is markup', async () => {
    await bench.go('#/chat');
    await bench.id('chat-new').click();
    await page.route('**/api/chat', (route) => route.fulfill({ contentType: 'text/event-stream', body: streamed(ANSWER) }));
    await bench.id('chat-input').fill('Tell me about the rooms');
    await page.keyboard.press('Enter');
    await bench.until('the answer', async () => (await page.locator('.turn[data-state=done]').count()) === 1);
    const answer = page.locator('.answer-text');
    await answer.getByRole('heading', { name: 'Rooms', level: 2 }).waitFor();
    assert.deepEqual(await answer.locator('strong, em, p code').allTextContents(), ['Two', 'cold', 'sensor']);
    assert.deepEqual(await answer.locator('th, td').allTextContents(), ['Room', '°C', 'Bath', '17']);
    assert.deepEqual(await answer.locator('ol > li > ul > li').allTextContents(), ['the bath']);
    const links = await answer.getByRole('link').evaluateAll((all) => all.map((link) => [link.textContent, link.href, link.rel, link.target]));
    assert.deepEqual(links, [
      ['the manual', 'https://example.org/m', 'noopener noreferrer', '_blank'],
      ['far', 'https://example.org/p.png', 'noopener noreferrer', '_blank'],
    ]);
    assert.match(await answer.locator('p').last().textContent(), /^<img src=x onerror="document\.title='owned'"><script>/);
    assert.equal(await answer.locator('img, script, iframe').count(), 0);
    assert.match(await page.title(), /Toolgate/);
    await answer.getByRole('button', { name: 'Copy' }).click();
    await bench.until('the code', async () => (await bench.clipboard()) === 'ls -l');
    const foot = page.locator('.answer-foot');
    assert.match(await foot.textContent(), /^Cut off: the answer was too long/);
    await foot.locator('summary').click();
    await page.getByText('Took 1.2 s · the model was asked 2 times · 9 tokens read, 99 written').waitFor();
    await bench.accessible('markdown');
    await page.unroute('**/api/chat');
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
