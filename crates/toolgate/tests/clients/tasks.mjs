// A client made of the older TypeScript SDK, which knows the tasks of 2025-11-25. It runs tasks at a URL, answers the
// question of one, and prints what it saw as JSON.
//   node tasks.mjs NODE_MODULES URL
import { pathToFileURL } from "node:url";

const [modules, url] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}`).href);
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { CallToolResultSchema, ElicitRequestSchema } = await load("types.js");

const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
const asked = [];
client.setRequestHandler(ElicitRequestSchema, (request) => {
  asked.push(request.params._meta?.["io.modelcontextprotocol/related-task"]?.taskId);
  return { action: "accept", content: { who: "Ada" } };
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
await client.listTools();

// The list of tools says that each of them can be a task.
const run = async (name, given) => {
  const seen = { states: [] };
  for await (const message of client.experimental.tasks.callToolStream({ name, arguments: given }, CallToolResultSchema)) {
    if (message.type === "taskCreated") seen.id = message.task.taskId;
    if (message.type === "taskStatus") seen.states.push(message.task.status);
    if (message.type === "result") seen.result = message.result;
    if (message.type === "error") seen.error = message.error.message;
  }
  return seen;
};
const slow = await run("progress", { steps: 3, every_ms: 400 });
const question = await run("elicit", {});
const stream = client.experimental.tasks.callToolStream({ name: "sleep", arguments: { ms: 20000 } }, CallToolResultSchema);
const { value } = await stream.next();
const cancelled = await client.experimental.tasks.cancelTask(value.task.taskId);
const seen = {
  slow: slow.result?.content[0].text,
  states: slow.states,
  question: question.result?.content[0].text ?? question.error,
  related: asked.length === 1 && asked[0] === question.id,
  cancelled: cancelled.status,
};
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
