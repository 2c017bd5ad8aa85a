// The page of a server: its resources, its prompts, and what they contain. Nothing of it runs.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

const MARKUP = '<img src=x onerror=document.title="owned"><script>document.title="owned"</script>';

async function open(bench, kind, name) {
  await bench.id(`entries-${kind}`).getByRole('link', { name }).click();
  await bench.id('server-detail').getByRole('heading', { level: 2, name }).first().waitFor();
}

/** Opens a resource, which reads it, and waits for content of this kind. */
async function read(bench, name, kind) {
  await open(bench, 'resource', name);
  const content = bench.page.locator(`[data-testid=content][data-kind=${kind}]`);
  await content.waitFor();
  return content;
}

export async function resources(bench) {
  const { page } = bench;
  await bench.step('the card of a server leads to what it offers', async () => {
    await bench.go('#/servers');
    const card = page.locator('[data-testid=server-card][data-server=memos]');
    await bench.until('the counts', async () => (await card.getByTestId('server-resources').textContent()) === '8' && (await card.getByTestId('server-prompts').textContent()) === '2');
    await card.getByTestId('server-link').click();
    await bench.untilText('server-instructions', /Read memo:readme first\./);
    assert.equal(await bench.id('server-instructions').locator('code').textContent(), 'memo:readme');
    assert.ok((await bench.text('server-instructions')).includes(MARKUP));
    assert.equal(await bench.id('entries-resource').getByRole('link').count(), 7);
    assert.equal(await bench.id('entries-template').getByRole('link').count(), 1);
    assert.equal(await bench.id('entries-prompt').getByRole('link').count(), 2);
    await bench.accessible('server page');
  });

  await bench.step('every kind of content has its preview', async () => {
    const readme = await read(bench, 'Read me', 'markdown');
    assert.equal(await readme.locator('strong').textContent(), 'bold');
    assert.deepEqual(await readme.getByRole('link').evaluateAll((links) => links.map((link) => link.getAttribute('href'))), ['https://example.org/a']);
    assert.ok((await readme.textContent()).includes(MARKUP));
    await bench.accessible('markdown resource');
    await bench.id('content-source').click();
    assert.match(await readme.locator('pre').textContent(), /^# Read me\n/);
    const rooms = await read(bench, 'Rooms', 'json');
    assert.match(await rooms.textContent(), /"rooms": \[2 entries \]0: "kitchen"1: "hall"\]/);
    assert.match(await bench.text('server-detail'), /foruserchanged2026-03-01/);
    const picture = await read(bench, 'Picture', 'picture');
    await bench.until('the picture', () => picture.locator('img').evaluate((image) => image.naturalWidth === 96));
    await bench.accessible('picture resource');
    const long = await read(bench, 'A long text', 'text');
    const [shown, whole] = await long.locator('pre').evaluate((pre) => [pre.clientWidth, pre.scrollWidth]);
    assert.equal(shown, whole, 'long lines wrap');
    assert.match(await long.textContent(), /\\u202eend/);
    const html = await read(bench, '<img src=x', 'text');
    assert.ok((await html.locator('pre').textContent()).includes(MARKUP));
    assert.doesNotMatch(await page.title(), /owned/);
  });

  await bench.step('what cannot be shown is downloaded', async () => {
    const drawing = await read(bench, 'Drawing', 'file');
    assert.match(await drawing.textContent(), /image\/svg\+xml, 73 B/);
    assert.equal(await drawing.locator('img').count(), 0);
    const [saved] = await Promise.all([page.waitForEvent('download'), bench.id('content-download').click()]);
    assert.equal(saved.suggestedFilename(), 'drawing.svg');
    assert.match(await readFile(await saved.path(), 'utf8'), /^<svg /);
  });

  await bench.step('a template is filled in, and a failure says why', async () => {
    await open(bench, 'template', 'A note');
    await page.getByLabel('id').fill('4 2');
    assert.equal(await bench.text('template-uri'), 'memo:note/4%202');
    await page.getByLabel('id').fill('42');
    await bench.id('resource-read').click();
    await bench.untilText('content', /The note 42/);
    await open(bench, 'resource', 'Gone by now');
    await bench.untilText('resource-read-result', /There is no memo memo:gone/);
    assert.equal(await bench.text('try-outcome'), 'Tool error');
  });

  await bench.step('an address only shows a resource, and a click reads it', async () => {
    const before = (await bench.get('/api/calls')).length;
    await bench.go('#/servers/other?resource=toolgate%3A%2F%2Fother%2Fmemo%3Areadme');
    await bench.until('the entry', () => bench.id('server-detail').getByRole('heading', { name: 'Read me' }).isVisible());
    assert.equal((await bench.get('/api/calls')).length, before);
    await bench.id('resource-read').click();
    await bench.untilText('content', /Some bold text/);
    const [call] = await bench.get('/api/calls');
    assert.deepEqual([call.tool, call.server, call.arguments], ['resources/read', 'other', { uri: 'memo:readme' }]);
    await page.getByRole('link', { name: 'Open this call' }).click();
    await bench.untilText('drawer-result', /Some bold text/);
    await bench.id('copy-cli').click();
    assert.equal(await bench.clipboard(), 'toolgate read toolgate://other/memo:readme');
    await bench.id('replay').click();
    await bench.until('another read', async () => (await bench.get('/api/calls')).length === before + 2);
    await bench.id('drawer').getByRole('link', { name: 'resources/read' }).click();
    await bench.until('its page', () => bench.id('server-detail').getByRole('heading', { name: 'Read me' }).isVisible());
  });
}

