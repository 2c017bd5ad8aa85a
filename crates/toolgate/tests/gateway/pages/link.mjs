// A gateway without tokens: what anybody on the machine is shown, and the link that signs the operator in.

import assert from 'node:assert/strict';

export async function link(bench) {
  const { page, url } = bench;
  const signIn = process.env.TOOLGATE_LINK;

  await bench.step('who is not signed in is told how, and shown no calls', async () => {
    await page.goto(url);
    await bench.id('sign-in-band').waitFor();
    assert.match(await bench.text('sign-in-band'), /open the sign-in link.*kill -USR1/);
    await page.getByText('Sign in to see the calls').waitFor();
    assert.equal(await bench.id('sign-out').isVisible(), false);
    await bench.accessible('not signed in');
    await page.setViewportSize({ width: 390, height: 844 });
    await bench.picture('not signed in phone');
    await page.setViewportSize({ width: 1360, height: 850 });
  }, [/status of 403/]);

  await bench.step('the link signs in once, and its key leaves the address bar', async () => {
    await page.goto(signIn);
    await page.getByText('No calls yet').waitFor();
    assert.ok(!page.url().includes('key='), page.url());
    assert.equal(await bench.id('sign-in-band').isVisible(), false);
    assert.equal(await bench.id('sign-out').getAttribute('title'), 'Signed in as local operator');
    const [cookie] = await bench.context.cookies();
    assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict']);
    assert.ok(!signIn.includes(cookie.value));
    const again = await fetch(signIn, { redirect: 'manual' });
    assert.deepEqual([again.status, again.headers.get('location'), again.headers.get('set-cookie')], [303, '/', null]);
  });
}
