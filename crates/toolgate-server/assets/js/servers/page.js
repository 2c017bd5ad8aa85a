// The page of one server: what it offers besides tools, and one resource or prompt of it.

import { events, get } from '../api.js';
import { debounce, empty, fill, h, setAttr, setText } from '../dom.js';
import { icon } from '../icons.js';
import { markCurrent, mountEntries } from './entries.js';
import { badgeOf } from './list.js';
import { findPrompt, findResource, labelOf, ofServer, serverHref } from './offer.js';
import { mountOverview } from './overview.js';
import { mountPrompt } from './prompt.js';
import { mountResource, mountTemplate } from './resource.js';

/** Draws the page and returns `{ leave, update(params) }`. */
export function mountServer(root, params) {
  const page = new ServerPage(params);
  fill(root, page.element);
  page.load();
  return { leave: () => page.leave(), update: (next) => page.show(next) };
}

class ServerPage {
  constructor(params) {
    Object.assign(this, { name: params.id, params, loaded: null, shown: null, leaveEntry: () => {}, gone: false });
    this.badge = h('span', { class: 'badge', 'data-testid': 'server-state' }, h('span', { class: 'dot' }), h('span'));
    this.side = h('nav', { class: 'server-side', 'aria-label': `Content of ${this.name}` });
    this.detail = h('section', { class: 'server-detail', tabindex: '-1', 'data-testid': 'server-detail' }, h('p', { class: 'muted' }, 'Loading…'));
    this.back = h('a', { class: 'tool-back server-back', href: serverHref(this.name) }, icon('left'), this.name);
    this.panes = h('div', { class: 'server-panes' }, this.side, h('div', { class: 'server-main' }, this.back, this.detail));
    this.element = h('div', { class: 'page server-page', 'data-testid': 'server-page' },
      h('header', { class: 'tool-head' },
        h('a', { class: 'tool-back', href: '#/servers' }, icon('left'), 'Servers'),
        h('div', { class: 'tool-headline' }, h('h1', null, this.name), this.badge)),
      this.panes);
    // A click on an entry reads it. An address that somebody else made up only shows it.
    this.side.addEventListener('click', (event) => {
      this.clicked = event.target.closest('a')?.getAttribute('href') ?? null;
    });
    const soon = debounce(() => this.load(), 300);
    this.stop = events(['server', 'tools'], {
      tools: soon, open: (again) => again && this.load(), lagged: soon,
      server: (server) => server.name === this.name && soon(),
    });
  }

  leave() {
    this.gone = true;
    this.stop();
    this.leaveEntry();
  }

  async load() {
    try {
      const [server, resources, prompts, tools] = await Promise.all([
        get(`/api/servers/${encodeURIComponent(this.name)}`), get('/api/resources'), get('/api/prompts'), get('/api/tools').catch(() => [])]);
      if (this.gone) return;
      this.take({ server, ...ofServer(this.name, { ...resources, ...prompts }), tools: tools.filter((tool) => tool.server === this.name) });
    } catch (error) {
      if (this.gone || this.loaded) return;
      const title = error.status === 404 ? `Server ‘${this.name}’ not found` : 'The server could not be loaded';
      fill(this.element, h('h1', { class: 'visually-hidden' }, this.name), empty(title, error.detail, h('p', null, h('a', { class: 'btn', href: '#/servers' }, 'All servers'))));
    }
  }

  take(loaded) {
    const { text, tone } = badgeOf(loaded.server);
    setAttr(this.badge, 'class', `badge tone-${tone}`);
    setText(this.badge.lastElementChild, text);
    // Only what is shown here counts, so that a form isn't redrawn while somebody fills it in.
    const { state, error, instructions } = loaded.server;
    const known = JSON.stringify([{ state, error, instructions }, loaded.resources, loaded.templates, loaded.prompts, loaded.tools]);
    if (known === this.known) return;
    this.known = known;
    this.loaded = loaded;
    mountEntries(this.side, this.name, loaded);
    this.show(this.params);
  }

  /** Shows the entry that the address names, or what the server says about itself. */
  show(params) {
    this.params = params;
    if (!this.loaded) return;
    const query = params.query ?? new URLSearchParams();
    const [kind] = ['resource', 'template', 'prompt'].filter((one) => query.get(one) !== null);
    const wanted = kind ? query.get(kind) : null;
    const entry = kind ? this.find(kind, wanted) : null;
    const shown = JSON.stringify([kind, wanted, entry, kind ? null : this.known]);
    const isNext = this.shown !== null;
    if (shown === this.shown) return;
    this.shown = shown;
    this.leaveEntry();
    this.detail.replaceChildren();
    this.panes.classList.toggle('has-entry', Boolean(kind));
    markCurrent(this.side, kind, entry?.uri ?? entry?.uriTemplate ?? entry?.name ?? wanted);
    const reads = this.clicked === location.hash;
    this.clicked = null;
    this.leaveEntry = this.mount(kind, wanted, entry, reads) ?? (() => {});
    setAttr(this.detail, 'aria-label', entry ? labelOf(entry) : kind ? wanted : 'Overview');
    // On a narrow screen the entry replaces the list, which had the focus and may have been scrolled down.
    if (!isNext || !matchMedia('(max-width: 1000px)').matches) return;
    this.detail.focus({ preventScroll: true });
    if (kind) scrollTo(0, 0);
  }

  find(kind, wanted) {
    const { resources, templates, prompts } = this.loaded;
    if (kind === 'resource') return findResource(this.name, resources, wanted);
    return kind === 'prompt' ? findPrompt(this.name, prompts, wanted) : templates.find((entry) => entry.uriTemplate === wanted) ?? null;
  }

  mount(kind, wanted, entry, reads) {
    const context = { server: this.name, reads };
    if (!kind) return mountOverview(this.detail, this.loaded);
    // A resource that isn't listed may exist: a template describes it, or another resource links to it.
    if (kind === 'resource') return mountResource(this.detail, entry ?? { uri: wanted }, context);
    if (entry) return (kind === 'prompt' ? mountPrompt : mountTemplate)(this.detail, entry, context);
    const title = kind === 'prompt' ? 'This prompt is not offered' : 'This template is not offered';
    this.detail.append(empty(title, `The server has no ${kind} ${wanted.slice(0, 200)} now; it may have been removed.`));
    return undefined;
  }
}
