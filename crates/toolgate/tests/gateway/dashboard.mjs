// `node dashboard.mjs NODE_MODULES URL PICTURES PID`: uses every element of the dashboard of a gateway that was just
// started, and ends it. See browser.rs for its configuration.

import { openBench } from './pages/bench.mjs';
import { link } from './pages/link.mjs';
import { fresh, strip } from './pages/fresh.mjs';
import { servers } from './pages/servers.mjs';
import { calls } from './pages/calls.mjs';
import { drawer } from './pages/drawer.mjs';
import { approvals } from './pages/approvals.mjs';
import { questions } from './pages/questions.mjs';
import { form, tools } from './pages/tools.mjs';
import { api, chat, markdown } from './pages/chat.mjs';
import { lost, missing, phone, theme } from './pages/edges.mjs';

const [modules, url, pictures, pid] = process.argv.slice(2);
const bench = await openBench({ modules, url, pictures, signedIn: false });
try {
  for (const part of [link, fresh, strip, servers, calls, drawer, approvals, questions, tools, form, chat, markdown, api, theme, missing, phone]) await part(bench);
  await lost(bench, Number(pid));
} finally {
  await bench.close();
}
