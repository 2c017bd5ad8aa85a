// Builds commands to copy. Every part is quoted, because arguments come from models and tools.

/** Quotes a word for a POSIX shell if necessary. */
export function quote(word) {
  const plain = /^[\w@%+=:,./-]+$/;
  return plain.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`;
}

/** The `curl` command for a request. `token` adds an authorization header that reads `$TOOLGATE_TOKEN`. */
export function curl({ method = 'GET', url, headers = {}, body, token = false }) {
  const parts = ['curl', '-sS'];
  if (method !== 'GET' && !(method === 'POST' && body !== undefined)) parts.push('-X', method);
  parts.push(quote(url));
  if (token) parts.push('-H', '"Authorization: Bearer $TOOLGATE_TOKEN"');
  for (const [name, value] of Object.entries(headers)) parts.push('-H', quote(`${name}: ${value}`));
  if (body !== undefined) parts.push('-H', quote('content-type: application/json'), '-d', quote(body));
  return parts.join(' ');
}

/** The `toolgate call` command for a call. */
export function toolgateCall(tool, value) {
  return `toolgate call ${quote(tool)} ${quote(JSON.stringify(value))}`;
}

/** The URL at which a tool is called over HTTP. */
export function callUrl(origin, tool) {
  return `${origin}/api/tools/${encodeURIComponent(tool)}/call`;
}