export async function messages(bench) {
  const { page } = bench;
  await bench.step('a prompt is filled in through a form', async () => {
    await bench.go('#/servers/other');
    await open(bench, 'prompt', 'Review');
    await bench.id('prompt-get').click();
    await bench.untilText('try-error-memo', /^is required$/);
    assert.equal(await page.evaluate(() => document.activeElement.closest('[data-path]')?.dataset.path), 'memo');
    assert.ok((await bench.text('prompt-form')).includes(MARKUP));
    await page.keyboard.type('memo:readme');
    await page.keyboard.press('Enter');
    await bench.until('four messages', async () => (await bench.id('message').count()) === 4);
    assert.match(await bench.id('message').nth(0).textContent(), /^UserReview this memo\.$/);
    assert.match(await bench.id('message').nth(2).textContent(), /"rooms"/);
    assert.match(await bench.id('message').nth(3).textContent(), /^AssistantGladly\.$/);
    await bench.accessible('prompt');
    const [call] = await bench.get('/api/calls');
    assert.deepEqual([call.tool, call.server, call.arguments], ['prompts/get', 'other', { name: 'review', arguments: { memo: 'memo:readme' } }]);
    await bench.id('message').nth(1).getByRole('link', { name: 'The memo' }).click();
    await bench.until('the linked resource', () => bench.id('server-detail').getByRole('heading', { name: 'Read me' }).isVisible());
    assert.match(page.url(), /resource=toolgate%3A%2F%2Fother%2Fmemo%3Areadme$/);
  });

  await bench.step('on a phone either the list or one entry has the page', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await bench.go('#/servers/memos');
    await bench.untilText('server-instructions', /Read memo:readme first/);
    await bench.accessible('server page phone');
    await open(bench, 'prompt', 'plain');
    assert.ok(!(await bench.id('entries-prompt').isVisible()));
    await bench.id('prompt-get').click();
    await bench.until('the message', async () => (await bench.text('message')) === `User${MARKUP}`);
    await bench.accessible('prompt phone');
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390, 'nothing is wider than the page');
    await page.getByRole('link', { name: 'memos', exact: true }).click();
    await bench.id('entries-prompt').waitFor();
    await page.setViewportSize({ width: 1360, height: 850 });
    assert.doesNotMatch(await page.title(), /owned/);
  });

  await bench.step('an unknown server or prompt is told', async () => {
    await bench.go('#/servers/memos?prompt=none');
    await bench.untilText('server-detail', /This prompt is not offered/);
    await bench.go('#/servers/nobody');
    await page.getByText('Server ‘nobody’ not found').waitFor();
  }, [/404/]);
}
