// Computes what the list and the page of a tool show about it. Pure functions.

/** Sums over the last `minutes` of a tool's series; all zero if the tool was never called. */
export function recent(stats, stepSeconds, minutes = 30) {
  const steps = Math.max(1, Math.round((minutes * 60) / stepSeconds));
  const series = (stats?.series ?? []).slice(-steps);
  const calls = series.reduce((total, step) => total + step.calls, 0);
  const failures = series.reduce((total, step) => total + step.failures, 0);
  // The gateway may have started more recently than `minutes` ago.
  const covered = Math.min(minutes, Math.max(1, (series.length * stepSeconds) / 60));
  return { calls, failures, share: calls > 0 ? failures / calls : null, perMinute: calls / covered };
}

/** The rows of the list: each tool with its statistics, if there are any. */
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

/** Sorts by a column: text ascending, numbers descending, or the other way with `reverse`. Ties are sorted by name. */
export function sorted(rows, column, reverse = false) {
  const key = ORDERS[column] ?? ORDERS.name;
  const compare = (a, b) => {
    const [first, second] = [key(a), key(b)];
    if (typeof first === 'string') return first < second ? -1 : first > second ? 1 : 0;
    return second - first;
  };
  const direction = reverse ? -1 : 1;
  return rows.toSorted((a, b) => direction * compare(a, b) || (a.tool.name < b.tool.name ? -1 : 1));
}

/** Badges with what a person should know before running a tool, as `{ text, tone, title }`. */
export function badgesOf(tool) {
  const { read_only: readOnly, destructive } = tool.annotations ?? {};
  const badges = [];
  if (readOnly === true) badges.push({ text: 'read-only', tone: 'muted', title: 'Changes nothing, according to the tool' });
  if (destructive === true && readOnly !== true) badges.push({ text: 'destructive', tone: 'bad', title: 'May delete or overwrite, according to the tool' });
  if (tool.needs_approval) badges.push({ text: 'needs approval', tone: 'warn', title: 'A person must approve each call' });
  return badges;
}

/** The tool's annotations as pairs of label and value. */
export function traits(tool) {
  const words = [['read_only', 'read-only'], ['idempotent', 'idempotent'], ['destructive', 'destructive'], ['open_world', 'open world']];
  return words.map(([key, label]) => [label, { true: 'yes', false: 'no' }[tool.annotations?.[key]] ?? 'not stated']);
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
