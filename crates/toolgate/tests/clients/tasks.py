"""A client made of the Python SDK, with the tasks of 2026-07-28 as one of its extensions. It prints what it saw as JSON.

python tasks.py URL
"""

import json
import sys
from typing import Any, Literal

import anyio
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict

states: list[str] = []


class Task(Result):
    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"]


class Detailed(Result):
    model_config = ConfigDict(extra="allow")


class Named(RequestParams):
    model_config = ConfigDict(extra="allow")
    taskId: str


class GetTask(Request[Named, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: Named
    name_param = "taskId"


class Tasks(ClientExtension):
    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=finish)]


async def finish(task: Task, context: ClaimContext) -> CallToolResult:
    """Polls until the task has ended."""
    seed = task.model_dump(by_alias=True)
    while True:
        request = GetTask(params=Named(taskId=seed["taskId"]))
        seen = (await context.session.send_request(request, Detailed)).model_dump(by_alias=True)
        states.append(seen["status"])
        if seen["status"] in ("completed", "failed", "cancelled"):
            return CallToolResult.model_validate(seen["result"])
        await anyio.sleep(seed["pollIntervalMs"] / 10_000)


async def main(url: str) -> None:
    async with Client(streamable_http_client(url), mode="auto", extensions=[Tasks()]) as client:
        slow = await client.call_tool("progress", {"steps": 3, "every_ms": 400})
        fast = await client.call_tool("echo", {"text": "at once"})
        seen = {
            "slow": slow.content[0].text,
            "states": states,
            "fast": fast.content[0].text,
            "protocol": client.protocol_version,
        }
    print(json.dumps(seen))


anyio.run(main, sys.argv[1])
