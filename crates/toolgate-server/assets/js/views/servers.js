import { empty } from '../dom.js';

export function mount(root) {
  root.append(empty('Soon', 'This view is being drawn.'));
  return () => {};
}
