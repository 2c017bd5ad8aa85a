// `node crowd.mjs NODE_MODULES URL PICTURES`: the list of calls of a gateway that has ten thousand of them.

import { openBench } from './pages/bench.mjs';
import { many } from './pages/edges.mjs';

const [modules, url, pictures] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures });
try {
  await many(bench);
} finally {
  await bench.close();
}
