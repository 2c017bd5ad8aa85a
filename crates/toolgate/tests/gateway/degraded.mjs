// `node degraded.mjs NODE_MODULES URL PICTURES FILE`: what is shown of a server that is connected and can't do its work. FILE is
// the configuration of the gateway, which is edited.

import { openBench } from './pages/bench.mjs';
import { degraded } from './pages/servers.mjs';

const [modules, url, pictures, file] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures });
try {
  await bench.page.goto(url);
  await degraded(bench, file);
} finally {
  await bench.close();
}
