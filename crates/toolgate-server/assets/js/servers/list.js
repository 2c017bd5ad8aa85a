// All MCP servers, with a card for each.

import { h, fill, debounce, empty, patchList, setText, setAttr } from '../dom.js';
import { get, post, events } from '../api.js';
import { count, duration, plural, span } from '../format.js';
import { icon } from '../icons.js';
import { may } from '../rights.js';
import { command, toast, toastError } from '../toast.js';
import { toolHref } from '../tools/stats.js';
import { countsOf, serverHref } from './offer.js';

const STATES = {
  connected: ['Connected', 'ok'],
  starting: ['Starting', 'info'],
  restarting: ['Restarting', 'warn'],
  failed: ['Failed', 'bad'],
  stopped: ['Stopped', 'muted'],
  disabled: ['Disabled', 'muted'],
};
/** Descriptions of the generations of the protocol, by the `era` of a server. */
const ERAS = { legacy: 'With sessions, which begin with initialize', modern: 'Without sessions; every request is independent' };
/** A longer list of tools is folded. */
const MAX_UNFOLDED_TOOLS = 8;
/** Servers that need attention come first. */
const ORDER = ['failed', 'restarting', 'starting', 'connected', 'stopped', 'disabled'];

export function mountCards(root) {
  const servers = new Map();
  let tools = new Map();
  let counts = new Map();
  const list = h('div', { class: 'server-grid', 'data-testid': 'servers' });
  const note = h('div');
  const summary = h('span', { class: 'muted' });
  root.append(h('div', { class: 'page' }, h('div', { class: 'page-head' }, h('h1', null, 'Servers'), summary), note, list));
  const draw = () => {
    const all = [...servers.values()].sort((a, b) => ORDER.indexOf(a.server.state) - ORDER.indexOf(b.server.state));
    const up = all.filter(({ server }) => server.state === 'connected').length;
    setText(summary, all.length > 0 ? `${up} of ${all.length} connected` : '');
    patchList(list, all, ({ server }) => server.name, ({ server }) => card(server.name), (element, entry) => {
      update(element, entry);
      updateTools(element, tools.get(entry.server.name) ?? []);
      updateCounts(element, counts.get(entry.server.name) ?? { resources: 0, prompts: 0 });
    });
  };
  const take = (server) => servers.set(server.name, { server, at: performance.now() });
  const optional = (path, otherwise) => get(path).catch(() => otherwise);
  const load = () => Promise.all([get('/api/servers'), optional('/api/tools', []), optional('/api/resources', {}), optional('/api/prompts', {})]).then(([all, offered, resources, prompts]) => {
    servers.clear();
    counts = countsOf({ ...resources, ...prompts });
    tools = Map.groupBy(offered, ({ source }) => source.replace(/^mcp:/, ''));
    all.forEach(take);
    fill(note, all.length === 0 && nothing());
    draw();
  }, (error) => fill(note, empty('The servers could not be loaded', error.detail)));
  const stop = events(['server', 'tools'], { server: (server) => { take(server); draw(); }, tools: debounce(load, 300), open: (again) => again && load(), lagged: load });
  const timer = setInterval(draw, 1000);
  load();
  return () => {
    stop();
    clearInterval(timer);
  };
}

function nothing() {
  return empty('No MCP servers yet', 'The built-in tools work without servers. Add a server on this machine; the gateway uses it at once if it has a configuration file, or else after a restart:',
    command('toolgate add everything -- npx -y @modelcontextprotocol/server-everything'),
    command('toolgate add remote https://example.org/mcp'));
}

