"""A client made of FastMCP and its package for tasks, which knows those of 2026-07-28. It prints what it saw as JSON.

python fastmcp_client_tasks.py URL
"""

import json
import sys

import anyio
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp_tasks import call_tool_task


async def main(url: str) -> None:
    asked: list[str] = []

    async def answer(message: str, _type: object, _params: object, _context: object) -> ElicitResult:
        asked.append(message)
        return ElicitResult(action="accept", content={"who": "Ada"})

    async with Client(StreamableHttpTransport(url), mode="auto", elicitation_handler=answer) as client:
        # It waits for tasks by itself.
        slow = await client.call_tool("progress", {"steps": 3, "every_ms": 400})
        fast = await client.call_tool("echo", {"text": "at once"})
        question = await client.call_tool("task", {"text": "thanks", "ask": 1, "ms": 700})
        # Or it gives back the task.
        running = await call_tool_task(client, "sleep", {"ms": 20_000})
        states = [(await running.status()).status]
        await running.cancel()
        states.append((await running.wait()).status)
        seen = {
            "slow": slow.content[0].text,
            "fast": fast.content[0].text,
            "question": question.structured_content,
            "asked": asked,
            "states": states,
            "protocol": client.protocol_version,
        }
    print(json.dumps(seen))


anyio.run(main, sys.argv[1])
