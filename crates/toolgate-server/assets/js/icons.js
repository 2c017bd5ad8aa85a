// Line icons, drawn on a grid of 16 by 16.

import { svg } from './dom.js';

const PATHS = {
  calls: 'M2.5 4h11M2.5 8h7M2.5 12h9',
  servers: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  tools: 'M10.2 2.6a3.4 3.4 0 0 0-3.9 4.6L2.4 11a1.8 1.8 0 0 0 2.6 2.6l3.8-3.9a3.4 3.4 0 0 0 4.6-3.9L11.3 7.8 9 7 8.2 4.7z',
  chat: 'M2.5 3.5h11v7.5H7.5L4.5 13.5V11h-2z',
  voice: 'M8 1.8a2 2 0 0 0-2 2v3.4a2 2 0 0 0 4 0V3.8a2 2 0 0 0-2-2M3.6 7.2a4.4 4.4 0 0 0 8.8 0M8 11.6v2.6M5.6 14.2h4.8',
  api: 'M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5',
  sun: 'M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9',
  moon: 'M13.3 9.7A5.6 5.6 0 0 1 6.3 2.7a5.6 5.6 0 1 0 7 7',
  system: 'M2 3h12v8H2zM6 13.5h4M8 11v2.5',
  keys: 'M1.5 4h13v8.5h-13zM4 6.7h.01M6.7 6.7h.01M9.3 6.7h.01M12 6.7h.01M5 9.8h6',
  exit: 'M6.5 2.5h-4v11h4M6 8h8M11 5l3 3-3 3',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.2v9.6L12.5 8z',
  search: 'M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.4 10.4l3.1 3.1',
  close: 'M4 4l8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  replay: 'M3 8a5 5 0 1 0 1.6-3.7M3 2.5v2.8h2.8',
  save: 'M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.5 13h11',
  check: 'M3 8.5l3.3 3.3L13 4.8',
  alert: 'M8 2.3 14.5 13.5h-13zM8 6.5v3.2M8 11.6h.01',
  shield: 'M8 1.8l5.2 2v3.9c0 3.2-2.2 5.4-5.2 6.5-3-1.1-5.2-3.3-5.2-6.5V3.8z',
  up: 'M8 13V3.5M4 7l4-4 4 4',
  down: 'M8 3v9.5M4 9l4 4 4-4',
  left: 'M9.5 3.5 5 8l4.5 4.5',
  right: 'M6.5 3.5 11 8l-4.5 4.5',
};

/** An icon, hidden from screen readers: the button around it has the name. */
export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 16 16', 'aria-hidden': 'true', focusable: 'false' }, svg('path', { d: PATHS[name] ?? '' }));
}