function card(name) {
  const facts = Object.keys(LABELS).map((id) => fact(id));
  return h('article', { class: 'card server', 'data-testid': 'server-card', 'data-server': name, 'aria-label': `Server ${name}` },
    h('div', { class: 'card-head' }, h('h2', { class: 'grow truncate', title: name }, h('a', { class: 'server-name', href: serverHref(name), 'data-testid': 'server-link' }, name)),
      h('span', { class: 'badge', 'data-part': 'state', 'data-testid': 'server-state' }, h('span', { class: 'dot' }), h('span'))),
    h('p', { class: 'server-error', 'data-part': 'error', hidden: true }),
    h('p', { class: 'server-error', 'data-part': 'health', 'data-testid': 'server-health', hidden: true }),
    h('div', { class: 'server-changes', 'data-part': 'changes', 'data-testid': 'server-changes', hidden: true }),
    h('dl', { class: 'server-facts' }, facts),
    h('details', { class: 'server-lines', 'data-part': 'offered', 'data-testid': 'server-offered', hidden: true },
      h('summary', null, 'Tools ', h('span', { class: 'muted' })), h('ul', { class: 'server-tools' })),
    lines('stderr', 'Last lines of stderr'), lines('polluted_lines', 'Stray output on stdout, which should only carry messages'), lines('refused', 'Rejected tools'),
    h('div', { class: 'server-foot' },
      h('span', { class: 'muted small grow', 'data-part': 'next' }),
      h('button', { class: 'btn btn-small', type: 'button', 'data-testid': 'reconnect', 'data-part': 'reconnect', 'aria-label': `Reconnect ${name}`, onclick: (event) => reconnect(name, event.currentTarget) },
        icon('replay'), 'Reconnect')));
}

const LABELS = { transport: 'Transport', protocol: 'Protocol', tools: 'Tools', resources: 'Resources', prompts: 'Prompts', connected: 'Connected in', restarts: 'Restarts', polluted: 'Stray output', sampling: 'Model tokens today' };

function fact(id) {
  return h('div', { class: 'fact', 'data-part': id }, h('dt', null, LABELS[id]), h('dd', { 'data-testid': `server-${id}` }));
}

function lines(id, title) {
  return h('details', { class: 'server-lines', 'data-part': id, 'data-testid': `server-${id}`, hidden: true },
    h('summary', null, h('span', null, title), ' ', h('span', { class: 'muted' })),
    h('pre', { class: 'code', tabindex: '0', 'aria-label': title }));
}

async function reconnect(name, button) {
  button.disabled = true;
  try {
    await post(`/api/servers/${encodeURIComponent(name)}/reconnect`);
    toast(`${name} was reconnected.`, 'ok');
  } catch (error) {
    toastError(error);
  } finally {
    button.disabled = false;
  }
}

async function trust(name, hash, button) {
  button.disabled = true;
  try {
    await post(`/api/servers/${encodeURIComponent(name)}/trust`, { hash });
    toast(`The current tools of ${name} were accepted.`, 'ok');
  } catch (error) {
    toastError(error);
  } finally {
    button.disabled = false;
  }
}

/** Lists tools that differ from what a person agreed to. Redrawn only when they change, so that a button keeps its focus. */
function updateChanges(part, { name, changes }) {
  const known = `${changes?.hash ?? ''} ${may('manage_servers')}`;
  if (part.dataset.known === known) return;
  part.dataset.known = known;
  part.hidden = !changes;
  if (!changes) return fill(part);
  const withheld = changes.tools.filter((change) => change.withheld).length;
  const title = withheld > 0 ? `${plural(withheld, 'tool')} withheld until you agree` : 'Tools changed since you agreed to them';
  fill(part, h('h3', null, title), changes.tools.map(change),
    may('manage_servers') && h('button', { class: 'btn btn-small', type: 'button', 'data-testid': 'server-trust', 'aria-label': `Accept the current tools of ${name}`, onclick: (event) => trust(name, changes.hash, event.currentTarget) },
      'Accept the current tools'));
}

function change({ tool, kind, withheld, differences, more }) {
  const side = (text) => (text === null || text === undefined ? h('span', { class: 'muted' }, '(none)') : h('span', { class: 'mono' }, text));
  return h('details', { class: 'server-lines', open: withheld },
    h('summary', null, h('span', { class: 'mono' }, tool), ' ', h('span', { class: 'muted' }, withheld ? `${kind}, withheld` : kind)),
    h('ul', { class: 'server-differences' },
      differences.map(({ path, before, after }) => h('li', null, h('span', { class: 'muted' }, `${path}: `), side(before), ' → ', side(after))),
      more > 0 && h('li', { class: 'muted' }, `and ${more} more`)));
}

function isDegraded(server) {
  return server.state === 'connected' && server.health?.state === 'degraded';
}

/** The label and colour of a server's state: `{ text, tone }`. */
export function badgeOf(server) {
  const [text, tone] = isDegraded(server) ? ['Degraded', 'warn'] : STATES[server.state] ?? [server.state, 'muted'];
  return { text, tone };
}

