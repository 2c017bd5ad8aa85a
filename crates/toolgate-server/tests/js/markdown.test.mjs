import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_LENGTH, parse } from '../../assets/js/markdown/blocks.js';
import { inline, safeAddress } from '../../assets/js/markdown/inline.js';

/** Nodes as a short text: `<em>a</em>`, `<a https://x.y/>a</a>`. */
const short = (nodes) => nodes.map((node) => {
  if (typeof node === 'string') return node;
  return node.tag === 'br' ? '<br>' : `<${node.tag}${node.href ? ` ${node.href}` : ''}>${short(node.children)}</${node.tag}>`;
}).join('');

const line = (text, nodes = 1000) => short(inline(text, { nodes }));

/** Blocks as a short text. */
const outline = (blocks) => blocks.map((block) => {
  switch (block.kind) {
    case 'heading': return `h${block.rank}(${short(block.children)})`;
    case 'paragraph': return `p(${short(block.children)})`;
    case 'code': return `code[${block.language}](${block.text})`;
    case 'quote': return `quote(${outline(block.blocks)})`;
    case 'list': return `${block.ordered ? `ol${block.start}` : 'ul'}${block.tight ? '' : ' loose'}(${block.items.map(outline).join(' | ')})`;
    case 'table': return `table[${block.align.map((side) => side ?? '-').join()}](${[block.head, ...block.rows].map((row) => row.map(short).join(' ; ')).join(' / ')})`;
    case 'plain': return `plain(${block.text})`;
    default: return block.kind;
  }
}).join(' ');

const tree = (text) => outline(parse(text));

test('emphasis, code and strikes', () => {
  const table = [
    ['plain', 'plain'],
    ['a **bold** and *thin* and ***both***', 'a <strong>bold</strong> and <em>thin</em> and <em><strong>both</strong></em>'],
    ['__bold__ and _thin_', '<strong>bold</strong> and <em>thin</em>'],
    ['get_device_list and snake_case_', 'get_device_list and snake_case_'],
    ['2 * 3 * 4 and 2**3', '2 * 3 * 4 and 2**3'],
    ['~~gone~~ but ~20 °C~', '<del>gone</del> but ~20 °C~'],
    ['`a*b*c` and ``a ` b``', '<code>a*b*c</code> and <code>a ` b</code>'],
    ['`` `x` ``', '<code>`x`</code>'],
    ['a ` b', 'a ` b'],
    ['\\*not\\* \\# \\a', '*not* # \\a'],
    ['**not closed', '**not closed'],
    ['**a *b* c** and **a `**`', '<strong>a <em>b</em> c</strong> and **a <code>**</code>'],
    ['one\ntwo', 'one<br>two'],
    ['**„quoted“**, *x*.', '<strong>„quoted“</strong>, <em>x</em>.'],
  ];
  for (const [text, wanted] of table) assert.equal(line(text), wanted, text);
});

test('links lead to the web or to mail, and nowhere else', () => {
  const table = [
    ['[docs](https://example.org/a "t")', '<a https://example.org/a>docs</a>'],
    ['[**b** `c`](<https://example.org/a b>)', '<a https://example.org/a%20b><strong>b</strong> <code>c</code></a>'],
    ['[w](https://en.wikipedia.org/wiki/A_(b))', '<a https://en.wikipedia.org/wiki/A_(b)>w</a>'],
    ['[mail](mailto:a@b.c)', '<a mailto:a@b.c>mail</a>'],
    ['see https://example.org/x. And (https://example.org/y)!', 'see <a https://example.org/x>https://example.org/x</a>. And (<a https://example.org/y>https://example.org/y</a>)!'],
    ['<https://example.org>', '<a https://example.org/>https://example.org</a>'],
    ['![a picture](https://example.org/p.png)', '<a https://example.org/p.png>a picture</a>'],
    ['[[a](https://a.b) c](https://c.d)', '<a https://c.d/>[a](https://a.b) c</a>'],
    ['[](https://a.b)', '<a https://a.b/>https://a.b/</a>'],
    ['xhttps://a.b', 'xhttps://a.b'],
    ['[a] (b) [c](', '[a] (b) [c]('],
  ];
  for (const [text, wanted] of table) assert.equal(line(text), wanted, text);
  const refused = [
    'javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'java\tscript:alert(1)', '\u0001javascript:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd',
    'blob:https://a/b', '/api/calls', '#/calls', '//evil.example', 'https:', `https://a.b/${'a'.repeat(3000)}`,
  ];
  for (const address of refused) {
    assert.equal(safeAddress(address), null, address);
    // An address in another one is a text like any other.
    const hidden = address.replace('https:', 'x:');
    assert.ok(!line(`[a](${hidden}) ![a](${hidden}) [a](<${hidden}>) <${hidden}>`).includes('<a '), address);
  }
});

