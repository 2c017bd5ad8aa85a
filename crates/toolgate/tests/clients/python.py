"""A client made of the Python SDK. It starts `toolgate mcp` or asks a URL, uses it, and prints what it saw as JSON.

python python.py legacy|auto PROGRAM|URL [ARGUMENT]…
"""

import json
import sys

import anyio
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main(mode: str, command: str, args: list[str]) -> None:
    problems: list[str] = []

    async def on_message(message: object) -> None:
        if isinstance(message, Exception):
            problems.append(repr(message))

    if command.startswith("http://"):
        transport = streamable_http_client(command)
    else:
        transport = stdio_client(StdioServerParameters(command=command, args=args))
    async with Client(transport, mode=mode, message_handler=on_message) as client:
        tools = (await client.list_tools()).tools
        echoed = await client.call_tool("echo", {"text": "häl\nlo", "nested": {"a": [1]}})
        failed = await client.call_tool("datetime", {"action": "fly"})
        try:
            unknown = (await client.call_tool("nope", {})).content[0].text
        except Exception as error:
            unknown = str(error)
        # The search engine of this test never answers.
        with anyio.move_on_after(0.2) as patience:
            await client.call_tool("search", {"query": "x"})
        answers: dict[int, object] = {}

        async def call(n: int) -> None:
            answers[n] = (await client.call_tool("echo", {"n": n})).structured_content

        async with anyio.create_task_group() as group:
            for n in range(50):
                group.start_soon(call, n)
        # Of a server with a tool that reports how far it is.
        progress: list[float] = []

        async def reported(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)

        if any(tool.name == "steps" for tool in tools):
            await client.call_tool("steps", {}, progress_callback=reported)
        seen = {
            "protocol": client.protocol_version,
            "server": client.server_info.name if client.server_info else None,
            "tools": [tool.name for tool in tools],
            "schema": next(tool for tool in tools if tool.name == "echo").input_schema["type"],
            "echo": echoed.structured_content,
            "text": echoed.content[0].text,
            "failed": [failed.is_error, failed.content[0].text],
            "unknown": unknown,
            "cancelled": "cancelled" if patience.cancelled_caught else "answered",
            "together": all(answers[n]["echo"]["n"] == n for n in range(50)),
            "progress": progress,
            "problems": problems,
        }
    print(json.dumps(seen))


anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
