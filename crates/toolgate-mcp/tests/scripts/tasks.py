"""A server made of the Python SDK, with the tasks extension of 2026-07-28.

python tasks.py stdio|http

Over HTTP it listens at a free port, and says which on stderr. Its tool `greet` becomes a task, asks
twice, and is over at the first poll after that.
"""

import secrets
import socket
import sys
from typing import Any

import anyio
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import MCPServer, require_client_extension
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParams
from pydantic import Field

EXTENSION = "io.modelcontextprotocol/tasks"
QUESTIONS = {"first": "Who?", "last": "And then?"}


class TaskParams(RequestParams):
    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    input_responses: dict[str, Any] = Field(alias="inputResponses")


def question(text: str) -> dict[str, Any]:
    properties = {"name": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["name"]}
    params = {"mode": "form", "message": text, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


class Tasks(Extension):
    identifier = EXTENSION

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}

    def methods(self) -> list[MethodBinding]:
        versions = frozenset({"2026-07-28"})
        return [
            MethodBinding("tasks/get", TaskParams, self.get, versions),
            MethodBinding("tasks/update", UpdateParams, self.update, versions),
            MethodBinding("tasks/cancel", TaskParams, self.cancel, versions),
        ]

    async def intercept_tool_call(self, params: Any, ctx: Any, call_next: Any) -> Any:
        require_client_extension(ctx, EXTENSION)
        task = {"id": secrets.token_hex(16), "answers": {}, "status": "working"}
        self.tasks[task["id"]] = task
        return {**self.state(task), "resultType": "task"}

    def find(self, ctx: Any, params: TaskParams) -> dict[str, Any]:
        require_client_extension(ctx, EXTENSION)
        is_http = sys.argv[1] == "http"
        if is_http and ctx.request.headers.get("mcp-name") != params.task_id:
            raise MCPError(code=-32020, message="Mcp-Name is not the task")
        if params.task_id not in self.tasks:
            raise MCPError(code=-32602, message="Task not found")
        return self.tasks[params.task_id]

    def state(self, task: dict[str, Any]) -> dict[str, Any]:
        now = "2026-01-01T00:00:00Z"
        return {
            "taskId": task["id"],
            "status": task["status"],
            "statusMessage": f"{len(task['answers'])} answers",
            "createdAt": now,
            "lastUpdatedAt": now,
            "ttlMs": 60000,
            "pollIntervalMs": 200,
        }

    async def get(self, ctx: Any, params: TaskParams) -> dict[str, Any]:
        task = self.find(ctx, params)
        missing = [key for key in QUESTIONS if key not in task["answers"]]
        if task["status"] == "cancelled":
            return self.state(task)
        if missing:
            task["status"] = "input_required"
            requests = {missing[0]: question(QUESTIONS[missing[0]])}
            return {**self.state(task), "inputRequests": requests}
        task["status"] = "completed"
        names = [answer["content"]["name"] for answer in task["answers"].values()]
        content = [{"type": "text", "text": f"Hello, {' and '.join(names)}!"}]
        return {**self.state(task), "result": {"content": content, "isError": False}}

    async def update(self, ctx: Any, params: UpdateParams) -> dict[str, Any]:
        task = self.find(ctx, params)
        task["answers"].update(params.input_responses)
        task["status"] = "working"
        return {}

    async def cancel(self, ctx: Any, params: TaskParams) -> dict[str, Any]:
        self.find(ctx, params)["status"] = "cancelled"
        print("CANCELLED", file=sys.stderr, flush=True)
        return {}


server = MCPServer("tasks", extensions=[Tasks()])


@server.tool()
def greet() -> str:
    return "never called"


async def serve_http() -> None:
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(f"PORT {listener.getsockname()[1]}", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    await uvicorn.Server(config).serve(sockets=[listener])


if sys.argv[1] == "stdio":
    server.run()
else:
    anyio.run(serve_http)
