// A client made of the second TypeScript SDK and its package for tasks, which knows both kinds of them. It runs tasks
// at a URL, answers the question of one, and prints what it saw as JSON.
//   node tasks_v2.mjs NODE_MODULES client|client-modern URL
import { pathToFileURL } from "node:url";

const [modules, kind, url] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/${path}`).href);
const { Client, StreamableHTTPClientTransport } = await load("client/dist/index.mjs");
const { createApplicationInputHandler, createTaskSessionFromClient } = await load("ext-tasks/dist/client/index.js");
const { CallToolResultV1Schema } = await load("ext-tasks/dist/core/v1/index.js");

const isModern = kind === "client-modern";
const clientInfo = { name: "test", version: "1" };
const clientCapabilities = { elicitation: { form: {} } };
const pinned = { versionNegotiation: { mode: { pin: "2026-07-28" } } };
const client = new Client(clientInfo, { capabilities: clientCapabilities, ...(isModern && pinned) });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);

// The SDK rejects results that are tasks, so requests about them bypass it, as the package wants it.
const waiting = new Map();
const receive = transport.onmessage;
transport.onmessage = (message, extra) => {
  const settle = message.method === undefined && waiting.get(message.id);
  if (!settle) return receive(message, extra);
  waiting.delete(message.id);
  settle("error" in message ? { kind: "error", error: message.error } : { kind: "result", result: message.result });
};
let sent = 0;
const rawDispatch = (request) => {
  const id = `task-request-${(sent += 1)}`;
  return new Promise((settle, fail) => {
    waiting.set(id, settle);
    transport.send({ jsonrpc: "2.0", id, ...request }).catch(fail);
  });
};

const asked = [];
const elicitation = ({ params }, { scope, delivery, taskId }) => {
  asked.push({ message: params.message, scope, delivery, taskId });
  return { action: "accept", content: { who: "Ada" } };
};
const refuse = () => {
  throw new Error("nobody asks for this");
};
const session = createTaskSessionFromClient(client, {
  endpointId: "toolgate",
  onInputRequest: createApplicationInputHandler({ elicitation, sampling: refuse, roots: refuse }),
  ...(isModern && { rawDispatch, v2RequestFraming: { protocolVersion: "2026-07-28", clientInfo, clientCapabilities } }),
});

const run = async (name, given) => {
  const execution = await session.callTool(name, given, { task: { preference: "prefer" } });
  const states = [];
  let fetched;
  const onEvent = ({ task }) => {
    if (task) states.push(task.status);
    // In 2025-11-25 the question comes only once the result is asked for, which this version of the package does
    // only at the end.
    if (!isModern && task?.status === "input_required") {
      fetched ??= client.request({ method: "tasks/result", params: { taskId: task.taskId } }, CallToolResultV1Schema);
    }
  };
  const { outcome } = await execution.settle({ onEvent });
  await fetched;
  return { kind: execution.kind, id: execution.handle?.taskId, states, outcome };
};
const slow = await run("progress", { steps: 3, every_ms: 400 });
const fast = await run("echo", { text: "at once" });
const question = await run("task", { text: "thanks", ask: 1, ms: 700 });
const running = await session.callTool("sleep", { ms: 20_000 }, { task: { preference: "prefer" } });
await session.cancelTask(running.handle.taskId);
const cancelled = await running.result();
const seen = {
  slow: slow.outcome.result?.content[0].text,
  states: slow.states,
  fast: fast.outcome.result?.content[0].text,
  kinds: [slow, fast, question].map((call) => call.kind),
  question: question.outcome.result?.structuredContent ?? String(question.outcome.error),
  asked: asked.map(({ message, scope, delivery }) => [message, scope, delivery]),
  related: asked.every(({ taskId }) => taskId === question.id),
  cancelled: cancelled.status,
  protocol: client.getNegotiatedProtocolVersion?.(),
};
await session.close();
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
