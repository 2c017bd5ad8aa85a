// Parses Markdown inside a line into nodes: code, emphasis and links. Every step is linear in the length of the text, because
// a model may write text that is made to be slow.

/** Emphasis nested deeper than this stays plain text. */
const MAX_DEPTH = 12;
const MAX_ADDRESS_LENGTH = 2000;
/** The cost of a search for the end of a link, taken from the budget. */
const LOOK = 5;
const SCHEMES = new Set(['http:', 'https:', 'mailto:']);
const PUNCTUATION = /[!-/:-@[-`{-~\p{P}\p{S}]/u;
const LETTER = /[\p{L}\p{N}]/u;
/** A URL in the text ends at white space, a quote or a bracket. */
const BARE = /https?:\/\/[^\s<>"'`\\^{}|]{1,2001}/y;

/** The URL if the page may link to it, else null: no scripts, no data, nothing relative to this page. */
export function safeAddress(text) {
  if (text.length > MAX_ADDRESS_LENGTH) return null;
  try {
    const url = new URL(text);
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * The nodes of a text: strings, and `{ tag, children }` with the tags `em`, `strong`, `del`, `code`, `br` and `a` (which has
 * an `href`). `budget.nodes` is how many may still be created; when it is used up, the rest becomes one string.
 */
export function inline(text, budget) {
  return new Scanner(text, budget).run(true);
}

class Scanner {
  constructor(text, budget) {
    this.text = text;
    this.budget = budget;
    this.fences = fencesOf(text);
    this.brackets = bracketsOf(text, this.fences);
  }

  /** From `from` to `to`; in a link there are no links. */
  run(links, from = 0, to = this.text.length) {
    const { text } = this;
    const state = { nodes: [], openers: [], plain: '', links };
    let at = from;
    while (at < to) {
      const before = at;
      if (this.budget.nodes > 0) at = this.special(state, at, to);
      if (at !== before) continue;
      state.plain += text[at];
      at += 1;
    }
    flush(state);
    return joined(state.nodes);
  }

  /** Consumes the element that begins at `at`, if it isn't text; returns where to continue. */
  special(state, at, to) {
    switch (this.text[at]) {
      case '\\': return this.escaped(state, at, to);
      case '\n': return this.add(state, { tag: 'br', children: [] }, at + 1);
      case '`': return this.code(state, at, to);
      case '*': case '_': case '~': return this.delimiter(state, at, to);
      case '!': return this.text[at + 1] === '[' ? this.link(state, at + 1, to, at) : at;
      case '[': return this.link(state, at, to, at);
      case '<': return this.pointed(state, at, to);
      case 'h': return this.bare(state, at, to);
      default: return at;
    }
  }

  add(state, node, next) {
    flush(state);
    state.nodes.push(node);
    this.budget.nodes -= 1;
    return next;
  }

  escaped(state, at, to) {
    const next = this.text[at + 1];
    if (at + 1 >= to || !/[!-/:-@[-`{-~]/.test(next)) return at;
    state.plain += next;
    return at + 2;
  }

  code(state, at, to) {
    const { length, close } = this.fences.get(at) ?? {};
    if (length === undefined) return at;
    if (close === undefined || close + length > to) {
      state.plain += this.text.slice(at, at + length);
      return at + length;
    }
    const inner = this.text.slice(at + length, close).replaceAll('\n', ' ');
    const trimmed = /^ .*[^ ].* $/.test(inner) || /^ [^ ] $/.test(inner) ? inner.slice(1, -1) : inner;
    return this.add(state, { tag: 'code', children: [trimmed] }, close + length);
  }

  /** A link, or an image as a link to it, because foreign images are never loaded. */
  link(state, at, to, from) {
    const close = this.brackets.get(at);
    if (!state.links || close === undefined || close >= to || this.text[close + 1] !== '(') return from;
    // Even a failed search costs budget, or a thousand unclosed links would each scan the whole rest.
    this.budget.nodes -= LOOK;
    const target = destination(this.text, close + 2, to);
    const href = target && safeAddress(target.address);
    if (!href) return from;
    const children = this.run(false, at + 1, close);
    return this.add(state, { tag: 'a', href, children: children.length > 0 ? children : [href] }, target.end);
  }

  /** `<https://…>` */
  pointed(state, at, to) {
    const end = this.text.slice(at + 1, Math.min(to, at + 1 + MAX_ADDRESS_LENGTH)).search(/[\s<>]/);
    if (!state.links || end < 0 || this.text[at + 1 + end] !== '>') return at;
    const address = this.text.slice(at + 1, at + 1 + end);
    const href = /^(https?|mailto):/i.test(address) ? safeAddress(address) : null;
    return href ? this.add(state, { tag: 'a', href, children: [address] }, at + end + 2) : at;
  }

  /** `https://…` in running text, without the punctuation after it. */
  bare(state, at, to) {
    if (!state.links || (at > 0 && LETTER.test(this.text[at - 1]))) return at;
    BARE.lastIndex = at;
    const found = BARE.exec(this.text);
    if (!found) return at;
    this.budget.nodes -= 1;
    const address = withoutTail(found[0].slice(0, to - at));
    const href = address.length > 8 ? safeAddress(address) : null;
    return href ? this.add(state, { tag: 'a', href, children: [address] }, at + address.length) : at;
  }

  delimiter(state, at, to) {
    const sign = this.text[at];
    let end = at;
    while (end < to && this.text[end] === sign) end += 1;
    let left = end - at;
    const { opens, closes } = flanking(this.text, at, end, sign);
    if (sign === '~' && left !== 2) return this.literal(state, at, end);
    if (closes) left = this.closeWith(state, sign, left);
    if (left > 0 && opens && state.openers.length < MAX_DEPTH) {
      flush(state);
      state.openers.push({ sign, left, place: state.nodes.length });
      state.nodes.push(sign.repeat(left));
      left = 0;
    }
    state.plain += sign.repeat(left);
    return end;
  }

  literal(state, at, end) {
    state.plain += this.text.slice(at, end);
    return end;
  }

  /** Wraps the nodes after the nearest opener of the same sign; returns how many signs are left over. */
  closeWith(state, sign, given) {
    let left = given;
    const { openers, nodes } = state;
    while (left > 0 && this.budget.nodes > 0 && openers.some((each) => each.sign === sign)) {
      // Signs that were opened in between and not closed are text.
      while (openers.at(-1).sign !== sign) openers.pop();
      const opener = openers.at(-1);
      const used = Math.min(opener.left, left, 2);
      if (sign === '~' && used < 2) return left;
      flush(state);
      const children = joined(nodes.splice(opener.place + 1));
      opener.left -= used;
      left -= used;
      nodes[opener.place] = sign.repeat(opener.left);
      nodes.push({ tag: sign === '~' ? 'del' : used === 2 ? 'strong' : 'em', children });
      this.budget.nodes -= 1;
      if (opener.left === 0) openers.pop();
    }
    return left;
  }
}

function flush(state) {
  if (state.plain !== '') state.nodes.push(state.plain);
  state.plain = '';
}

/** Joins neighbouring strings. */
function joined(nodes) {
  const all = [];
  for (const node of nodes) {
    if (node === '') continue;
    if (typeof node === 'string' && typeof all.at(-1) === 'string') all[all.length - 1] += node;
    else all.push(node);
  }
  return all;
}

/** Every run of backticks: its length and where the next of the same length begins, if there is one. */
function fencesOf(text) {
  const runs = new Map();
  const last = new Map();
  for (const { index, 0: { length } } of text.matchAll(/`+/g)) {
    const run = { length, close: undefined };
    const before = last.get(length);
    if (before) before.close = index;
    last.set(length, run);
    runs.set(index, run);
  }
  return runs;
}

/** Where each `[` is closed. Brackets in code or after a backslash don't count. */
function bracketsOf(text, fences) {
  const closes = new Map();
  const open = [];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '\\') at += 1;
    else if (sign === '`') at = afterCode(fences.get(at), at) - 1;
    else if (sign === '[') open.push(at);
    else if (sign === ']' && open.length > 0) closes.set(open.pop(), at);
  }
  return closes;
}

function afterCode(run, at) {
  if (!run) return at + 1;
  return run.close === undefined ? at + run.length : run.close + run.length;
}

/** Parses `address "title")` at `from`: `{ address, end }`, or null. */
function destination(text, from, to) {
  const rest = text.slice(from, Math.min(to, from + MAX_ADDRESS_LENGTH));
  const pointed = /^\s*<([^<>\n]*)>/.exec(rest);
  const found = pointed ?? (rest.startsWith('<') ? null : bareDestination(rest));
  if (!found) return null;
  const tail = /^(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?\s*\)/.exec(rest.slice(found[0].length));
  return tail ? { address: found[1], end: from + found[0].length + tail[0].length } : null;
}

/** The address up to white space or the bracket that closes the link; paired brackets belong to the address. */
function bareDestination(rest) {
  const lead = /^\s*/.exec(rest)[0].length;
  let depth = 0;
  let end = lead;
  for (; end < rest.length && !/\s/.test(rest[end]); end += 1) {
    if (rest[end] === '(') depth += 1;
    if (rest[end] === ')') {
      if (depth === 0) break;
      depth -= 1;
    }
  }
  return end === lead ? null : [rest.slice(0, end), rest.slice(lead, end)];
}

/** Whether a run of signs may open or close emphasis, judged by the characters on both sides. */
function flanking(text, start, end, sign) {
  const before = start > 0 ? text[start - 1] : ' ';
  const after = end < text.length ? text[end] : ' ';
  const left = !isSpace(after) && (!PUNCTUATION.test(after) || isSpace(before) || PUNCTUATION.test(before));
  const right = !isSpace(before) && (!PUNCTUATION.test(before) || isSpace(after) || PUNCTUATION.test(after));
  if (sign !== '_') return { opens: left, closes: right };
  // The underscores of snake_case names are not emphasis.
  return { opens: left && (!right || PUNCTUATION.test(before)), closes: right && (!left || PUNCTUATION.test(after)) };
}

function isSpace(sign) {
  return /\s/.test(sign);
}

/** Strips what belongs to the sentence: a full stop, or a bracket that was opened before the URL. */
function withoutTail(address) {
  const loose = address.includes('(') ? /[.,;:!?*_~\]]/ : /[.,;:!?*_~\])]/;
  let end = address.length;
  while (end > 0 && loose.test(address[end - 1])) end -= 1;
  return address.slice(0, end);
}
