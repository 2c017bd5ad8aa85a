// The live list of calls.

import { h, fill, throttle, perFrame, setText, setAttr } from '../dom.js';
import { plural, count } from '../format.js';
import { icon } from '../icons.js';
import { CallStore } from '../store.js';
import { VirtualList } from '../virtual.js';
import { createRow, headRow, updateRow } from './call-row.js';
import { callKeys } from './call-keys.js';
import { watchTasks } from './call-task.js';
import { drawer } from './drawer.js';
import { filterOf, hashFor, toolbar } from './call-filter.js';
import { emptyList, endOfList } from './call-empty.js';

/** Minimum time between announcements of failures to screen readers. */
const ANNOUNCE_INTERVAL = 20_000;

/** Minimum time between redraws, so that scrolling stays smooth in a burst. */
const REDRAW_INTERVAL = 80;

/** Outlives the view, so that the calls are shown at once when the user returns to it. */
const store = new CallStore((finished) => view?.changed(finished));
let view = null;
let started = false;

export function mount(root, params) {
  view = new CallsView(root);
  view.open(params);
  if (!started) {
    started = true;
    store.useFilter(filterOf(params.query));
    store.start();
  }
  const mounted = view;
  const unmount = () => {
    mounted.close();
    if (view === mounted) view = null;
  };
  unmount.update = (next) => mounted.open(next);
  return unmount;
}

class CallsView {
  constructor(root) {
    this.paused = null;
    this.active = null;
    this.opened = null;
    this.unseen = 0;
    this.failed = [];
    this.redraw = perFrame(() => this.draw());
    this.redrawSoon = throttle(this.redraw, REDRAW_INTERVAL);
    this.build(root);
    this.offKeys = callKeys(this);
    this.timers = [
      setInterval(() => store.running.size > 0 && this.redraw(), 200),
      setInterval(() => this.announceFailures(), ANNOUNCE_INTERVAL),
    ];
    this.offTasks = watchTasks(() => store.running.size > 0, this.redraw);
    this.resize = new ResizeObserver(() => this.measure());
    this.resize.observe(this.list);
    this.draw();
  }

  build(root) {
    this.canvas = h('div', { class: 'calls-canvas', role: 'rowgroup' });
    this.list = h('div', { class: 'calls-list', role: 'grid', tabindex: '0', 'aria-label': 'Calls, newest first', 'data-testid': 'call-list' },
      h('div', { role: 'rowgroup' }, headRow()), this.canvas);
    this.more = h('button', { class: 'btn btn-small calls-more', type: 'button', hidden: true, 'data-testid': 'calls-new', onclick: () => this.toTop() });
    this.end = endOfList(store);
    this.blank = h('div', { class: 'calls-empty', hidden: true });
    this.live = h('div', { class: 'visually-hidden', role: 'status' });
    this.tools = toolbar({ onFilter: (filter) => this.filterBy(filter), onPause: () => this.togglePause() });
    this.drawer = drawer({ onClose: () => this.closeDrawer(), onStep: (by) => this.step(by), store });
    this.split = h('div', { class: 'calls-split' }, h('div', { class: 'calls-side' }, this.list, this.blank, this.more, this.end.element), this.drawer.element);
    root.append(h('h1', { class: 'visually-hidden' }, 'Calls'), this.tools.element, this.split, this.live);
    this.virtual = new VirtualList({
      scroller: this.list, canvas: this.canvas, create: createRow, height: () => this.row, head: () => this.head,
      update: (row, record, index) => updateRow(row, record, index, record.call.id === this.active),
    });
    this.list.addEventListener('scroll', () => this.scrolled(), { passive: true });
    this.list.addEventListener('click', (event) => {
      const row = event.target.closest('[data-id]');
      if (row) this.select(row.dataset.id, { open: true });
    });
    this.measure();
  }

  close() {
    this.offKeys();
    this.offTasks();
    this.resize.disconnect();
    this.drawer.end();
    this.timers.forEach(clearInterval);
  }

  /** Called when the URL changes to another call or another filter. */
  open({ id, query }) {
    const filter = filterOf(query);
    this.tools.show(filter);
    if (started && Object.keys(filter).some((name) => filter[name] !== store.filter[name])) store.setFilter(filter);
    this.opened = id;
    if (id) {
      this.active = id;
      this.drawer.open(id);
    } else {
      this.drawer.close();
    }
    this.split.classList.toggle('has-drawer', Boolean(id));
    this.redraw();
  }

