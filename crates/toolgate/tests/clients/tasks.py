"""A client made of the Python SDK, with the tasks of 2026-07-28 as one of its extensions. It answers the question of one, and prints
what it saw as JSON.

python tasks.py URL
"""

import json
import sys
from typing import Any, Literal

import anyio
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequest, ElicitResult, Request, RequestParams, Result
from pydantic import ConfigDict

states: list[str] = []
asked: list[str] = []


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


class Answers(Named):
    inputResponses: dict[str, Any]


class UpdateTask(Request[Answers, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    params: Answers
    name_param = "taskId"


class Tasks(ClientExtension):
    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=finish)]


async def finish(task: Task, context: ClaimContext) -> CallToolResult:
    """Polls until the task has ended. Answers what it asks meanwhile."""
    seed = task.model_dump(by_alias=True)
    while True:
        request = GetTask(params=Named(taskId=seed["taskId"]))
        seen = (await context.session.send_request(request, Detailed)).model_dump(by_alias=True)
        states.append(seen["status"])
        if seen["status"] in ("completed", "failed", "cancelled"):
            return CallToolResult.model_validate(seen["result"])
        if seen["status"] == "input_required":
            answers = {}
            for key, request in seen["inputRequests"].items():
                result = await answer(None, ElicitRequest.model_validate(request).params)
                answers[key] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
            params = Answers(taskId=seed["taskId"], inputResponses=answers)
            await context.session.send_request(UpdateTask(params=params), Result)
        await anyio.sleep(seed["pollIntervalMs"] / 10_000)


async def answer(_context: object, params: Any) -> ElicitResult:
    asked.append(params.message)
    return ElicitResult(action="accept", content={"who": "Ada"})


async def main(url: str) -> None:
    transport = streamable_http_client(url)
    async with Client(transport, mode="auto", extensions=[Tasks()], elicitation_callback=answer) as client:
        slow = await client.call_tool("progress", {"steps": 3, "every_ms": 400})
        slow_states = states.copy()
        fast = await client.call_tool("echo", {"text": "at once"})
        states.clear()
        question = await client.call_tool("task", {"text": "thanks", "ask": 1, "ms": 700})
        seen = {
            "slow": slow.content[0].text,
            "states": slow_states,
            "fast": fast.content[0].text,
            "question": question.structured_content,
            "question_states": states,
            "asked": asked,
            "protocol": client.protocol_version,
        }
    print(json.dumps(seen))


anyio.run(main, sys.argv[1])
