// The page's title: the view, and how many calls wait for approval.

let name = 'Toolgate';
let waiting = 0;

function show() {
  document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${name}`;
}

export function setTitle(view) {
  name = `${view} · Toolgate`;
  show();
}

export function setWaiting(count) {
  if (count === waiting) return;
  waiting = count;
  show();
}
