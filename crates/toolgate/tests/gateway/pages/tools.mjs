// The tools: the list, the plots, and the form that is made from a schema.

import assert from 'node:assert/strict';

const listed = (bench) => bench.page.locator('[data-testid=tool-row]').evaluateAll((all) => all.map((row) => row.dataset.tool));

export async function tools(bench) {
  const { page } = bench;
  await bench.step('the list of tools', async () => {
    await page.getByTestId('nav-tools').click();
    await bench.until('every tool', async () => (await listed(bench)).length === (await bench.get('/api/tools')).length);
    await page.keyboard.press('/');
    await page.keyboard.type('read-only');
    await bench.until('the one that says so', async () => (await listed(bench)).includes('count_read_only') && (await listed(bench)).length < 12);
    assert.match(await bench.text('tool-total'), /^\d+ of \d+ tools$/);
    await bench.id('tool-search').fill('no such tool at all');
    await page.getByText('No tool matches').waitFor();
    await bench.id('tool-search').fill('');
    await bench.id('tool-source').selectOption('mcp:names');
    await bench.until('one tool', async () => (await listed(bench)).join() === 'markup');
    await bench.id('tool-source').selectOption('');
    await bench.id('tool-sort-name').click();
    await bench.until('by name', async () => (await listed(bench))[0] === 'allocate');
    await bench.id('tool-sort-calls').click();
    await bench.until('by calls', async () => ['echo', 'sleep'].includes((await listed(bench))[0]));
    await bench.accessible('tools');
  });

  await bench.step('plots with axes, units and points', async () => {
    await bench.id('tool-search').fill('');
    await page.locator('[data-tool=sleep] .tool-name').click();
    for (const plot of ['plot-rate', 'plot-latency', 'plot-histogram']) {
      const drawing = bench.id(plot).locator('svg');
      await bench.until(`${plot} is drawn`, async () => (await drawing.locator('path, rect, circle').count()) > 0);
      const labels = await drawing.locator('text').allTextContents();
      assert.ok(labels.length >= 4, `${plot} has too few labels: ${labels}`);
      const unit = plot === 'plot-rate' ? /^\d+ \/ \d+ s$/ : /\d\s?(ms|s)$/;
      assert.ok(labels.some((label) => unit.test(label)), `${plot} has no unit: ${labels}`);
    }
    const latency = bench.id('plot-latency');
    await latency.getByRole('slider').focus();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    const step = /^\d\d:\d\d:\d\d–\d\d:\d\d:\d\d: /;
    assert.match(await latency.getByRole('slider').getAttribute('aria-valuetext'), new RegExp(`${step.source}p50`));
    const rate = bench.id('plot-rate').getByRole('slider');
    assert.match(await rate.getAttribute('aria-valuetext'), /^last \d+ (s|min): calls/);
    await rate.focus();
    await page.keyboard.press('End');
    assert.match(await rate.getAttribute('aria-valuetext'), new RegExp(`${step.source}calls`));
    await bench.picture('plots');
    await latency.locator('summary').click();
    await bench.until('the same as a table', async () => (await latency.locator('tbody tr').count()) > 0);
    await latency.locator('summary').click();
    assert.match(await bench.text('tool-tiles'), /Calls.*Per minute.*Errors.*p50.*p95.*p99.*Slowest/);
    const seen = await bench.id('tool-call').count();
    await bench.call('sleep', { ms: 1 });
    await bench.until('one more call', async () => (await bench.id('tool-call').count()) === Math.min(20, seen + 1));
    await bench.accessible('plots');
    await bench.go('#/tools/fail');
    await bench.untilText('tool-errors', /Tool error\s*3/i);
    await bench.id('tool-tab-definition').click();
    await bench.untilText('tool-schema', /Fails with its text/);
    await bench.accessible('definition');
  });
}

export async function form(bench) {
  const { page } = bench;
  const input = (path) => bench.id(`try-field-${path}`).locator('input, select, textarea').first();
  await bench.step('the form says beside a field what is wrong with it', async () => {
    await bench.go('#/tools/volume?tab=try');
    await input('level').waitFor();
    const action = input('action');
    if ((await action.evaluate((element) => element.tagName)) === 'SELECT') await action.selectOption({ label: 'set' });
    else await bench.id('try-field-action').getByText('set', { exact: true }).click();
    await input('level').fill('200');
    await bench.untilText('try-error-level', /must be at most 100/);
    assert.equal(await input('level').getAttribute('aria-invalid'), 'true');
    await bench.accessible('try');
    await bench.id('try-run').click();
    assert.equal(await bench.id('approval-banner').count(), 0);
    await input('level').fill('30');
    await bench.untilText('try-status', /^Valid.*needs approval/);
    await bench.id('try-run').click();
    await page.getByText('Run volume?').waitFor();
    await bench.id('dialog-cancel').click();
  });

  await bench.step('and that nothing is filled in', async () => {
    await bench.go('#/tools/markup?tab=try');
    await bench.untilText('try-status', /^Nothing filled in/);
  });

  await bench.step('and runs what is right', async () => {
    await bench.go('#/tools/math_eval?tab=try');
    await bench.id('try-run').click();
    await bench.untilText('try-error-expression', /\w/);
    await input('expression').fill('2^10');
    await page.keyboard.press('Control+Enter');
    await bench.untilText('try-outcome', /^OK$/);
    assert.match(await bench.text('try-result'), /1024/);
    await bench.id('try-json-toggle').click();
    assert.deepEqual(JSON.parse(await bench.id('try-json').inputValue()), { expression: '2^10' });
    await bench.id('try-json').fill('{"expression": "1/"}');
    await bench.id('try-run').click();
    await bench.until('the failure', async () => (await page.locator('[data-outcome=failed]').count()) === 1);
    await page.getByRole('link', { name: 'Open this call' }).click();
    await bench.id('drawer-error').waitFor();
    await bench.go('#/tools/sleep?tab=try');
    await input('ms').fill('60000');
    await bench.untilText('try-status', /^Valid/);
    await bench.id('try-run').click();
    await bench.id('try-stop').click();
    await page.getByText('This page no longer waits').waitFor();
  });
}
