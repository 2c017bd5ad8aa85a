// `node voice.mjs NODE_MODULES URL PICTURES SOME MANY`: the view of voice turns, before there are any and as another process
// leaves them. That process does so once the file SOME is there, and again with MANY; see voice.rs for what was said.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { openBench } from './pages/bench.mjs';

const [modules, url, pictures, some, many] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures });
const { page } = bench;
const cards = bench.id('turn');
const part = (at, id) => cards.nth(at).getByTestId(id);

async function nothing() {
  await page.goto(`${url}/#/voice`);
  await page.getByText('No voice turns yet').waitFor();
  assert.match(await bench.text('empty'), /toolgate voice/);
  await bench.until('the title', async () => (await page.title()) === 'Voice · Toolgate');
  await bench.accessible('voice empty');
}

async function live() {
  writeFileSync(some, '');
  await bench.until('the turns of another process', async () => (await cards.count()) === 4);
  assert.equal(await part(0, 'turn-heard').textContent(), 'Heard: turn on switch one');
  assert.equal(await part(0, 'turn-answer').textContent(), 'Said: Switch one is on.');
  assert.equal(await part(0, 'turn-place').textContent(), 'kitchen · satellite · “ok nabu”');
  assert.equal(await part(0, 'turn-outcome').textContent(), 'Answered');
  assert.equal(await part(0, 'turn-total').textContent(), '3.1 s');
  assert.equal(await part(0, 'turn-wait').textContent(), 'First sound 700 ms after speech ended');
  assert.deepEqual(await part(0, 'turn-stages').locator('li').allTextContents(), ['Listening 1.2 s', 'Transcribing 450 ms', 'Thinking 8 ms', 'Voicing 242 ms', 'Speaking 1.2 s']);
  assert.equal(await part(1, 'turn-outcome').textContent(), 'Interrupted');
  assert.equal(await part(2, 'turn-outcome').textContent(), 'Failed');
  assert.match(await part(2, 'turn-error').textContent(), /the speech service did not answer/);
  assert.match(await part(2, 'turn-heard').textContent(), /Nothing was understood/);
  assert.equal(await cards.nth(3).locator('img, b, script').count(), 0);
  assert.match(await part(3, 'turn-heard').textContent(), /<img src=x/);
  await part(3, 'turn-answer').getByText(/Show all/).click();
  assert.match(await part(3, 'turn-answer').textContent(), /the end *$/);
  const widths = await part(0, 'turn-stages').locator('.stage').evaluateAll((all) => all.map((each) => each.getBoundingClientRect().width));
  assert.ok(widths[0] > 5 * widths[3] * 0.8 && widths[2] >= 3, `the bar is ${widths}`);
  await page.evaluate(() => scrollTo(0, 0));
  await bench.accessible('voice');
}

async function older() {
  assert.equal(await bench.text('turn-count'), '4 turns');
  writeFileSync(many, '');
  await bench.until('many turns', async () => (await bench.get('/api/turns?limit=200')).length === 64);
  await page.reload();
  await bench.until('the newest', async () => (await cards.count()) === 50);
  assert.equal(await bench.text('turn-count'), '50 turns or more');
  await bench.id('turns-older').click();
  await bench.until('the oldest turn', async () => (await cards.count()) === 64);
  assert.equal(await bench.text('turn-count'), '64 turns');
  await bench.id('turns-older').waitFor({ state: 'hidden' });
  assert.equal(await part(60, 'turn-heard').textContent(), 'Heard: turn on switch one');
}

async function keys() {
  const focused = () => page.evaluate(() => [...document.querySelectorAll('[data-testid=turn]')].indexOf(document.activeElement));
  await page.keyboard.press('j');
  assert.equal(await focused(), 0);
  await page.keyboard.press('j');
  assert.equal(await focused(), 1);
  await page.keyboard.press('k');
  assert.equal(await focused(), 0);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), 'turn-call');
  await page.keyboard.press('Enter');
  await bench.id('drawer').waitFor();
  await bench.until('the call', async () => /counting/.test(await bench.text('drawer')));
  await page.goBack();
  await bench.until('the turns again', async () => (await cards.count()) === 50);
  await page.keyboard.press('6');
  await bench.id('view-api').waitFor();
  await page.keyboard.press('5');
  await bench.until('the turns once more', async () => (await cards.count()) === 50);
}

async function phone() {
  await page.setViewportSize({ width: 360, height: 740 });
  await bench.go('#/voice');
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await bench.id('turns-older').click();
  await bench.until('a long name', async () => (await cards.count()) === 64);
  const { over, inner } = await page.evaluate(() => ({ over: document.documentElement.scrollWidth, inner: innerWidth }));
  assert.ok(over <= inner, `${over} wide on a screen of ${inner}`);
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await bench.picture('phone voice end');
  await page.evaluate(() => scrollTo(0, 0));
  await bench.accessible('phone voice');
}

try {
  await bench.step('nothing was said yet', nothing);
  await bench.step('what another process hears is there without asking', live);
  await bench.step('older turns', older);
  await bench.step('by keyboard, and to a call and back', keys);
  await bench.step('a small screen', phone);
} finally {
  await bench.close();
}
