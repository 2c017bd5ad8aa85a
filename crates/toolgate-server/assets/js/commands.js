// Commands to copy. Pure; every part is quoted, since arguments come from models and tools.

/** A word for a POSIX shell: as it is if it is plain, else in single quotes. */
export function quote(word) {
  const plain = /^[\w@%+=:,./-]+$/;
  return plain.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`;
}

/** `curl` for a request; the body only if there is one. `token` adds the header with a variable to fill in. */
export function curl({ method = 'GET', url, headers = {}, body, token = false }) {
  const parts = ['curl', '-sS'];
  if (method !== 'GET' && !(method === 'POST' && body !== undefined)) parts.push('-X', method);
  parts.push(quote(url));
  if (token) parts.push('-H', '"Authorization: Bearer $TOOLGATE_TOKEN"');
  for (const [name, value] of Object.entries(headers)) parts.push('-H', quote(`${name}: ${value}`));
  if (body !== undefined) parts.push('-H', quote('content-type: application/json'), '-d', quote(body));
  return parts.join(' ');
}

/** The same call from the command line. */
export function toolgateCall(tool, value) {
  return `toolgate call ${quote(tool)} ${quote(JSON.stringify(value))}`;
}

/** Where a tool is called over HTTP. */
export function callUrl(origin, tool) {
  return `${origin}/api/tools/${encodeURIComponent(tool)}/call`;
}
