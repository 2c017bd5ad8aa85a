// One request of LangChain.js to a model, for comparison: {provider, url, model, system, tools, messages} on stdin. Packages
// are found from the folder given as the first argument.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.argv[2] + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const { AIMessage, HumanMessage, SystemMessage, ToolMessage } = await load("@langchain/core/messages");
const { ChatAnthropic } = await load("@langchain/anthropic");
const { ChatOllama } = await load("@langchain/ollama");

const input = JSON.parse(await new Response(process.stdin).text());

// From our neutral history to theirs.
const messages = input.messages.flatMap((message) => {
    switch (message.role) {
        case "user":
            return [new HumanMessage(message.text)];
        case "assistant": {
            const text = message.parts.filter((part) => part.type === "text").map((part) => part.text);
            const calls = message.parts.filter((part) => part.type === "call");
            const tool_calls = calls.map((call) => ({ id: call.id, name: call.name, args: call.arguments.object }));
            return [new AIMessage({ content: text.join(""), tool_calls })];
        }
        case "tool":
            return message.results.map((result) => new ToolMessage({
                tool_call_id: result.id, name: result.name, content: result.text,
                status: result.is_error ? "error" : "success",
            }));
    }
});
if (input.system) messages.unshift(new SystemMessage(input.system));

const tools = input.tools.map(({ name, description, parameters }) => ({ name, description, schema: parameters }));
const common = { model: input.model, streaming: true };
const model = input.provider === "anthropic"
    ? new ChatAnthropic({ ...common, apiKey: "k", anthropicApiUrl: input.url, maxTokens: 100, maxRetries: 0 })
    : new ChatOllama({ ...common, baseUrl: input.url, numCtx: 4096, maxRetries: 0 });
await model.bindTools(tools).invoke(messages);
