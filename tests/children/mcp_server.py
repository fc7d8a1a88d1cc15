"""An MCP server for the tests: a few tools, and by its argument one way or another to be hostile."""

from __future__ import annotations

import os
import time

from mcp.server.mcpserver import MCPServer

server = MCPServer("tests")


@server.tool()
def add(one: int, other: int) -> str:
    """Add two numbers."""
    return str(one + other)


@server.tool()
def environ() -> str:
    """Return the names and values of its variables."""
    return "\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()))


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def sleep(seconds: float) -> str:
    """Take a while."""
    time.sleep(seconds)
    return "awake"


if __name__ == "__main__":
    server.run("stdio")
