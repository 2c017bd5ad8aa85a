// The parts that all plots share: the figure with its legend, axes, a cursor for mouse, touch and keyboard, and the
// numbers as a table for people who can't see the drawing.

import { fill, h, perFrame, setAttr, setText, svg, uid } from '../dom.js';
import { nearest } from './scale.js';

const MARGIN = { top: 12, right: 10, bottom: 24 };
const CHARACTER = 6.6;

/**
 * A plot's figure. `series` is `[{ key, label, mark }]` for the legend; `paint(data, box)` draws and returns
 * `{ nodes, stops, read, table, summary }`: `stops` are the x positions the cursor can be at, `read(index)` is
 * `{ at, values, dots }` there (`read(null)` without a cursor), `table()` is `{ head, rows }`.
 */
export function plotFrame({ title, note, testid, series, height = 190, cursorLabel, paint }) {
  const parts = elements({ title, note, testid, series, cursorLabel });
  const state = { data: null, painted: null, cursor: null };

  const draw = () => {
    const width = Math.floor(parts.area.clientWidth);
    if (state.data === null || width < 40) return;
    const box = { width, height };
    state.painted = paint(state.data, box);
    setAttr(parts.drawing, 'viewBox', `0 0 ${width} ${height}`);
    setAttr(parts.drawing, 'height', height);
    fill(parts.content, state.painted.nodes);
    if (state.cursor !== null) state.cursor = Math.min(state.cursor, state.painted.stops.length - 1);
    read();
    if (parts.table.open) fillTable();
  };
  const redraw = perFrame(draw);

  const read = () => showReading(parts, state);
  const moveTo = (index) => {
    const last = (state.painted?.stops.length ?? 0) - 1;
    state.cursor = index === null || last < 0 ? null : Math.min(last, Math.max(0, index));
    read();
  };
  const fillTable = () => {
    if (state.painted) fill(parts.tableBody, tableOf(title, state.painted.table()));
  };

  follow(parts.area, state, moveTo);
  parts.table.addEventListener('toggle', () => parts.table.open && fillTable());
  const observer = new ResizeObserver(redraw);
  observer.observe(parts.area);
  return {
    element: parts.figure,
    update(data) {
      state.data = data;
      redraw();
    },
    destroy: () => observer.disconnect(),
  };
}

function elements({ title, note, testid, series, cursorLabel }) {
  const content = svg('g');
  const cursor = svg('g', { class: 'plot-cursor' });
  const drawing = svg('svg', { width: '100%', 'aria-hidden': 'true', focusable: 'false' }, content, cursor);
  const area = h('div', {
    class: 'plot-area', tabindex: '0', role: 'slider', 'aria-label': cursorLabel,
    'aria-valuemin': '0', 'aria-valuemax': '0', 'aria-valuenow': '0',
  }, drawing);
  const values = new Map(series.map(({ key }) => [key, h('b', { class: 'plot-value' })]));
  const legend = h('div', { class: 'plot-legend' }, series.map(({ key, label, mark }) =>
    h('span', { class: 'plot-key' }, h('i', { class: `plot-mark ${mark}`, 'aria-hidden': 'true' }), label, ' ', values.get(key))));
  const at = h('span', { class: 'plot-at' });
  const heading = uid('plot');
  const summary = h('p', { class: 'visually-hidden' });
  const tableBody = h('div', { class: 'plot-table-scroll', tabindex: '0', role: 'group', 'aria-label': `${title}, as a table` });
  const table = h('details', { class: 'plot-table' }, h('summary', null, 'As a table'), tableBody);
  const figure = h('figure', { class: 'plot', 'data-testid': testid, 'aria-labelledby': heading },
    h('figcaption', { class: 'plot-head' }, h('div', { class: 'plot-title' }, h('h2', { id: heading, class: 'plot-heading' }, title), note && h('span', { class: 'plot-note' }, note)),
      h('div', { class: 'plot-reading' }, at, legend)),
    summary, area, table);
  return { figure, area, drawing, content, cursor, values, at, summary, table, tableBody };
}

