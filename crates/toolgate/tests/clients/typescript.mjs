// A client made of the TypeScript SDK. It starts `toolgate mcp` or asks a URL, uses it, and prints what it saw as JSON.
//   node typescript.mjs NODE_MODULES sdk|client|client-modern PROGRAM|URL [ARGUMENT]…
import { pathToFileURL } from "node:url";

const [modules, kind, command, ...args] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/${path}`).href);
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = Object.assign(
  {},
  ...(kind === "sdk"
    ? [
        await load("sdk/dist/esm/client/index.js"),
        await load("sdk/dist/esm/client/stdio.js"),
        await load("sdk/dist/esm/client/streamableHttp.js"),
      ]
    : [await load("client/dist/index.mjs"), await load("client/dist/stdio.mjs")]),
);

const options = kind === "client-modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {};
const client = new Client({ name: "test", version: "1" }, options);
const problems = [];
client.onerror = (error) => problems.push(String(error));
const transport = command.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, stderr: "inherit" });
await client.connect(transport);

const { tools } = await client.listTools();
const echoed = await client.callTool({ name: "echo", arguments: { text: "häl\nlo", nested: { a: [1] } } });
const failed = await client.callTool({ name: "datetime", arguments: { action: "fly" } });
const unknown = await client.callTool({ name: "nope", arguments: {} }).then(
  (answer) => answer.content[0].text,
  (error) => error.message,
);
// The search engine of this test never answers.
const call = (options) => client.callTool({ name: "search", arguments: { query: "x" } }, ...options);
const stop = new AbortController();
setTimeout(() => stop.abort("enough"), 200);
const late = { signal: stop.signal };
const cancelled = await call(kind === "sdk" ? [undefined, late] : [late]).then(() => "answered", () => "cancelled");
const together = await Promise.all(
  Array.from({ length: 50 }, (_, n) => client.callTool({ name: "echo", arguments: { n } })),
);
// Of a server with a tool that reports how far it is.
const progress = [];
if (tools.some((tool) => tool.name === "steps")) {
  const options = { onprogress: (report) => progress.push(report.progress) };
  await client.callTool({ name: "steps", arguments: {} }, ...(kind === "sdk" ? [undefined, options] : [options]));
}
console.log(
  JSON.stringify({
    server: client.getServerVersion().name,
    tools: tools.map((tool) => tool.name),
    schema: tools.find((tool) => tool.name === "echo").inputSchema.type,
    echo: echoed.structuredContent,
    text: echoed.content[0].text,
    failed: [failed.isError, failed.content[0].text],
    unknown,
    cancelled,
    together: together.every((answer, n) => answer.structuredContent.echo.n === n),
    progress,
    problems,
  }),
);
await transport.terminateSession?.();
await client.close();
