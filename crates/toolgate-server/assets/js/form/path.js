// Paths of parameters as the gateway writes them. Pure functions.

/** The value at a path such as `o.inner.depth` or `a[1]`; undefined if there is none. */
export function at(value, path) {
  let current = value;
  for (const step of path.match(/[^.[\]]+/g) ?? []) {
    if (current === null || typeof current !== 'object' || !Object.hasOwn(current, step)) return undefined;
    current = current[step];
  }
  return current;
}
