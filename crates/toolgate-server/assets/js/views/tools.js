// The view of the tools: the list, or the page of one tool.

import { mountList } from '../tools/list.js';
import { mountTool } from '../tools/page.js';

export function mount(root, params) {
  let shown = null;
  let listAt = 0;
  const leave = () => shown?.leave();
  const open = (next) => {
    // Another tab of the same tool doesn't redraw the whole page.
    if (shown && shown.id === next.id && shown.update) return shown.update(next);
    if (shown?.id === null) listAt = scrollY;
    leave();
    const isFirst = shown === null;
    const made = next.id === null ? { leave: mountList(root, isFirst ? 0 : listAt) } : mountTool(root, next);
    shown = { id: next.id, ...made };
    if (isFirst) return;
    // The link that had the focus was removed.
    document.getElementById('main').focus({ preventScroll: true });
    if (next.id !== null) scrollTo(0, 0);
  };
  open(params);
  leave.update = open;
  return leave;
}
