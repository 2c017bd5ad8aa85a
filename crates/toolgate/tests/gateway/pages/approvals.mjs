// Calls that wait for a person.

import assert from 'node:assert/strict';

export async function approvals(bench) {
  await bench.step('a call waits until it is approved or declined', async () => {
    const { page } = bench;
    const answered = async (tool, given, button) => {
      const waiting = bench.call(tool, given);
      await bench.id('approval-banner').waitFor();
      assert.match(await bench.text('approval-banner'), new RegExp(`^${tool}.* needs your approval, asked by the HTTP API`));
      await bench.untilText('approval-left', /(1 min|\d+ s).* left/);
      if (button === 'approve') await bench.accessible('approval');
      await bench.until('the answer', async () => {
        // A click within the banner's first moments is not counted, on purpose.
        await bench.id(button).click({ timeout: 1000 }).catch(() => {});
        return (await bench.id('approval-banner').count()) === 0;
      });
      return waiting;
    };
    await bench.go('#/tools');
    const approved = await answered('pid', {}, 'approve');
    assert.ok(approved.success, approved.error);
    assert.match(String(approved.result), /^\d+$/);
    const refused = await answered('volume', { action: 'set', level: 100 }, 'refuse');
    assert.deepEqual([refused.success, refused.error_kind], [false, 'denied']);
    assert.match(await page.title(), /^Tools/);
    await bench.go(`#/calls/${approved.call_id}`);
    await bench.untilText('drawer-waterfall', /Check.*Approval.*Run/);
    await bench.untilText('drawer', /Approvalapproved by local operator \(browser\), /);
  });

  await bench.step('all of the arguments are shown, and what hides in them is marked', async () => {
    const { page } = bench;
    await bench.go('#/tools');
    const padding = Object.fromEntries(Array.from({ length: 120 }, (_, n) => [`line${n}`, 'x'.repeat(60)]));
    const given = { action: 'set', level: 100, note: 'p\u0430yp\u0430l \u{e0041}\u{e0042} so\u00adft \u202eexe.fdp', ...padding, last: 'the very end' };
    const waiting = bench.call('pid', given);
    await bench.id('approval-arguments').waitFor();
    const shown = await bench.text('approval-arguments');
    assert.match(shown, /pа U\+0430ypа U\+0430l U\+E0041U\+E0042 soU\+00ADft U\+202Eexe/);
    assert.match(shown, /the very end/);
    assert.match(await bench.text('approval-marks'), /^6 hidden or look-alike characters/);
    const [height, whole] = await bench.id('approval-arguments').evaluate((pre) => [pre.clientHeight, pre.scrollHeight]);
    assert.ok(height < whole, 'it scrolls');
    await bench.id('approval-arguments').evaluate((pre) => { pre.scrollTop = pre.scrollHeight; });
    await bench.accessible('long approval');
    await bench.id('approval-arguments').evaluate((pre) => { pre.scrollTop = 0; });
    await bench.accessible('hidden characters in approval');
    await page.setViewportSize({ width: 390, height: 844 });
    await bench.accessible('approval phone');
    const box = await bench.id('approve').boundingBox();
    const reached = await page.evaluate(({ x, y, width, height }) => document.elementFromPoint(x + width / 2, y + height / 2)?.closest('button')?.dataset.testid, box);
    assert.equal(reached, 'approve', 'one reaches the button');
    await page.setViewportSize({ width: 1360, height: 850 });
    await bench.until('the refusal', async () => {
      await bench.id('refuse').click({ timeout: 1000 }).catch(() => {});
      return (await bench.id('approval-banner').count()) === 0;
    });
    assert.equal((await waiting).error_kind, 'denied');
  });
}