function showReading(parts, state) {
  if (!state.painted) return;
  const { stops, read, summary, box } = state.painted;
  const reading = read(state.cursor);
  setText(parts.at, reading.at);
  for (const [key, element] of parts.values) setText(element, reading.values[key] ?? '');
  setText(parts.summary, summary);
  const said = [...parts.values.keys()].map((key) => `${key} ${reading.values[key]}`).join(', ');
  setAttr(parts.area, 'aria-valuemax', Math.max(0, stops.length - 1));
  setAttr(parts.area, 'aria-valuenow', state.cursor ?? Math.max(0, stops.length - 1));
  setAttr(parts.area, 'aria-valuetext', `${reading.at}: ${said}`);
  if (state.cursor === null) return void parts.cursor.replaceChildren();
  const x = stops[state.cursor];
  fill(parts.cursor, svg('line', { x1: x, x2: x, y1: box.top, y2: box.bottom, class: 'plot-cursor-line' }),
    (reading.dots ?? []).map(({ y, mark }) => svg('circle', { cx: x, cy: y, r: 3.5, class: mark })));
}

/** The cursor follows the pointer while it is over the plot, and the arrow keys while the plot has the focus. */
function follow(area, state, moveTo) {
  const point = (event) => {
    if (!state.painted?.stops.length) return;
    moveTo(nearest(state.painted.stops, event.clientX - area.getBoundingClientRect().left));
  };
  area.addEventListener('pointermove', point);
  area.addEventListener('pointerdown', point);
  area.addEventListener('pointerleave', () => moveTo(null));
  area.addEventListener('blur', () => moveTo(null));
  area.addEventListener('keydown', (event) => {
    const last = (state.painted?.stops.length ?? 1) - 1;
    const now = state.cursor ?? last + 1;
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 10, PageDown: now + 10, Home: 0, End: last, Escape: null };
    if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moveTo(moves[event.key]);
  });
}

function tableOf(title, { head, rows }) {
  return h('table', { class: 'plot-numbers' },
    h('caption', { class: 'visually-hidden' }, title),
    h('thead', null, h('tr', null, head.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', null, rows.map(([first, ...rest]) => h('tr', null, h('th', { scope: 'row' }, first), rest.map((cell) => h('td', null, cell))))));
}

/** The rectangle of the plot itself, with room for the longest label at the left. */
export function innerBox({ width, height }, labels) {
  const longest = Math.max(...labels.map((label) => label.length), 2);
  return {
    left: Math.ceil(longest * CHARACTER) + 8,
    right: width - MARGIN.right,
    top: MARGIN.top,
    bottom: height - MARGIN.bottom,
  };
}

/** Gridlines with their labels at the left. */
export function yAxis(box, ticks, labels, scale) {
  return ticks.map((tick, index) => {
    const y = crisp(scale(tick));
    return [
      svg('line', { x1: box.left, x2: box.right, y1: y, y2: y, class: index === 0 ? 'plot-base' : 'plot-grid' }),
      svg('text', { x: box.left - 8, y, dy: '0.32em', class: 'plot-label plot-label-y' }, labels[index]),
    ];
  });
}

/** Ticks below the plot. A label that would leave the drawing is aligned inwards. */
export function xAxis(box, width, ticks) {
  return ticks.map(({ x, label }) => {
    const half = (label.length * CHARACTER) / 2;
    const anchor = x + half > width ? 'end' : x - half < 0 ? 'start' : 'middle';
    const at = anchor === 'end' ? Math.min(x, width) : x;
    return [
      svg('line', { x1: crisp(x), x2: crisp(x), y1: box.bottom, y2: box.bottom + 4, class: 'plot-base' }),
      svg('text', { x: at, y: box.bottom + 17, 'text-anchor': anchor, class: 'plot-label' }, label),
    ];
  });
}

function crisp(value) {
  return Math.round(value) + 0.5;
}
