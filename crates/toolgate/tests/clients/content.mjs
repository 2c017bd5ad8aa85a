// A client made of the TypeScript SDK. It starts `toolgate mcp` or asks a URL for resources, prompts, completion and updates, answers
// questions, and prints what it saw as JSON.
//   node content.mjs NODE_MODULES sdk|client|client-modern PROGRAM|URL [ARGUMENT]…
import { pathToFileURL } from "node:url";

const [modules, kind, command, ...args] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/${path}`).href);
const { Client, StdioClientTransport, StreamableHTTPClientTransport, ElicitRequestSchema, ResourceUpdatedNotificationSchema } = Object.assign(
  {},
  ...(kind === "sdk"
    ? [
        await load("sdk/dist/esm/client/index.js"),
        await load("sdk/dist/esm/client/stdio.js"),
        await load("sdk/dist/esm/client/streamableHttp.js"),
        await load("sdk/dist/esm/types.js"),
      ]
    : [await load("client/dist/index.mjs"), await load("client/dist/stdio.mjs")]),
);

const isModern = kind === "client-modern";
const capabilities = { elicitation: { form: {}, url: {} } };
const options = { capabilities, ...(isModern && { versionNegotiation: { mode: { pin: "2026-07-28" } } }) };
const client = new Client({ name: "test", version: "1" }, options);
const problems = [];
client.onerror = (error) => problems.push(String(error));
const updated = new Promise((resolve) => {
  const handler = (notification) => resolve(notification.params.uri);
  client.setNotificationHandler(kind === "sdk" ? ResourceUpdatedNotificationSchema : "notifications/resources/updated", handler);
});
const asked = [];
client.setRequestHandler(kind === "sdk" ? ElicitRequestSchema : "elicitation/create", ({ params }) => {
  asked.push(params.url ?? params.message);
  return params.url ? { action: "accept" } : { action: "accept", content: { who: "Ada", name: "Ada" } };
});
const transport = command.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, stderr: "inherit" });
await client.connect(transport);

const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
const { prompts } = await client.listPrompts();
const read = async (uri) => (await client.readResource({ uri })).contents[0];
const missing = await client.readResource({ uri: "nobody:1" }).then(() => "read", (error) => error.message);
const ask = (name, given) => client.getPrompt({ name, arguments: given });
const completed = await client.complete({
  ref: { type: "ref/prompt", name: "completable-prompt" },
  argument: { name: "name", value: "" },
  context: { arguments: { department: "Sales" } },
});
const listening = isModern && (await client.listen({ resourceSubscriptions: ["notes:1"] }));
if (!isModern) await client.subscribeResource({ uri: "notes:1" });
// The server is told a moment later; until then nobody is there for the update.
for (let tries = 0, sent = "false"; sent === "false" && tries < 1000; tries += 1) {
  sent = (await client.callTool({ name: "update", arguments: { uri: "notes:1" } })).content[0].text;
}
const answered = [];
for (const [name, given] of [["elicit", {}], ["elicit", { url: true }], ["trigger-elicitation-request", {}]]) {
  const { content } = await client.callTool({ name, arguments: given });
  answered.push(content.map((block) => block.text).join(" "));
}
const seen = {
  asked,
  answered,
  instructions: client.getInstructions(),
  resources: resources.map((resource) => resource.uri),
  templates: resourceTemplates.map((template) => template.uriTemplate),
  prompts: prompts.map((prompt) => prompt.name),
  note: (await read("notes:1")).text,
  document: (await read("demo://resource/static/document/features.md")).text.length > 100,
  blob: (await read("demo://resource/dynamic/blob/7")).blob.length > 10,
  missing,
  city: (await ask("args-prompt", { city: "Köln" })).messages[0].content.text,
  embedded: (await ask("resource-prompt", { resourceType: "Text", resourceId: "3" })).messages[1].content.resource.uri,
  completed: completed.completion.values,
  updated: await updated,
  problems,
};
console.log(JSON.stringify(seen));
if (listening) await listening.close();
else await client.unsubscribeResource({ uri: "notes:1" });
await transport.terminateSession?.();
await client.close();
