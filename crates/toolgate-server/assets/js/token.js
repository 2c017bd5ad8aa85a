// Whether a command from a terminal needs a token; this page has its session instead.

import { onStatus } from './strip.js';

let needed = false;
onStatus((status) => {
  needed = status.token_needed === true;
});

export function tokenNeeded() {
  return needed;
}