  filterBy(filter) {
    history.replaceState(null, '', hashFor(this.opened, filter));
    this.list.scrollTop = 0;
    this.unseen = 0;
    this.known = undefined;
    if (this.paused) this.togglePause();
    store.setFilter(filter);
  }

  measure() {
    const style = getComputedStyle(this.list);
    this.row = parseFloat(style.getPropertyValue('--row')) || 36;
    this.head = parseFloat(style.getPropertyValue('--head')) || 0;
    this.redraw();
  }

  /** Called when the store changes; `finished` is a call that has just ended. */
  changed(finished) {
    if (finished?.success === false) this.failed.push(finished.tool);
    this.redrawSoon();
  }

  records() {
    return this.paused ?? store.shown();
  }

  draw() {
    const records = this.records();
    const total = records.length;
    this.keepScrollPosition(records);
    this.shown = records;
    this.virtual.draw(total, (index) => records[total - 1 - index]);
    setAttr(this.list, 'aria-rowcount', store.page.complete ? total + 1 : -1);
    const row = this.active && this.canvas.querySelector(`[data-id="${CSS.escape(this.active)}"]`);
    setAttr(this.list, 'aria-activedescendant', row?.id);
    this.drawStatus(total);
    if (!this.paused) this.loadOlder(total);
  }

  /** New calls appear at the top. If the list is scrolled down, it keeps its position and shows how many are new. */
  keepScrollPosition(records) {
    const newest = records[records.length - 1];
    if (this.known !== undefined && newest && newest !== this.known && this.list.scrollTop > this.row / 2) {
      let added = 0;
      while (added < records.length && records[records.length - 1 - added] !== this.known) added += 1;
      if (added < records.length) {
        this.list.scrollTop += added * this.row;
        this.unseen += added;
      }
    }
    this.known = newest;
  }

  drawStatus(total) {
    const waiting = this.paused ? store.shown().length - total : 0;
    setText(this.tools.count, total > 0 ? `${count(total)}${store.page.complete ? '' : '+'} ${total === 1 ? 'call' : 'calls'}` : '');
    this.tools.setPaused(this.paused !== null, waiting);
    this.tools.addCallers(store.callers);
    if (this.list.scrollTop <= this.row / 2) this.unseen = 0;
    this.more.hidden = this.unseen === 0;
    if (this.unseen > 0) fill(this.more, icon('up'), `${count(this.unseen)} new`);
    const empty = total === 0 && store.page.loaded && !store.page.loading;
    if (empty && this.blank.hidden) fill(this.blank, emptyList(store, () => this.tools.clear()));
    this.blank.hidden = !empty;
    this.end.show(total);
  }

  loadOlder(total) {
    const bottom = this.list.scrollTop + this.list.clientHeight;
    if (store.page.loaded && !store.page.error && bottom > (total - 40) * this.row) store.older();
  }

  scrolled() {
    this.redraw();
  }

  toTop() {
    this.list.scrollTop = 0;
    this.redraw();
    this.list.focus();
  }

  togglePause() {
    this.paused = this.paused ? null : [...store.shown()];
    this.redraw();
  }

  /** Moves the selection by `by` rows. An open drawer follows. */
  step(by) {
    const total = this.shown.length;
    if (total === 0) return;
    const at = this.shown.findIndex((record) => record.call.id === this.active);
    const index = at < 0 ? 0 : Math.min(total - 1, Math.max(0, total - 1 - at + by));
    this.virtual.reveal(index);
    this.select(this.shown[total - 1 - index].call.id, { open: this.opened !== null, replace: true });
  }

  select(id, { open = false, replace = false } = {}) {
    this.active = id;
    this.redraw();
    if (!open || this.opened === id) return;
    const hash = hashFor(id, store.filter);
    if (replace && this.opened) location.replace(hash);
    else location.hash = hash;
  }

  openActive() {
    if (this.active === null) this.step(0);
    if (this.active === null) return;
    this.drawer.focusNext();
    if (this.opened === this.active) this.drawer.focus();
    else this.select(this.active, { open: true });
  }

  closeDrawer() {
    if (!this.opened) return;
    location.hash = hashFor(null, store.filter);
    this.list.focus({ preventScroll: true });
  }

  announceFailures() {
    if (this.failed.length === 0) return;
    const names = [...new Set(this.failed)].slice(0, 3).join(', ');
    setText(this.live, `${plural(this.failed.length, 'call')} failed: ${names}`);
    this.failed = [];
  }
}
