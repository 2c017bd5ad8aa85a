// Tools: the list, or the page of one.

import { mountList } from '../tools/list.js';
import { mountTool } from '../tools/page.js';

export function mount(root, params) {
  let shown = null;
  const leave = () => shown?.leave();
  const open = (next) => {
    // Another tab of the same tool does not draw everything again.
    if (shown && shown.id === next.id && shown.update) return shown.update(next);
    leave();
    const made = next.id === null ? { leave: mountList(root) } : mountTool(root, next);
    shown = { id: next.id, ...made };
  };
  open(params);
  leave.update = open;
  return leave;
}
