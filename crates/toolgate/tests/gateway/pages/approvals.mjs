// Calls that wait for a person.

import assert from 'node:assert/strict';

export async function approvals(bench) {
  await bench.step('a call waits until it is approved, or is refused', async () => {
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
  });
}
