"""A client made of the Python SDK. It starts `toolgate mcp` or asks a URL for resources, prompts, completion and updates, answers
questions, and prints what it saw as JSON.

python content.py legacy|auto PROGRAM|URL [ARGUMENT]…
"""

import json
import sys
import warnings

import anyio
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestURLParams, ElicitResult, PromptReference, ResourceUpdatedNotification

# Subscribing one by one belongs to the older era only.
warnings.simplefilter("ignore")


async def main(mode: str, command: str, args: list[str]) -> None:
    problems: list[str] = []
    asked: list[str] = []
    answered: list[str] = []
    was_updated = anyio.Event()
    updates: list[str] = []

    def note(uri: object) -> None:
        updates.append(str(uri))
        was_updated.set()

    async def received(message: object) -> None:
        if isinstance(message, Exception):
            problems.append(repr(message))
        inner = getattr(message, "root", message)
        if isinstance(inner, ResourceUpdatedNotification):
            note(inner.params.uri)

    async def answer(_context: object, params: object) -> ElicitResult:
        if isinstance(params, ElicitRequestURLParams):
            asked.append(params.url)
            return ElicitResult(action="accept")
        asked.append(params.message)
        return ElicitResult(action="accept", content={"who": "Ada", "name": "Ada"})

    if command.startswith("http://"):
        transport = streamable_http_client(command)
    else:
        transport = stdio_client(StdioServerParameters(command=command, args=args))
    async with Client(transport, mode=mode, message_handler=received, elicitation_callback=answer) as client:
        resources = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        prompts = (await client.list_prompts()).prompts

        async def read(uri: str) -> object:
            return (await client.read_resource(uri)).contents[0]

        try:
            missing = str(await read("nobody:1"))
        except Exception as error:
            missing = str(error)
        city = await client.get_prompt("args-prompt", {"city": "Köln"})
        embedded = await client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "3"})
        completed = await client.complete(
            PromptReference(type="ref/prompt", name="completable-prompt"),
            {"name": "name", "value": ""},
            {"department": "Sales"},
        )

        async def update() -> None:
            # The server is told a moment later; until then nobody is there for the update.
            for _ in range(1000):
                sent = await client.call_tool("update", {"uri": "notes:1"})
                if sent.content[0].text != "false":
                    return

        with anyio.fail_after(60):
            if client.protocol_version == "2026-07-28":
                async with client.listen(resource_subscriptions=["notes:1"]) as subscription:
                    await update()
                    async for event in subscription:
                        note(event.uri)
                        break
            else:
                await client.subscribe_resource("notes:1")
                await update()
                await was_updated.wait()
                await client.unsubscribe_resource("notes:1")
        for name, given in [("elicit", {}), ("elicit", {"url": True}), ("trigger-elicitation-request", {})]:
            result = await client.call_tool(name, given)
            answered.append(" ".join(block.text for block in result.content))
        seen = {
            "asked": asked,
            "answered": answered,
            "protocol": client.protocol_version,
            "instructions": client.instructions,
            "resources": [str(resource.uri) for resource in resources],
            "templates": [template.uri_template for template in templates],
            "prompts": [prompt.name for prompt in prompts],
            "note": (await read("notes:1")).text,
            "document": len((await read("demo://resource/static/document/features.md")).text) > 100,
            "blob": len((await read("demo://resource/dynamic/blob/7")).blob) > 10,
            "missing": missing,
            "city": city.messages[0].content.text,
            "embedded": str(embedded.messages[1].content.resource.uri),
            "completed": completed.completion.values,
            "updated": updates[0],
            "problems": problems,
        }
    print(json.dumps(seen))


anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
