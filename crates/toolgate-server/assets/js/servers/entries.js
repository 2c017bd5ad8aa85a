// The list of everything that a server offers besides tools, each entry with a link to its preview.

import { debounce, fill, h, setAttr, setText } from '../dom.js';
import { brief } from '../format.js';
import { visible } from '../text.js';
import { labelOf, matchesEntry, serverHref } from './offer.js';

const PORTION = 100;
/** Shorter lists need no search. */
const MIN_SEARCHED = 12;

const SECTIONS = [
  ['resource', 'resources', 'Resources', (entry) => entry.uri],
  ['template', 'templates', 'Resource templates', (entry) => entry.uriTemplate],
  ['prompt', 'prompts', 'Prompts', (entry) => entry.name],
];

/** Draws the list of `offer` into `root`. Keeps what was searched for. */
export function mountEntries(root, server, offer) {
  const before = root.querySelector('input')?.value ?? '';
  const lists = SECTIONS.filter(([, key]) => offer[key].length > 0).map((section) => sectionOf(server, section, offer[section[1]]));
  const total = SECTIONS.reduce((sum, [, key]) => sum + offer[key].length, 0);
  const none = h('p', { class: 'muted small', role: 'status' });
  const draw = (query) => {
    const found = lists.map((list) => list.draw(query)).reduce((sum, count) => sum + count, 0);
    setText(none, total === 0 ? 'No resources and no prompts.' : found === 0 ? 'Nothing matches.' : '');
    none.hidden = none.textContent === '';
    markCurrent(root, root.dataset.kind, root.dataset.wanted);
  };
  const search = h('input', { class: 'input', type: 'search', placeholder: 'Search', 'aria-label': 'Search resources and prompts', value: before, 'data-testid': 'entries-search' });
  search.addEventListener('input', debounce(() => draw(search.value.trim()), 100));
  fill(root, h('a', { class: 'entry entry-overview', href: serverHref(server), 'data-kind': '' }, h('span', { class: 'entry-name' }, 'Overview')),
    (total >= MIN_SEARCHED || before !== '') && search, lists.map((list) => list.element), none);
  draw(before.trim());
}

function sectionOf(server, [kind, , title, keyOf], entries) {
  const list = h('ul', { class: 'entries', 'data-testid': `entries-${kind}` });
  const count = h('span', { class: 'muted' });
  const more = h('button', { class: 'btn btn-small', type: 'button' }, 'Show more');
  const element = h('section', { class: 'entries-section' }, h('h2', null, title, ' ', count), list, more);
  let found = entries;
  const add = () => {
    const from = list.children.length;
    list.append(...found.slice(from, from + PORTION).map((entry) => h('li', null, entryLink(server, kind, String(keyOf(entry) ?? ''), entry))));
    more.hidden = list.children.length >= found.length;
  };
  more.addEventListener('click', add);
  const draw = (query) => {
    found = query === '' ? entries : entries.filter((entry) => matchesEntry(entry, query));
    list.replaceChildren();
    setText(count, query === '' ? `(${entries.length})` : `(${found.length} of ${entries.length})`);
    element.hidden = found.length === 0;
    add();
    return found.length;
  };
  return { element, draw };
}

function entryLink(server, kind, key, entry) {
  const label = labelOf(entry);
  const below = kind === 'prompt' ? text(entry.description) : key;
  return h('a', { class: 'entry', href: serverHref(server, { [kind]: key }), 'data-kind': kind, 'data-key': key, title: visible(text(entry.description)).slice(0, 300) || null },
    h('span', { class: 'entry-name truncate' }, visible(label)),
    below !== '' && below !== label && h('span', { class: `entry-below truncate muted ${kind === 'prompt' ? '' : 'mono'}` }, visible(below)));
}

function text(value) {
  return typeof value === 'string' ? value : value === undefined || value === null ? '' : brief(value);
}

/** Marks the entry that is shown. Without a kind that is the overview. */
export function markCurrent(root, kind, wanted) {
  root.dataset.kind = kind ?? '';
  root.dataset.wanted = wanted ?? '';
  for (const link of root.querySelectorAll('.entry')) {
    const isShown = link.dataset.kind === root.dataset.kind && (root.dataset.kind === '' || link.dataset.key === root.dataset.wanted);
    setAttr(link, 'aria-current', isShown ? 'true' : null);
  }
}