test('HTML is text', () => {
  const text = '<img src=x onerror=alert(1)> <script>alert(1)</script> <b>x</b> &lt;';
  assert.equal(tree(text), `p(${text})`);
  assert.equal(tree(`<div>\n\n${text}\n\n</div>`), `p(<div>) p(${text}) p(</div>)`);
});

test('blocks', () => {
  const table = [
    ['# A\ntext\n## B ##\n#no', 'h1(A) p(text) h2(B) p(#no)'],
    ['### A\n##### B\n### C\n# D', 'h1(A) h2(B) h1(C) h1(D)'],
    ['a\nb\n\nc', 'p(a<br>b) p(c)'],
    ['a\n---\nb\n* * *', 'p(a) rule p(b) rule'],
    ['```js\na *b*\n\n\tc\n```\nafter', 'code[js](a *b*\n\n\tc) p(after)'],
    ['~~~\n```\n~~~', 'code[](```)'],
    ['text\n```\nnot closed yet', 'p(text) code[](not closed yet)'],
    ['```<script>\nx\n```', 'code[](x)'],
    ['a\n\n    indented\n      more\n\nb', 'p(a) code[](indented\n  more) p(b)'],
    ['> a\n> > b\n\nc', 'quote(p(a) quote(p(b))) p(c)'],
    ['', ''], ['\n \n', ''],
  ];
  for (const [text, wanted] of table) assert.equal(tree(text), wanted, text);
  assert.equal(tree('a\r\nb\r\n\r\n- c\r\n'), 'p(a<br>b) ul(p(c))');
});

test('lists', () => {
  const table = [
    ['- a\n- **b**\n- c', 'ul(p(a) | p(<strong>b</strong>) | p(c))'],
    ['3. a\n4. b', 'ol3(p(a) | p(b))'],
    ['1) a\n2) b\n\ntext', 'ol1(p(a) | p(b)) p(text)'],
    ['- a\n\n- b', 'ul loose(p(a) | p(b))'],
    ['- a\n  - b\n    - c\n- d', 'ul(p(a) ul(p(b) ul(p(c))) | p(d))'],
    ['1. a\n  - b\n2. c', 'ol1(p(a) ul(p(b)) | p(c))'],
    ['- a\n\t- b', 'ul(p(a) ul(p(b)))'],
    ['- a\ngoes on\n- b', 'ul(p(a<br>goes on) | p(b))'],
    ['1. a\n\n   more\n\n2. b', 'ol1 loose(p(a) p(more) | p(b))'],
    ['1. do\n   ```sh\n   ls\n\n   pwd\n   ```\n2. done', 'ol1(p(do) code[sh](ls\n\npwd) | p(done))'],
    ['- a\n+ b', 'ul(p(a)) ul(p(b))'],
    ['- [ ] open\n- [x] done', 'ul(p(☐ open) | p(☑ done))'],
    ['text\n- a\n\nend', 'p(text) ul(p(a)) p(end)'],
    ['-', 'ul()'],
    ['**a**\n-5 degrees', 'p(<strong>a</strong><br>-5 degrees)'],
  ];
  for (const [text, wanted] of table) assert.equal(tree(text), wanted, text);
});

