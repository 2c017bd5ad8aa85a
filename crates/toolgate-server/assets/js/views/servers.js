// The view of the MCP servers: a card for each, or the page of one server.

import { mountCards } from '../servers/list.js';
import { mountServer } from '../servers/page.js';

export function mount(root, params) {
  let shown = null;
  const leave = () => shown?.leave();
  const open = (next) => {
    // Another entry of the same server doesn't redraw the whole page.
    if (shown && shown.id === next.id && shown.update) return shown.update(next);
    const isFirst = shown === null;
    leave();
    root.replaceChildren();
    const made = next.id === null ? { leave: mountCards(root) } : mountServer(root, next);
    shown = { id: next.id, ...made };
    if (isFirst) return;
    // The link that had the focus was removed.
    document.getElementById('main').focus({ preventScroll: true });
    scrollTo(0, 0);
  };
  open(params);
  leave.update = open;
  return leave;
}
