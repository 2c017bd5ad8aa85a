// Tracks whether copied commands need a token. The page itself uses its session.

import { onStatus } from './strip.js';

let needed = false;
onStatus((status) => {
  needed = status.token_needed === true;
});

export function tokenNeeded() {
  return needed;
}
