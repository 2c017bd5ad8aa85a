// LangChain.js beside `models_slot`: NODE_MODULES_FOLDER rounds SECONDS URL | convert SECONDS. The same tools, the same double,
// the same two rounds: a call, its result, an answer. The last line of output is one JSON object.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, what, seconds, url] = process.argv.slice(2);
const require = createRequire(folder + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { tool } = await load("@langchain/core/tools");
const { HumanMessage } = await load("@langchain/core/messages");
const { ChatOllama } = await load("@langchain/ollama");
const { z } = await load("zod");

const jsonSchema = {
    type: "object", required: ["device", "on"], properties: {
        device: { type: "string", description: "The device as people call it" },
        on: { type: "boolean", description: "Whether it should be on" },
        level: { type: "integer", description: "How bright, in percent" },
        mode: { type: "string", enum: ["now", "later"] },
        rooms: { type: "array", items: { type: "string" } },
    },
};
const zodSchema = () => z.object({
    device: z.string().describe("The device as people call it"),
    on: z.boolean().describe("Whether it should be on"),
    level: z.number().int().describe("How bright, in percent").optional(),
    mode: z.enum(["now", "later"]).optional(),
    rooms: z.array(z.string()).optional(),
});
const make = (count, schema) => Array.from({ length: count }, (_, index) => tool(
    async ({ device }) => JSON.stringify({ device, state: "on" }),
    { name: `tool_${index}`, description: `Switches the devices of group ${index} and says what came of it`, schema: schema() },
));
const round = (value, digits) => Math.round(value * digits) / digits;

async function rounds() {
    const tools = make(30, () => jsonSchema);
    const byName = new Map(tools.map((one) => [one.name, one]));
    const model = new ChatOllama({ model: "fake", baseUrl: url, numCtx: 8192, maxRetries: 0 }).bindTools(tools);
    const turn = async () => {
        const messages = [new HumanMessage("Turn on Switch One")];
        const asked = await model.invoke(messages);
        messages.push(asked);
        for (const call of asked.tool_calls) messages.push(await byName.get(call.name).invoke(call));
        const answer = await model.invoke(messages);
        if (answer.content !== "Switch One is on." || messages.length !== 3) throw new Error(JSON.stringify(messages));
    };
    const until = async (limit) => {
        const start = performance.now();
        let count = 0;
        for (; performance.now() - start < limit * 1000; count += 2) await turn();
        return count;
    };
    await until(2);
    const cpu = process.cpuUsage(), start = performance.now();
    const count = await until(Number(seconds));
    const used = process.cpuUsage(cpu);
    const wall = (performance.now() - start) * 1000;
    const each = (whole) => round(whole / count, 10);
    return {
        wall_us: each(wall), cpu_us: each(used.user + used.system), user_us: each(used.user), system_us: each(used.system), rounds: count,
    };
}

// Binding, and the text that a request is made of: ours are ready to be sent too. `new` is a list that was never seen, `changed`
// one in which a tool was exchanged for another, `again` the same list with the next request.
function convert(schema) {
    const model = new ChatOllama({ model: "fake" });
    const times = { new: [], changed: [], again: [] };
    const start = performance.now();
    while (performance.now() - start < Number(seconds) * 1000 || times.new.length < 20) {
        const tools = make(1000, schema);
        for (const kind of Object.keys(times)) {
            if (kind === "changed") tools[500] = make(501, schema)[500];
            const before = performance.now();
            const bound = model.bindTools(tools);
            const text = JSON.stringify((bound.config ?? bound.kwargs).tools);
            times[kind].push(performance.now() - before);
            if (text.length < 100_000) throw new Error(text);
        }
    }
    const middle = (list) => round(list.sort((a, b) => a - b)[list.length >> 1], 1000);
    return { new_ms: middle(times.new), changed_ms: middle(times.changed), again_ms: middle(times.again) };
}

const result = what === "rounds" ? await rounds() : { json_schema: convert(() => structuredClone(jsonSchema)), zod: convert(zodSchema) };
console.log(JSON.stringify(result));
