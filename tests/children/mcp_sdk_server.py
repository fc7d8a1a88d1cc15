"""An MCP server made with the SDK, for what only that does: questions of a server, and HTTP.

With `http` it listens at a port that the system chooses, and writes it down.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve, Sample
from mcp_types import CreateMessageResult, SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("tests")


class Wish(BaseModel):
    """What is asked of the person."""

    colour: str
    many: int


@server.tool()
def add(one: int, other: int) -> str:
    """Add two numbers."""
    return str(one + other)


@server.tool()
def die() -> str:
    """End in the middle of the call."""
    os._exit(3)


def asked() -> Elicit[Wish]:
    return Elicit("What shall it be?", Wish)


@server.tool()
def wish(answer: Annotated[ElicitationResult[Wish], Resolve(asked)]) -> str:
    """Ask the person."""
    return f"{answer.action}: {getattr(answer, 'data', None)}"


def sampled() -> Sample:
    text = TextContent(type="text", text="What is the key?")
    return Sample([SamplingMessage(role="user", content=text)], max_tokens=10)


@server.tool()
def sample(answer: Annotated[CreateMessageResult, Resolve(sampled)]) -> str:
    """Ask the model of the step."""
    return str(answer)


@server.tool()
def headers(ctx: Context) -> str:
    """Return what the request came with, and a hash of what must not be shown."""
    came = dict(ctx.headers or {})
    known = hashlib.sha256(came.get("authorization", "").encode()).hexdigest()
    return "\n".join([known, *(f"{name}: {value}" for name, value in sorted(came.items()))])


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        import uvicorn

        with socket.create_server(("127.0.0.1", 0)) as own:
            print(own.getsockname()[1], flush=True)
            uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[own])
    server.run("stdio")
