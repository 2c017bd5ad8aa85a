// `node tasks.mjs NODE_MODULES URL PICTURES`: calls that go on as tasks, of a server and of an MCP client. See browser.rs for the
// configuration.

import { openBench } from './pages/bench.mjs';
import { tasks } from './pages/tasks.mjs';

const [modules, url, pictures] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures });
try {
  await bench.page.goto(url);
  await tasks(bench);
} finally {
  await bench.close();
}
