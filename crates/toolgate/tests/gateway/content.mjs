// `node content.mjs NODE_MODULES URL PICTURES`: the page of a server that offers resources and prompts. See browser.rs for
// the configuration of the gateway: the servers `memos` and `other` are both content-server.mjs.

import { openBench } from './pages/bench.mjs';
import { messages, resources } from './pages/content.mjs';

const [modules, url, pictures] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures });
try {
  await bench.page.goto(url);
  for (const part of [resources, messages]) await part(bench);
} finally {
  await bench.close();
}