function update(element, { server, at }) {
  const part = (id) => element.querySelector(`[data-part="${id}"]`);
  const degraded = isDegraded(server);
  const { text: word, tone } = badgeOf(server);
  const badge = part('state');
  setAttr(badge, 'class', `badge tone-${tone}`);
  setAttr(badge, 'data-status', server.state);
  setText(badge.lastElementChild, word);
  setText(part('error'), server.error);
  part('error').hidden = !server.error;
  setText(part('health'), health(server));
  part('health').hidden = health(server) === '';
  const facts = {
    transport: server.pid ? `${server.transport}, pid ${server.pid}` : server.transport,
    protocol: server.protocol ? `MCP ${server.protocol}` : '–',
    tools: count(server.tools),
    connected: duration(server.connected_in_ms ?? NaN),
    restarts: count(server.restarts),
    polluted: server.polluted > 0 ? plural(server.polluted, 'line') : 'none',
    sampling: server.sampling ? `${count(server.sampling.tokens)} of ${count(server.sampling.tokens_per_day)}` : '',
  };
  for (const [id, value] of Object.entries(facts)) setText(part(id).lastElementChild, value);
  setAttr(part('protocol'), 'title', ERAS[server.era]);
  element.classList.toggle('is-failed', server.state === 'failed');
  element.classList.toggle('is-degraded', degraded);
  part('restarts').classList.toggle('tone-warn', server.restarts > 0);
  part('polluted').classList.toggle('tone-warn', server.polluted > 0);
  part('sampling').hidden = !server.sampling;
  setAttr(part('sampling'), 'title', server.sampling ? `Used by sampling: ${plural(server.sampling.requests, 'request')} answered, ${count(server.sampling.refused)} refused` : null);
  updateChanges(part('changes'), server);
  for (const id of ['stderr', 'polluted_lines', 'refused']) updateLines(part(id), server[id] ?? [], server);
  setText(part('next'), next(server, at));
  part('reconnect').hidden = server.state === 'disabled' || !may('manage_servers');
}

/** Most servers offer only tools, so the other counts are hidden if they are zero. */
function updateCounts(element, counts) {
  for (const [id, value] of Object.entries(counts)) {
    const fact = element.querySelector(`[data-part="${id}"]`);
    setText(fact.lastElementChild, count(value));
    fact.hidden = value === 0;
  }
}

/** Redrawn only when the names change, so that a link keeps its focus. */
function updateTools(element, tools) {
  const details = element.querySelector('[data-part="offered"]');
  const names = tools.map(({ name }) => name);
  const known = JSON.stringify(names);
  if (details.dataset.known === known) return;
  details.dataset.known = known;
  details.hidden = names.length === 0;
  details.open = names.length <= MAX_UNFOLDED_TOOLS;
  setText(details.querySelector('summary .muted'), `(${names.length})`);
  fill(details.lastElementChild, tools.map(({ name, description }) => h('li', null, h('a', { class: 'mono', href: toolHref(name), title: (description ?? '').slice(0, 300) }, name))));
}

/** Why a connected server can't do its work, or why its health is unknown. */
function health({ health }) {
  if (!health || health.state === 'healthy') return '';
  const what = health.state === 'degraded' ? "Connected, but it can't do its work" : 'Its health is unknown';
  return `${what}: ${health.problem ?? 'no reason was given'} (${health.tool})`;
}

/** The stderr of a failed server is unfolded, because it usually shows the reason. */
function updateLines(details, all, server) {
  details.hidden = all.length === 0;
  setText(details.querySelector('summary .muted'), `(${all.length})`);
  setText(details.lastElementChild, all.join('\n'));
  const failed = server.state === 'failed' && details.dataset.part === 'stderr';
  if (failed && details.dataset.opened !== 'yes') details.open = true;
  details.dataset.opened = failed ? 'yes' : 'no';
}

function next(server, at) {
  if (server.state === 'disabled') return 'Disabled in the configuration';
  if (server.next_try_ms === null || server.next_try_ms === undefined) return server.attempts > 1 ? plural(server.attempts, 'attempt') : '';
  const left = Math.ceil((server.next_try_ms - (performance.now() - at)) / 1000);
  return left > 0 ? `Attempt ${server.attempts + 1} in ${span(left)}` : 'Trying now';
}
