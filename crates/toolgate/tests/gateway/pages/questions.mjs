// Questions that servers ask during a call.

import assert from 'node:assert/strict';

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name', minLength: 2 },
    mail: { type: 'string', format: 'email', title: 'Mail', description: 'Where the <b>receipt</b> goes' },
    day: { type: 'string', format: 'date', title: 'Day' },
    guests: { type: 'integer', minimum: 1, maximum: 9, default: 2, title: 'Guests' },
    room: { type: 'string', title: 'Room', oneOf: [{ const: 'r1', title: 'Garden' }, { const: 'r2', title: 'Street' }] },
    old: { type: 'string', title: 'Size', enum: ['s', 'l'], enumNames: ['Small', 'Large'], default: 'l' },
    extras: { type: 'array', title: 'Extras', maxItems: 2, items: { anyOf: [{ const: 'b', title: 'Breakfast' }, { const: 'p', title: 'Parking' }, { const: 'd', title: 'Dog' }] } },
    late: { type: 'boolean', title: 'Arriving late' },
  },
  required: ['name', 'room'],
};

export async function questions(bench) {
  const { page } = bench;
  /** Calls the tool that makes its server ask, and waits for the band. */
  const ask = async (args) => {
    const waiting = bench.call('elicit', args);
    await bench.id('question-banner').waitFor();
    return waiting.then(({ result }) => JSON.parse(result).result);
  };
  /** A click within the band's first moments is not counted, on purpose. */
  const open = () => bench.until('the dialog', async () => {
    await bench.id('question-open').click({ timeout: 1000 }).catch(() => {});
    return bench.id('question-dialog').isVisible();
  });
  const field = (name) => bench.id(`try-field-${name}`);
  const error = (name) => bench.text(`try-error-${name}`);

  await bench.step('a question of a server is a form, checked in the page and by the gateway', async () => {
    await bench.go('#/tools');
    const message = 'Book a <b>room</b>?\nPlease p\u0430y soon.';
    const answer = await (async () => {
      const waiting = ask({ question: { mode: 'form', message, requestedSchema: schema } });
      await bench.id('question-banner').waitFor();
      assert.match(await bench.text('question-banner'), /^house asks during elicit, called .*through the HTTP API/);
      assert.match(await bench.text('question-message'), /Book a <b>room<\/b>\?\nPlease pа U\+0430y soon/);
      await bench.untilText('question-left', /(1 min|\d+ s).* left/);
      assert.match(await page.title(), /^\(1\) Tools/);
      await bench.accessible('question');
      await open();
      assert.match(await bench.text('question-dialog'), /house asks/);
      assert.match(await field('mail').textContent(), /Where the <b>receipt<\/b> goes/);
      assert.equal(await field('guests').locator('input').inputValue(), '2');
      await bench.accessible('question form');
      await page.setViewportSize({ width: 390, height: 844 });
      await bench.accessible('question form phone');
      await page.setViewportSize({ width: 1360, height: 850 });

      await bench.id('question-accept').click();
      assert.match(await error('name'), /is missing/);
      assert.match(await error('room'), /is missing/);
      await field('name').locator('input').fill('A');
      await field('mail').locator('input').fill('nobody');
      await field('guests').locator('input').fill('12');
      for (const extra of ['Breakfast', 'Parking', 'Dog']) await field('extras').getByLabel(extra).check();
      await bench.id('question-accept').click();
      assert.match(await error('name'), /at least 2 characters/);
      assert.match(await error('mail'), /email address/);
      assert.match(await error('guests'), /at most 9/);
      assert.match(await error('extras'), /at most 2/);
      await bench.accessible('question form wrong');
      await field('name').locator('input').fill('Ada');
      await field('mail').locator('input').fill('ada@example.org');
      await field('day').locator('input').fill('2026-11-16');
      await field('guests').locator('input').fill('3');
      await field('room').locator('select').selectOption({ label: 'Street' });
      await field('extras').getByLabel('Parking').uncheck();
      await field('late').getByLabel('Yes').check();
      await bench.id('question-accept').click();
      return waiting;
    })();
    assert.deepEqual(answer, {
      action: 'accept',
      content: { name: 'Ada', room: 'r2', mail: 'ada@example.org', day: '2026-11-16', guests: 3, old: 'l', extras: ['b', 'd'], late: true },
    });
    await bench.until('the end', async () => (await bench.id('question-banner').count()) === 0);
    assert.match(await page.title(), /^Tools/);
  });

  await bench.step('what the gateway finds wrong is shown beside its field', async () => {
    const pattern = { type: 'object', properties: { code: { type: 'string', pattern: '^[0-9]+$' } } };
    const answer = ask({ question: { message: 'The code?', requestedSchema: pattern } });
    await open();
    await field('code').locator('input').fill('abc');
    await bench.id('question-accept').click();
    await bench.untilText('try-error-code', /must match/);
    await field('code').locator('input').fill('123');
    await bench.id('question-accept').click();
    assert.deepEqual(await answer, { action: 'accept', content: { code: '123' } });
  }, [/422/]);

  await bench.step('a page to open shows its host, and is never opened by itself', async () => {
    for (const [button, action] of [['question-accept', 'accept'], ['question-refuse', 'decline']]) {
      const answer = ask({ url: true });
      await open();
      assert.equal(await bench.text('question-host'), 'example.org');
      assert.equal(await bench.text('question-url'), 'https://example.org/who');
      const link = bench.id('question-link');
      assert.deepEqual([await link.getAttribute('href'), await link.getAttribute('rel'), await link.getAttribute('target')], ['https://example.org/who', 'noopener noreferrer', '_blank']);
      if (action === 'accept') await bench.accessible('question page');
      await bench.id(button).click();
      assert.deepEqual(await answer, { action });
    }
  });

  await bench.step('a question can wait, be declined and be dismissed', async () => {
    const later = ask({});
    await open();
    await bench.id('question-later').click();
    assert.ok(await bench.id('question-banner').isVisible(), 'it still waits');
    await open();
    await page.keyboard.press('Escape');
    assert.ok(await bench.id('question-banner').isVisible(), 'Esc answers nothing');
    await open();
    await bench.id('question-cancel').click();
    assert.deepEqual(await later, { action: 'cancel' });
    const declined = ask({});
    await bench.until('the refusal', async () => {
      await bench.id('question-decline').click({ timeout: 1000 }).catch(() => {});
      return (await bench.id('question-banner').count()) === 0;
    });
    assert.deepEqual(await declined, { action: 'decline' });
  });
}
