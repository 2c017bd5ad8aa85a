// All about one call, and what can be done with it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

/** Runs a command that was copied, as a person would by pasting it. */
const shell = (command) => execFileSync('sh', ['-c', command], { encoding: 'utf8' });

const open = async (bench, id) => {
  await bench.go(`#/calls/${id}`);
  await bench.until(`the drawer of ${id}`, async () => (await bench.id('drawer').locator('.copyable').first().textContent()) === id);
};

export async function drawer(bench) {
  const { page } = bench;
  const slow = await bench.call('sleep', { milliseconds: 30 });
  await bench.step('a call from all sides', async () => {
    await bench.go('#/calls');
    await page.locator(`[data-id="${slow.call_id}"]`).click();
    await bench.untilText('drawer-outcome', /^OK$/);
    await bench.untilText('drawer-waterfall', /Check.*Run/);
    assert.ok((await bench.id('drawer-waterfall').getByRole('listitem').count()) >= 2);
    const renamed = bench.id('drawer-diff').locator('.diff-renamed');
    assert.match(await renamed.textContent(), /milliseconds: 30renamedms: 30/);
    assert.equal(await bench.text('drawer-result'), 'slept');
    await bench.id('drawer-tab-raw').click();
    const raw = JSON.parse(await bench.text('drawer-raw'));
    assert.deepEqual([raw.id, raw.asked, raw.executed], [slow.call_id, { milliseconds: 30 }, { ms: 30 }]);
    await bench.id('drawer-schema').locator('summary').first().click();
    assert.match(await bench.text('drawer-schema'), /Sleeps, then responds.*"ms".*"integer"/s);
    await bench.accessible('drawer');
  });

  await bench.step('what is copied works where it is pasted', async () => {
    await bench.id('copy-curl').click();
    await bench.untilText('toasts', /curl command copied/);
    const envelope = JSON.parse(shell(await bench.clipboard()));
    assert.deepEqual([envelope.success, envelope.result], [true, 'slept']);
    await bench.id('copy-cli').click();
    await bench.untilText('toasts', /toolgate command copied/);
    const given = shell(`toolgate() { printf '%s\\n' "$@"; }; ${await bench.clipboard()}`);
    assert.equal(given, 'call\nsleep\n{"milliseconds":30}\n');
    const nasty = await bench.call('echo', { text: `it's "$(id)" \`id\` \\ ! %0a` });
    await open(bench, nasty.call_id);
    await bench.id('copy-curl').click();
    await bench.until('the other command', async () => (await bench.clipboard()).includes('/echo/'));
    assert.deepEqual(JSON.parse(shell(await bench.clipboard())).result, nasty.result);
  });

  await bench.step('running it again', async () => {
    const asked = (tool) => bench.get(`/api/calls?tool=${tool}&limit=1000`).then((all) => all.length);
    const read = (await bench.call('math_eval', { expression: '6*7' })).call_id;
    await open(bench, read);
    await bench.id('replay').click();
    await bench.until('the new call in the drawer', async () => !page.url().endsWith(read));
    assert.equal(await asked('math_eval'), 2);
    await open(bench, slow.call_id);
    const before = await asked('sleep');
    await bench.id('replay').click();
    await page.getByText('Run sleep again?').waitFor();
    await bench.id('dialog-cancel').click();
    assert.equal(await asked('sleep'), before);
    await bench.id('replay').click();
    await bench.id('dialog-confirm').click();
    await bench.until('the call again', async () => !page.url().endsWith(slow.call_id) && (await asked('sleep')) === before + 1);
    await bench.untilText('toasts', /sleep ran again/);
  });

  await bench.step('keeping its answer as a mock', async () => {
    const { call_id: id, result } = await bench.call('math_eval', { expression: '2^0.5' });
    await open(bench, id);
    await bench.id('save-mock').click();
    await bench.id('mock-dialog').waitFor();
    await bench.go('#/tools');
    await bench.id('mock-dialog').waitFor({ state: 'detached' });
    await open(bench, id);
    await bench.id('save-mock').click();
    assert.equal(await bench.id('mock-name').inputValue(), 'math_eval_mock');
    await bench.id('mock-name').fill('echo');
    await bench.id('mock-save').click();
    await bench.until('why not', async () => /a tool of that name already exists/.test(await page.locator('#mock-error').textContent()));
    await bench.accessible('mock');
    await bench.id('mock-name').fill('root_of_two');
    await bench.id('mock-save').click();
    await bench.id('mock-saved').waitFor();
    await bench.id('mock-copy').click();
    await bench.until('the definition', async () => /root_of_two/.test(await bench.clipboard()));
    await page.getByRole('button', { name: 'Done' }).click();
    // The file was written; the gateway takes an edit up a moment later.
    const mock = await bench.until('the mock answers', async () => (await bench.call('root_of_two', { expression: 'anything' })).result);
    assert.deepEqual(mock, result);
    await open(bench, (await bench.call('echo', { password: 'hunter2' })).call_id);
    await bench.id('save-mock').click();
    await bench.id('mock-name').fill('told_nothing');
    await bench.id('mock-save').click();
    await bench.untilText('mock-note', /contained a secret, which was replaced/);
    await bench.accessible('mock without its secret');
    await page.getByRole('button', { name: 'Done' }).click();
    const { call_id: failed } = await bench.call('fail', { text: 'no' });
    await open(bench, failed);
    await bench.untilText('drawer-error', /no/);
    assert.ok(await bench.id('save-mock').isDisabled());
  }, [/status of 409/]);

  await bench.step('answers of every kind, and none of them as markup', async () => {
    const { call_id: many } = await bench.call('blocks', {});
    await open(bench, many);
    await bench.untilText('drawer-result', /a text.*image\/png.*audio\/wav.*a\.txt.*inside.*hologram/s);
    assert.equal(await bench.id('drawer-result').locator('audio').count(), 1);
    assert.equal(await bench.id('drawer-result').locator('a[href^="file:"]').count(), 0);
    const hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script> javascript:alert(1)';
    const { call_id: evil } = await bench.call('house__echo', { text: hostile });
    await open(bench, evil);
    assert.equal(await bench.text('drawer-result'), hostile);
    await bench.go('#/tools/markup?tab=try');
    await page.getByText("<img src=x onerror=document.title='owned'> & <b>bold</b>").waitFor();
    await page.getByText("<script>document.title='owned'</script>").waitFor();
    assert.match(await page.title(), /Toolgate/);
    assert.equal(await page.locator('img[src=x], main script').count(), 0);
  });
}
