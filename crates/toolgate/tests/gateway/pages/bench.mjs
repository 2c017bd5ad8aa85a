// A browser on the dashboard, and what all of the checks need: steps with names, waiting, pictures, and an eye on
// everything that a page must not do.

import { createRequire } from 'node:module';
import { accessSync, constants, readFileSync } from 'node:fs';
import { join } from 'node:path';
import assert from 'node:assert/strict';

/** A hang guard: what is waited for takes a fraction of a second on an idle machine. */
const PATIENCE = 20_000;
const DESKTOP = { width: 1360, height: 850 };

/** Opens a browser with one page, which is not yet anywhere, signed in by the link of the gateway unless told otherwise. */
export async function openBench({ modules, url, pictures, signedIn = true }) {
  const require = createRequire(join(modules, 'package.json'));
  const { chromium } = require('playwright-core');
  const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
  const browser = await chromium.launch({ executablePath: onPath('chromium'), args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
  const context = await browser.newContext({ viewport: DESKTOP, permissions: ['clipboard-read', 'clipboard-write'], colorScheme: 'light' });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  if (signedIn && process.env.TOOLGATE_LINK) {
    // As a person does.
    await page.goto(process.env.TOOLGATE_LINK);
    await page.goto('about:blank');
  }
  const bench = new Bench({ browser, context, page, url, pictures, axe });
  bench.watch();
  return bench;
}

function onPath(program) {
  const found = process.env.PATH.split(':').map((folder) => join(folder, program)).find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  assert.ok(found, `${program} is not on the PATH; ./test.sh installs it`);
  return found;
}

class Bench {
  constructor(parts) {
    Object.assign(this, parts);
    this.problems = [];
    this.expected = [];
    this.at = 'opening';
  }

  /** Whatever a page says on its console, every exception, every request to somebody else is a problem. */
  watch() {
    const { page } = this;
    const problem = (text) => {
      if (!this.expected.some((pattern) => pattern.test(text))) this.problems.push(`${this.at}: ${text}`);
    };
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problem(`console ${message.type()}: ${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => problem(`exception: ${error.stack ?? error}`));
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== 'data:' && origin !== this.url) problem(`a request to somebody else: ${request.url()}`);
    });
    page.on('dialog', (dialog) => {
      problem(`a dialog of the browser: ${dialog.message()}`);
      dialog.dismiss();
    });
  }

  /** A part of the run. What it makes the page complain about on purpose is named by `expected`. */
  async step(name, run, expected = []) {
    this.at = name;
    this.expected = expected;
    const began = Date.now();
    try {
      await run(this);
    } catch (error) {
      await this.picture(`failed ${name}`).catch(() => {});
      error.message = `${name}: ${error.message}\n${this.problems.join('\n')}`;
      throw error;
    }
    process.stdout.write(`${String(Date.now() - began).padStart(6)} ms  ${name}\n`);
    assert.deepEqual(this.problems, []);
  }

  /** Goes to a place of the dashboard, `#/calls` for example. */
  async go(hash) {
    await this.page.evaluate((to) => {
      location.hash = to;
    }, hash);
    const view = /^#\/(\w+)/.exec(hash)[1];
    await this.id(`view-${view}`).waitFor();
  }

  id(testid) {
    return this.page.getByTestId(testid);
  }

  async text(testid) {
    return (await this.id(testid).first().textContent()) ?? '';
  }

  /** Waits until `look` gives something true, and gives it back. */
  async until(what, look) {
    const end = Date.now() + PATIENCE;
    let last;
    while (Date.now() < end) {
      last = await look();
      if (last) return last;
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    throw new Error(`this did not happen: ${what}`);
  }

  untilText(testid, pattern) {
    return this.until(`${testid} says ${pattern}`, async () => pattern.test(await this.text(testid)));
  }

  picture(name) {
    return this.page.screenshot({ path: join(this.pictures, `${name.replaceAll(' ', '-')}.png`), timeout: PATIENCE });
  }

  /** Nothing that keeps a person out, in light and in dark; a picture of both. */
  async accessible(name) {
    for (const colorScheme of ['light', 'dark']) {
      await this.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await this.check(`${name} ${colorScheme}`);
      await this.picture(`${name} ${colorScheme}`);
    }
    await this.page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  }

  async check(name) {
    await this.page.evaluate(`window.axe ?? (() => { ${this.axe} })()`);
    let found = await this.violations();
    if (found.length > 0) {
      // A page that was caught in the middle of a change is looked at once more.
      process.stdout.write(`${name}: ${JSON.stringify(found)}\n`);
      await new Promise((resolve) => setTimeout(resolve, 300));
      found = await this.violations();
    }
    assert.deepEqual(found, [], `${name} keeps people out`);
  }

  violations() {
    return this.page.evaluate(async () => {
      const found = await window.axe.run(document, { resultTypes: ['violations'] });
      return found.violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.slice(0, 4).map((node) => `${node.html.slice(0, 160)}: ${node.any[0]?.message ?? node.failureSummary}`) }));
    });
  }

  /** A request of somebody else than the page. */
  async request(path, options = {}) {
    const response = await fetch(`${this.url}${path}`, options);
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  }

  /** The same as a command of the operator. */
  async get(path) {
    const key = process.env.TOOLGATE_KEY;
    return (await this.request(path, key ? { headers: { authorization: `Bearer ${key}` } } : {})).body;
  }

  post(path, body) {
    return this.request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  }

  /** Calls a tool as any client would; gives the envelope. */
  async call(tool, given = {}) {
    return (await this.post(`/api/tools/${encodeURIComponent(tool)}/call`, given)).body;
  }

  clipboard() {
    return this.page.evaluate(() => navigator.clipboard.readText());
  }

  async close() {
    await this.browser.close();
  }
}
