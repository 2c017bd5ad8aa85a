// Parses Markdown as models write it into a tree of blocks: headings, lists, tables, quotes, code. Raw HTML stays text. It is
// a subset of CommonMark, without references and underlined headings (in an answer a line of dashes is a rule).

import { inline } from './inline.js';

/** Longer texts are shown as plain text. */
export const MAX_LENGTH = 100_000;
/** The limit of nodes in one text; the rest stays plain text. */
const MAX_NODES = 8000;
/** The limit for nested lists and quotes. */
const MAX_DEPTH = 8;
const MAX_COLUMNS = 40;

const BLANK = /^\s*$/;
const FENCE = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( {1,4})(?! )|( )(?= )|$)(.*)$/;
const CODE = /^(?: {4}|\t)\s*\S/;

/**
 * The blocks of a text. Each has a `kind`, and a `key` that changes only with the block, so that a growing text redraws only
 * what changed: `paragraph` and `heading` (with `level` as typed and `rank` in the outline) have `children`,
 * `code` has `text` and `language`, `list` has `ordered`, `start`, `tight` and `items` of blocks, `quote` has `blocks`,
 * `table` has `align`, `head` and `rows` of cells, `plain` has `text`, `rule` nothing.
 */
export function parse(text) {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const state = { budget: { nodes: MAX_NODES }, outline: [] };
  return blocksOf(lines, state, 0);
}

function blocksOf(lines, state, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (BLANK.test(lines[at])) {
      at += 1;
      continue;
    }
    const { block, next } = blockAt(lines, at, state, depth);
    if (depth === 0) block.key = `${block.rank ?? ''} ${lines.slice(at, next).join('\n')}`;
    state.budget.nodes -= 1;
    blocks.push(block);
    at = next;
  }
  return blocks;
}

function blockAt(lines, at, state, depth) {
  const line = lines[at];
  if (state.budget.nodes <= 0) return { block: { kind: 'plain', text: lines.slice(at).join('\n') }, next: lines.length };
  if (FENCE.test(line)) return fenced(lines, at);
  if (HEADING.test(line)) return heading(line, at, state);
  if (RULE.test(line)) return { block: { kind: 'rule' }, next: at + 1 };
  if (CODE.test(line)) return indented(lines, at);
  if (depth < MAX_DEPTH && QUOTE.test(line)) return quote(lines, at, state, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return list(lines, at, state, depth);
  return table(lines, at, state) ?? paragraph(lines, at, state);
}

function fenced(lines, at) {
  const [, indent, fence, info] = FENCE.exec(lines[at]);
  const isEnd = (line) => {
    const end = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line);
    return end !== null && end[1][0] === fence[0] && end[1].length >= fence.length;
  };
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).map((line) => dedent(line, indent.length)).join('\n');
  const language = /^[\w+#.-]{1,30}/.exec(info.trim())?.[0] ?? '';
  return { block: { kind: 'code', language, text }, next: Math.min(end + 1, lines.length) };
}

/** The rank is the level in the outline, so that an answer that begins with `###` doesn't skip levels. */
function heading(line, at, state) {
  const [, signs, rest = ''] = HEADING.exec(line);
  const { outline } = state;
  while (outline.length > 0 && outline.at(-1) >= signs.length) outline.pop();
  outline.push(signs.length);
  const children = inline(rest.trim().replace(/(^|\s)#+$/, ''), state.budget);
  return { block: { kind: 'heading', level: signs.length, rank: outline.length, children }, next: at + 1 };
}

function indented(lines, at) {
  let end = at;
  while (end < lines.length && (CODE.test(lines[end]) || BLANK.test(lines[end]))) end += 1;
  while (BLANK.test(lines[end - 1])) end -= 1;
  return { block: { kind: 'code', language: '', text: lines.slice(at, end).map((line) => dedent(line, 4)).join('\n') }, next: end };
}

function quote(lines, at, state, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ''));
  return { block: { kind: 'quote', blocks: blocksOf(inner, state, depth + 1) }, next: end };
}

