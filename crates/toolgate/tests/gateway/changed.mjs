// `node changed.mjs NODE_MODULES URL PICTURES FILE`: what is shown of a tool that isn't what was agreed to. FILE has the tools of
// the server, and is edited.

import { openBench } from './pages/bench.mjs';
import { changed } from './pages/servers.mjs';

const [modules, url, pictures, file] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures });
try {
  await bench.page.goto(url);
  await changed(bench, file);
} finally {
  await bench.close();
}
