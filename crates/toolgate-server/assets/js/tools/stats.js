// What the list and the page of a tool say about it. Pure.

/** Sums over the last `minutes` of a tool's series; a tool that was never called has zeros. */
export function recent(stats, stepSeconds, minutes = 30) {
  const steps = Math.max(1, Math.round((minutes * 60) / stepSeconds));
  const series = (stats?.series ?? []).slice(-steps);
  const calls = series.reduce((total, step) => total + step.calls, 0);
  const failures = series.reduce((total, step) => total + step.failures, 0);
  // A gateway that started a minute ago has no five minutes to divide by.
  const covered = Math.min(minutes, Math.max(1, (series.length * stepSeconds) / 60));
  return { calls, failures, share: calls > 0 ? failures / calls : null, perMinute: calls / covered };
}

/** One row of the list per tool, with its numbers if it has any. */
export function rowsOf(tools, stats) {
  const byName = new Map((stats?.tools ?? []).map((one) => [one.tool, one]));
  return tools.map((tool) => {
    const one = byName.get(tool.name) ?? null;
    const last = recent(one, stats?.step_s ?? 10);
    return { tool, stats: one, ...last, rate: recent(one, stats?.step_s ?? 10, 5).perMinute, p95: one?.p95_ms ?? null };
  });
}

/** True if every word is in the name, title, description or source. */
export function matches(tool, query) {
  const text = `${tool.name} ${tool.title ?? ''} ${tool.description ?? ''} ${tool.source ?? ''}`.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

const ORDERS = {
  name: (row) => row.tool.name.toLowerCase(),
  source: (row) => `${row.tool.source} ${row.tool.name}`.toLowerCase(),
  calls: (row) => row.calls,
  rate: (row) => row.rate,
  errors: (row) => row.share ?? -1,
  p95: (row) => row.p95 ?? -1,
};

/** Sorted by a column; words upwards, numbers downwards unless `reverse`. Names decide between equals. */
export function sorted(rows, column, reverse = false) {
  const key = ORDERS[column] ?? ORDERS.name;
  const compare = (a, b) => {
    const [first, second] = [key(a), key(b)];
    if (typeof first === 'string') return first < second ? -1 : first > second ? 1 : 0;
    return second - first;
  };
  const turn = reverse ? -1 : 1;
  return rows.toSorted((a, b) => turn * compare(a, b) || (a.tool.name < b.tool.name ? -1 : 1));
}

/** What an operator must know before running a tool: `{ text, tone, title }` each. */
export function badgesOf(tool) {
  const { read_only: readOnly, destructive } = tool.annotations ?? {};
  const badges = [];
  if (readOnly === true) badges.push({ text: 'read-only', tone: 'muted', title: 'Changes nothing, according to the tool' });
  if (destructive === true && readOnly !== true) badges.push({ text: 'destructive', tone: 'bad', title: 'May delete or overwrite, according to the tool' });
  if (tool.needs_approval) badges.push({ text: 'needs approval', tone: 'warn', title: 'A person must approve each call' });
  return badges;
}

/** Everything the tool says of itself, also what it does not say. */
export function traits(tool) {
  const words = [['read_only', 'read-only'], ['idempotent', 'idempotent'], ['destructive', 'destructive'], ['open_world', 'reaches outside']];
  return words.map(([key, label]) => [label, { true: 'yes', false: 'no' }[tool.annotations?.[key]] ?? 'not said']);
}

/** True if a person must confirm before the page runs it. */
export function asksFirst(tool) {
  return tool.needs_approval === true || (tool.annotations?.destructive === true && tool.annotations?.read_only !== true);
}

/** Kinds of failure, most frequent first, with their share of all calls. */
export function errorClasses(stats) {
  const total = Math.max(1, stats?.calls ?? 0);
  return Object.entries(stats?.errors ?? {})
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([kind, count]) => ({ kind, count, share: count / total }));
}

/** "zwave" for `mcp:zwave`, else the source as it is. */
export function sourceLabel(tool) {
  return tool.server ?? String(tool.source ?? '').replace(/^mcp:/, '');
}

export function toolHref(name, tab) {
  return `#/tools/${encodeURIComponent(name)}${tab ? `?tab=${tab}` : ''}`;
}
