"""A client made of FastMCP. It starts `toolgate mcp` or asks a URL for resources, prompts, completion and updates, answers questions,
and prints what it saw as JSON.

python fastmcp_client.py legacy|auto PROGRAM|URL [ARGUMENT]…
"""

import json
import sys
import warnings

import anyio
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp_types import ElicitRequestURLParams, PromptReference

# Subscribing one by one belongs to the older era only.
warnings.simplefilter("ignore")


class Updates(MessageHandler):
    """Takes notifications of the older era."""

    def __init__(self) -> None:
        super().__init__()
        self.uris: list[str] = []
        self.was_updated = anyio.Event()
        self.problems: list[str] = []

    def note(self, uri: object) -> None:
        self.uris.append(str(uri))
        self.was_updated.set()

    async def on_resource_updated(self, message: object) -> None:
        self.note(message.params.uri)

    async def on_exception(self, message: Exception) -> None:
        self.problems.append(repr(message))


async def main(mode: str, command: str, args: list[str]) -> None:
    updates = Updates()
    asked: list[str] = []
    answered: list[str] = []

    async def answer(message: str, _type: object, params: object, _context: object) -> ElicitResult:
        if isinstance(params, ElicitRequestURLParams):
            asked.append(params.url)
            return ElicitResult(action="accept")
        asked.append(message)
        return ElicitResult(action="accept", content={"who": "Ada", "name": "Ada"})

    if command.startswith("http://"):
        transport = StreamableHttpTransport(command)
    else:
        transport = StdioTransport(command=command, args=args)
    async with Client(transport, mode=mode, message_handler=updates, elicitation_handler=answer) as client:
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
        prompts = await client.list_prompts()

        async def read(uri: str) -> object:
            return (await client.read_resource(uri))[0]

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
            await listen_or_subscribe(client, updates, update)
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
            "completed": completed.values,
            "updated": updates.uris[0],
            "problems": updates.problems,
        }
    print(json.dumps(seen))


async def listen_or_subscribe(client: Client, updates: Updates, update: object) -> None:
    """FastMCP leaves subscriptions to the SDK's session below it."""
    if client.protocol_version != "2026-07-28":
        await client.session.subscribe_resource("notes:1")
        await update()
        await updates.was_updated.wait()
        await client.session.unsubscribe_resource("notes:1")
        return
    from mcp.client.subscriptions import listen

    async with listen(client.session, resource_subscriptions=["notes:1"]) as subscription:
        await update()
        async for event in subscription:
            updates.note(event.uri)
            break


anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
