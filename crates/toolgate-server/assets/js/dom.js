// Creates and updates elements without a framework. Text from tools always becomes text nodes, never markup.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * An element: `h('button', { class: 'btn', onclick: save, 'data-testid': 'save' }, 'Save')`.
 * Properties: `on…` functions are listeners, `dataset` and `style` are objects, `true` is an empty attribute,
 * `false`, `null` and `undefined` are left out. Children: nodes, strings, numbers and arrays; `false`, `true`, `null`
 * and `undefined` are skipped.
 */
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

/** Like `h`, for SVG elements. */
export function svg(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  append(element, children);
  return element;
}

function setProp(element, name, value) {
  if (value === false || value === null || value === undefined) return;
  if (name.startsWith('on') && typeof value === 'function') {
    element.addEventListener(name.slice(2).toLowerCase(), value);
  } else if (name === 'dataset') {
    Object.assign(element.dataset, value);
  } else if (name === 'style') {
    for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
  } else if (name === 'value' || name === 'checked' || name === 'selected' || name === 'indeterminate') {
    element[name] = value;
  } else {
    element.setAttribute(name === 'className' ? 'class' : name, value === true ? '' : String(value));
  }
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces the children of `element`. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Sets the text only if it differs, so that the browser doesn't lay out again and screen readers don't repeat it. */
export function setText(element, text) {
  const next = String(text ?? '');
  if (element.textContent !== next) element.textContent = next;
}

/** Sets or removes an attribute only if it differs. */
export function setAttr(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, String(value));
  }
}

const keyed = new WeakMap();

/**
 * Makes the children of `parent` match `items`, in their order. Elements whose key stays are kept, and with them the focus.
 * `create(item)` creates an element; `update(element, item)` updates it and is called for new ones too.
 */
export function patchList(parent, items, key, create, update) {
  const before = keyed.get(parent) ?? new Map();
  const after = new Map();
  let next = parent.firstChild;
  for (const item of items) {
    const id = key(item);
    const element = before.get(id) ?? create(item);
    after.set(id, element);
    update?.(element, item);
    if (element === next) next = next.nextSibling;
    else parent.insertBefore(element, next);
  }
  for (const [id, element] of before) if (!after.has(id)) element.remove();
  keyed.set(parent, after);
}

/** Runs `work` once in the next animation frame, however often it is called, even in a hidden tab. */
export function perFrame(work) {
  let requested = false;
  const run = () => {
    if (!requested) return;
    requested = false;
    work();
  };
  return () => {
    if (requested) return;
    requested = true;
    if (document.hidden) setTimeout(run, 250);
    else requestAnimationFrame(run);
  };
}

/** Runs `work` at once, and then at most every `interval` ms however often it is called. */
export function throttle(work, interval) {
  let last = -Infinity;
  let timer = 0;
  const run = () => {
    timer = 0;
    last = performance.now();
    work();
  };
  return () => {
    if (timer) return;
    const wait = interval - (performance.now() - last);
    if (wait <= 0) run();
    else timer = setTimeout(run, wait);
  };
}

/** Calls `work` once `delay` ms have passed without another call. */
export function debounce(work, delay) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), delay);
  };
}

/** The message for an empty view: what is missing and what to do. */
export function empty(title, text, ...more) {
  return h('div', { class: 'empty', 'data-testid': 'empty' }, h('h2', null, title), text && h('p', null, text), more);
}

let ids = 0;

/** A fresh id, for `aria-labelledby` and `for`. */
export function uid(prefix = 'u') {
  ids += 1;
  return `${prefix}-${ids}`;
}
