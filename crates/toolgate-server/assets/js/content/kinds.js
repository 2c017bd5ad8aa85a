// Decides how the content of a resource is shown. Pure functions; every text is untrusted.

/** Pictures that browsers draw without running anything. */
export const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp']);
export const SOUND = /^audio\/[a-z0-9.+-]+$/;
const MARKDOWN = new Set(['text/markdown', 'text/x-markdown']);
const MAX_JSON = 2_000_000;
/** Longer data is offered as a download even if it may be text. */
const MAX_DECODED = 1_000_000;

/** "text/markdown" for "Text/Markdown; charset=utf-8"; an empty text for anything that isn't a media type. */
export function essence(mimeType) {
  return typeof mimeType === 'string' ? mimeType.split(';')[0].trim().toLowerCase() : '';
}

export function isBase64(data) {
  return typeof data === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(data);
}

/** The number of bytes of a resource's content. */
export function sizeOf({ text, blob }) {
  if (typeof text === 'string') return new TextEncoder().encode(text).length;
  return typeof blob === 'string' ? Math.floor((blob.replace(/=+$/, '').length * 3) / 4) : 0;
}

/** The bytes of a resource's content, or null if its data is not base64. */
export function bytesOf({ text, blob }) {
  if (typeof text === 'string') return new TextEncoder().encode(text);
  if (!isBase64(blob)) return null;
  try {
    return Uint8Array.from(atob(blob), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}

/**
 * How to show one item of a result's `contents`: `{ kind, text?, value? }`, where `kind` is 'picture', 'sound',
 * 'markdown', 'json', 'text', 'file' or 'nothing'.
 */
export function shownAs(item) {
  const type = essence(item.mimeType);
  if (typeof item.text === 'string') return shownText(item.text, type, item.uri);
  if (typeof item.blob !== 'string') return { kind: 'nothing' };
  if (!isBase64(item.blob)) return { kind: 'file' };
  if (PICTURES.has(type)) return { kind: 'picture' };
  if (SOUND.test(type)) return { kind: 'sound' };
  const text = isText(type) && item.blob.length < MAX_DECODED ? decoded(item) : null;
  return text === null ? { kind: 'file' } : shownText(text, type, item.uri);
}

function isText(type) {
  return type.startsWith('text/') || isJson(type);
}

function isJson(type) {
  return type === 'application/json' || /^[a-z]+\/[a-z0-9.+-]*\+json$/.test(type);
}

function shownText(text, type, uri) {
  if (MARKDOWN.has(type) || (type === '' && /\.(md|markdown)$/i.test(String(uri ?? '')))) return { kind: 'markdown', text };
  const mayBeJson = isJson(type) || ((type === '' || type === 'text/plain') && /^\s*[[{]/.test(text));
  if (mayBeJson && text.length < MAX_JSON) {
    try {
      return { kind: 'json', text, value: JSON.parse(text) };
    } catch {
      // It isn't JSON after all.
    }
  }
  return { kind: 'text', text };
}

function decoded(item) {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytesOf(item));
  } catch {
    return null;
  }
}

const ENDINGS = { 'text/markdown': 'md', 'application/json': 'json', 'text/plain': 'txt', 'text/html': 'html', 'image/svg+xml': 'svg', 'image/jpeg': 'jpg', 'application/pdf': 'pdf' };

/** A file name for a download: the last part of the URI, without anything that means something to a file system. */
export function fileName(item) {
  const path = String(item.uri ?? '').replace(/[?#].*$/s, '').replace(/\/+$/, '');
  let name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf(':')) + 1);
  try {
    name = decodeURIComponent(name);
  } catch {
    // A name with a lone percent sign stays as it is.
  }
  name = name.replace(/[^\p{L}\p{N}._ -]+/gu, '_').slice(-80).replace(/^[._ ]+/, '') || 'resource';
  if (/\.[\p{L}\p{N}]{1,8}$/u.test(name)) return name;
  const type = essence(item.mimeType);
  const ending = ENDINGS[type] ?? (PICTURES.has(type) || SOUND.test(type) ? type.split('/')[1].replace(/[^a-z0-9]/g, '') : '');
  return ending ? `${name}.${ending}` : name;
}
