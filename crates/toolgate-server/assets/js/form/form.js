// A form for a schema: its fields, their combined value, and the messages beside them.

import { field } from './fields.js';
import { at } from './path.js';
import { placeViolations } from './schema.js';

/**
 * Returns `{ element, read(), show(violations, all), problems(), focusFirst() }`. `onChange` is called after every input.
 * Messages about empty fields that were never touched are hidden until `all` is true, so that a new form isn't full of
 * errors.
 */
export function createForm(model, value, onChange) {
  const places = new Map();
  const touched = new Set();
  const broken = new Map();
  const notify = (path) => {
    touched.add(path);
    onChange();
  };
  const form = {
    register: (path, place) => places.set(path, place),
    /** Redraws everything inside `path`. */
    forget(path) {
      const isInside = (other) => other !== path && other.startsWith(path);
      for (const known of [places, broken, touched]) {
        for (const other of known.keys()) if (isInside(other)) known.delete(other);
      }
    },
    changed: (path) => onChange(path),
    left: notify,
    local: (path, message) => (message ? broken.set(path, message) : broken.delete(path)),
  };
  const root = field(model, '', value, form);
  let first = null;

  return {
    element: root.element,
    read: () => root.read() ?? {},
    /** Invalid JSON text by path; such a form cannot be sent. */
    broken: () => broken,
    show(violations, all) {
      const local = [...broken].map(([parameter, message]) => ({ parameter, message }));
      const placed = placeViolations([...local, ...violations], new Set(places.keys()));
      const given = root.read();
      first = null;
      for (const [path, place] of places) {
        const messages = placed.get(path) ?? [];
        const isShown = all || touched.has(path) || at(given, path) !== undefined;
        place.show(isShown ? messages : []);
        if (isShown && messages.length && !first) first = place;
      }
      return placed.get('') ?? [];
    },
    focusFirst: () => first?.focus(),
  };
}
