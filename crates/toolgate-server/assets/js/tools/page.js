// The page of one tool: its statistics, a form to try it, its definition.

import { events, get } from '../api.js';
import { debounce, empty, fill, h, setAttr } from '../dom.js';
import { icon } from '../icons.js';
import { prose } from '../prose.js';
import { mountTry } from '../views/try.js';
import { mountDefinition } from './definition.js';
import { mountOverview } from './overview.js';
import { badgesOf, sourceLabel, toolHref } from './stats.js';

const TABS = [
  ['overview', 'Overview', mountOverview],
  ['try', 'Try it', mountTry],
  ['definition', 'Definition', mountDefinition],
];

/** Draws the page and returns `{ leave, update(params) }`. */
export function mountTool(root, params) {
  const state = { tool: null, params, gone: false, tab: null, leaveTab: () => {} };
  const element = h('div', { class: 'page tool-page', 'data-testid': 'tool-page' }, h('p', { class: 'muted' }, 'Loading…'));
  fill(root, element);

  const load = async () => {
    try {
      const tool = await get(`/api/tools/${encodeURIComponent(params.id)}`);
      if (!state.gone && JSON.stringify(tool) !== JSON.stringify(state.tool)) draw(element, state, tool);
    } catch (error) {
      if (!state.gone && state.tool === null) fill(element, missing(params.id, error));
    }
  };
  const stop = events(['tools'], { tools: debounce(load, 300) });
  load();
  return {
    leave() {
      state.gone = true;
      stop();
      state.leaveTab();
    },
    update(next) {
      state.params = next;
      if (state.tool) showTab(state);
    },
  };
}

function missing(name, error) {
  const title = error.status === 404 ? `Tool ‘${name}’ not found` : 'The tool could not be loaded';
  return [h('h1', { class: 'visually-hidden' }, name), empty(title, error.detail, h('p', null, h('a', { class: 'btn', href: '#/tools' }, 'All tools')))];
}

function draw(element, state, tool) {
  state.leaveTab();
  Object.assign(state, { tool, tab: null, leaveTab: () => {} });
  state.panel = h('div', { class: 'tool-panel', role: 'tabpanel', id: 'tool-panel', 'aria-labelledby': 'tool-tab-overview' });
  state.tabs = TABS.map(([key, label]) => h('a', {
    class: 'tab', role: 'tab', id: `tool-tab-${key}`, href: toolHref(tool.name, key === 'overview' ? '' : key), 'aria-controls': 'tool-panel',
    'data-testid': `tool-tab-${key}`, 'data-tab': key,
  }, label));
  const list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'About this tool' }, state.tabs);
  list.addEventListener('keydown', (event) => moveBetween(event, state.tabs));
  fill(element, head(tool), list, state.panel);
  showTab(state);
}

function head(tool) {
  return h('header', { class: 'tool-head' },
    h('a', { class: 'tool-back', href: '#/tools' }, icon('left'), 'Tools'),
    h('div', { class: 'tool-headline' },
      h('h1', { class: 'mono' }, tool.name),
      h('span', { class: 'badge badge-plain' }, sourceLabel(tool)),
      badgesOf(tool).map(({ text, tone, title }) => h('span', { class: `badge tone-${tone}`, title }, text))),
    tool.title && tool.title !== tool.name && h('p', { class: 'tool-title' }, tool.title),
    h('p', { class: 'tool-text' }, prose(tool.description || 'The tool has no description.')));
}

function showTab(state) {
  const wanted = state.params.query?.get('tab') ?? 'overview';
  const [key, , mountTab] = TABS.find(([name]) => name === wanted) ?? TABS[0];
  const from = state.params.query?.get('from') ?? null;
  if (state.tab === `${key} ${from}`) return;
  state.leaveTab();
  state.tab = `${key} ${from}`;
  for (const tab of state.tabs) {
    const isShown = tab.dataset.tab === key;
    setAttr(tab, 'aria-selected', String(isShown));
    setAttr(tab, 'tabindex', isShown ? '0' : '-1');
  }
  setAttr(state.panel, 'aria-labelledby', `tool-tab-${key}`);
  state.panel.replaceChildren();
  state.leaveTab = mountTab(state.panel, state.tool, { from });
}

function moveBetween(event, tabs) {
  const step = { ArrowLeft: -1, ArrowRight: 1, ' ': 0 }[event.key];
  const at = tabs.indexOf(document.activeElement);
  if (step === undefined || at < 0) return;
  event.preventDefault();
  if (step === 0) return tabs[at].click();
  tabs[(at + step + tabs.length) % tabs.length].focus();
}
