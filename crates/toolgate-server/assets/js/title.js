// The page's title: the view, and how many calls and questions wait for a person.

let name = 'Toolgate';
const counts = {};
let waiting = 0;

function show() {
  document.title = `${waiting > 0 ? `(${waiting}) ` : ''}${name}`;
}

export function setTitle(view) {
  name = `${view} · Toolgate`;
  show();
}

/** Sets how many of one kind wait. */
export function setWaiting(kind, count) {
  counts[kind] = count;
  const total = Object.values(counts).reduce((sum, each) => sum + each, 0);
  if (total === waiting) return;
  waiting = total;
  show();
}
