// A virtual list: only the visible rows are in the document. All rows have the same height, set in the style sheet.

const SPARE = 6;

/**
 * `scroller` scrolls, and `canvas` inside it holds the rows. `create()` creates a row, `update(row, item, index)` shows an
 * item in it, `height()` is the height of a row in pixels, and `head()` that of the sticky header above the rows.
 */
export class VirtualList {
  constructor({ scroller, canvas, create, update, height, head }) {
    Object.assign(this, { scroller, canvas, create, update, height, head });
    this.rows = [];
    this.count = 0;
    this.item = () => null;
  }

  /** Draws `count` items; `item(index)` gives one. */
  draw(count, item) {
    this.count = count;
    this.item = item;
    const row = this.height();
    this.canvas.style.height = `${count * row}px`;
    const top = Math.max(0, this.scroller.scrollTop);
    const first = Math.max(0, Math.floor(top / row) - SPARE);
    const last = Math.min(count, Math.ceil((top + this.scroller.clientHeight) / row) + SPARE);
    this.fit(Math.max(0, last - first));
    this.rows.forEach((element, n) => {
      const transform = `translateY(${(first + n) * row}px)`;
      if (element.style.transform !== transform) element.style.transform = transform;
      this.update(element, item(first + n), first + n);
    });
  }

  fit(wanted) {
    while (this.rows.length < wanted) {
      const row = this.create();
      this.rows.push(row);
      this.canvas.append(row);
    }
    while (this.rows.length > wanted) this.rows.pop().remove();
  }

  /** Scrolls as little as needed to bring the item into view. */
  reveal(index) {
    const row = this.height();
    const view = this.scroller.clientHeight - this.head();
    const top = index * row;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + row > this.scroller.scrollTop + view) this.scroller.scrollTop = top + row - view;
  }

  /** How many whole rows are in view. */
  page() {
    return Math.max(1, Math.floor((this.scroller.clientHeight - this.head()) / this.height()) - 1);
  }
}
