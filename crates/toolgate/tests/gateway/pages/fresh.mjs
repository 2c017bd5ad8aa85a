// A gateway that nobody has called yet: what it says then, and how its figures begin to move.

import assert from 'node:assert/strict';

export async function fresh(bench) {
  await bench.step('nothing has been called yet', async () => {
    await bench.page.goto(bench.url);
    await bench.page.getByText('No calls yet').waitFor();
    assert.match(await bench.text('empty'), /curl -sS .*math_eval/);
    await bench.until('the title', async () => (await bench.page.title()).includes('Calls'));
    await bench.accessible('empty calls');
    await bench.go('#/tools/math_eval');
    await bench.page.getByText('Not called yet').waitFor();
    await bench.go('#/chat');
    await bench.page.getByText('Ask, and watch the tools work').waitFor();
    await bench.accessible('empty chat');
    await bench.go('#/tools/a%3Cb%3Ename');
    await bench.page.getByText('Tool ‘a<b>name’ not found').waitFor();
  }, [/status of 404/]);
}

export async function strip(bench) {
  await bench.step('the strip says what is wrong, and its figures move with calls', async () => {
    await bench.go('#/calls');
    await bench.untilText('strip-status', /^DEGRADED$/);
    await bench.untilText('strip-reason', /^gone: command 'a-program-that-is-not-there' was not found on the PATH: install it, or give its full path as 'command'(; retry in|$)/);
    assert.equal(await bench.text('strip-cpm'), '0');
    assert.equal(await bench.text('strip-errors'), '–');
    for (let n = 0; n < 9; n += 1) await bench.call('echo', { text: `number ${n}` });
    assert.equal((await bench.call('fail', { text: 'on purpose' })).success, false);
    await bench.untilText('strip-cpm', /^10$/);
    await bench.untilText('strip-errors', /^10\s?%$/);
    await bench.untilText('strip-p95', /ms$/);
    const slow = bench.call('sleep', { milliseconds: 4500 });
    await bench.untilText('strip-inflight', /^1$/);
    await slow;
    await bench.untilText('strip-inflight', /^0$/);
  });
}