test('tables', () => {
  const table = [
    ['| Room | °C |\n|---|---:|\n| Kitchen | 21 |\n| **Bath** |\nend', 'table[-,right](Room ; °C / Kitchen ; 21 / <strong>Bath</strong> ; ) p(end)'],
    ['a | b\n:-: | -\nc \\| d | `e`', 'table[center,-](a ; b / c | d ; <code>e</code>)'],
    ['|a|\n|-|\n|b|c|', 'table[-](a / b)'],
    ['a | b\nc | d', 'p(a | b<br>c | d)'],
    ['| a |\n', 'p(| a |)'],
    ['a\n---', 'p(a) rule'],
  ];
  for (const [text, wanted] of table) assert.equal(tree(text), wanted, text);
});

test('what is there already keeps its key while the text grows', () => {
  const text = '# A\n\nfirst\n\n- a\n- b\n\nlast';
  const whole = parse(text).map(({ key }) => key);
  for (let end = 1; end < text.length; end += 1) {
    const keys = parse(text.slice(0, end)).map(({ key }) => key);
    assert.deepEqual(keys.slice(0, -1), whole.slice(0, keys.length - 1), text.slice(0, end));
  }
});

/** All of a tree's text, without walking deeper than a page could. */
const depthOf = (blocks) => {
  const inside = (block) => [...(block.blocks ?? []), ...(block.items ?? []).flat()];
  return blocks.length === 0 ? 0 : 1 + Math.max(...blocks.map((block) => depthOf(inside(block))));
};

test('hostile text is neither slow nor deep', () => {
  const many = (text, length = MAX_LENGTH) => text.repeat(Math.ceil(length / text.length)).slice(0, length);
  const texts = [
    many('*'), many('_a'), many('**a '), many('*a_'), many('a**'), many('`'), many('` ``'), many('['), many('[a]('), many('[a](x'), many('![['), many('<'), many('<a'),
    many('>'), many('> '), many('- '), many('1. '), many('\n'), `- a${many('\n')}`, `- a${many('\n')}  b`, many('- a\n\n\n'), many('|'), many('|a'), `|a|b|\n|-|-|\n${many('|a|b|\n')}`,
    many('#'), many('# #'), many('# a\n'), `\`\`\`${many(' ')}\``, many('```\n'), `https://a${many(')')}`, many('https://'), many('(https://a.b '), many('\\'), many(' '), `a${many(' ')}b`,
    many('- - '), many('~~a'), many('\t'), many('h'), many('- a\n  - b\n    - c\n'), `# a ${many('#')}x`, many('[a](https://a.b)'), many('[](<'), Array.from({ length: 400 }, (_, n) => `${'  '.repeat(n)}- a`).join('\n'),
    many('\ud83d'), many('\u0000'),
  ];
  for (const text of texts) {
    const began = performance.now();
    const blocks = parse(text);
    const took = performance.now() - began;
    // A hang guard: on an idle machine each takes less than a tenth of it.
    assert.ok(took < 5000, `${JSON.stringify(text.slice(0, 12))} took ${took} ms`);
    assert.ok(depthOf(blocks) <= 10, JSON.stringify(text.slice(0, 12)));
  }
});

test('there is an end to how much is made of a text', () => {
  const count = (node) => (typeof node === 'string' ? 1 : 1 + (node.children ?? []).reduce((sum, child) => sum + count(child), 0));
  assert.ok(parse('*a* '.repeat(40_000)).flatMap(({ children }) => children).reduce((sum, node) => sum + count(node), 0) < 30_000);
  const blocks = parse('- a\n'.repeat(40_000));
  assert.ok(blocks[0].items.length < 10_000, String(blocks[0].items.length));
  assert.equal(blocks.at(-1).kind, 'plain');
  assert.equal(line('**a** **b**', 1), '<strong>a</strong> **b**');
});