/** An item continues with indented lines, and with a line of text directly below it. */
function list(lines, at, state, depth) {
  const first = ITEM.exec(lines[at]);
  const sort = first[2].at(-1);
  const items = [];
  let tight = true;
  let end = at;
  while (end < lines.length && state.budget.nodes > 0) {
    const found = ITEM.exec(lines[end]);
    if (!found || found[2].at(-1) !== sort || RULE.test(lines[end]) || found[1].length >= first[1].length + 4) break;
    const width = found[1].length + found[2].length + (found[3] ?? ' ').length;
    const next = itemEnd(lines, end + 1, found[1].length, width);
    const own = lines.slice(end, next);
    const inner = [lines[end].slice(width), ...own.slice(1).map((line) => dedent(line, width))];
    const follows = nextLine(lines, next);
    const isLast = follows >= lines.length || ITEM.exec(lines[follows])?.[2].at(-1) !== sort;
    if ((!isLast && follows > next) || hasGap(inner)) tight = false;
    items.push(item(inner, state, depth));
    end = isLast ? next : follows;
  }
  const start = /^\d+/.exec(first[2]);
  return { block: { kind: 'list', ordered: start !== null, start: start ? Number(start[0]) : 1, tight, items }, next: Math.max(end, at + 1) };
}

function item(lines, state, depth) {
  const task = /^\[([ xX])\] /.exec(lines[0]);
  if (task) lines[0] = `${task[1] === ' ' ? '☐' : '☑'} ${lines[0].slice(4)}`;
  return blocksOf(lines, state, depth + 1);
}

/** Where the item that began before `at` ends. Models indent its content by two or by the width of its marker. */
function itemEnd(lines, at, indent, width) {
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    if (BLANK.test(line)) {
      const follows = nextLine(lines, end);
      if (follows >= lines.length || spaces(lines[follows]) < Math.min(width, indent + 2)) break;
      end = follows - 1;
    } else if (spaces(line) < Math.min(width, indent + 2) && (BLANK.test(lines[end - 1]) || begins(lines[end]))) {
      break;
    }
  }
  return end;
}

/** True if there is a blank line between the blocks of an item. */
function hasGap(lines) {
  let fence = false;
  for (let at = 1; at < lines.length; at += 1) {
    if (FENCE.test(lines[at])) fence = !fence;
    const next = nextLine(lines, at);
    if (next === at) continue;
    if (!fence && !ITEM.test(lines[next] ?? '')) return true;
    at = next - 1;
  }
  return false;
}

function nextLine(lines, at) {
  let next = at;
  while (next < lines.length && BLANK.test(lines[next])) next += 1;
  return next;
}

const TAB = 4;

/** The indent of a line. */
function spaces(line) {
  let width = 0;
  for (let at = 0; line[at] === ' ' || line[at] === '\t'; at += 1) width += line[at] === '\t' ? TAB : 1;
  return width;
}

/** The line without this much of its indent, or without all of it if there is less. */
function dedent(line, width) {
  let at = 0;
  let left = width;
  for (; left > 0 && (line[at] === ' ' || line[at] === '\t'); at += 1) left -= line[at] === '\t' ? TAB : 1;
  return ' '.repeat(Math.max(0, -left)) + line.slice(at);
}

function table(lines, at, state) {
  const head = cells(lines[at]);
  const marks = at + 1 < lines.length && lines[at].includes('|') ? cells(lines[at + 1]) : [];
  const isMarked = marks.length > 0 && marks.length === head.length && head.length <= MAX_COLUMNS && marks.every((mark) => /^:?-+:?$/.test(mark));
  if (!isMarked || !lines[at + 1].includes('-')) return null;
  const align = marks.map((mark) => (mark.endsWith(':') ? (mark.startsWith(':') ? 'center' : 'right') : null));
  const row = (line) => {
    const given = cells(line);
    return head.map((_, column) => {
      state.budget.nodes -= 1;
      return inline(given[column] ?? '', state.budget);
    });
  };
  const block = { kind: 'table', align, head: row(lines[at]), rows: [] };
  let end = at + 2;
  for (; end < lines.length && lines[end].includes('|') && !begins(lines[end]) && state.budget.nodes > 0; end += 1) block.rows.push(row(lines[end]));
  return { block, next: end };
}

/** `| a | b |` → `['a', 'b']`; an escaped bar is text. */
function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/(^|[^\\])\|$/, '$1');
  const all = [];
  let cell = '';
  for (let at = 0; at < inner.length; at += 1) {
    if (inner[at] === '\\' && inner[at + 1] === '|') {
      cell += '|';
      at += 1;
    } else if (inner[at] === '|') {
      all.push(cell.trim());
      cell = '';
    } else {
      cell += inner[at];
    }
  }
  all.push(cell.trim());
  return all;
}

function paragraph(lines, at, state) {
  let end = at + 1;
  while (end < lines.length && !BLANK.test(lines[end]) && !begins(lines[end])) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim()).join('\n');
  return { block: { kind: 'paragraph', children: inline(text, state.budget) }, next: end };
}

/** True if another block begins at this line even without a blank line before it. */
function begins(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}
