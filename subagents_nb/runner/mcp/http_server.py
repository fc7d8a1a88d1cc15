"""A server that is reached by HTTP: with the headers of its definition."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from subagents_nb.domain.agents.mcp_servers import ReadyServer

_CONNECT_S, _READ_S = 30.0, 300.0  # a server may hold a stream open that long


@contextlib.asynccontextmanager
async def http_streams(made: ReadyServer) -> AsyncIterator[Any]:
    """Return the transport of a server; its client is closed when this is left."""
    limits = httpx2.Timeout(_CONNECT_S, read=_READ_S)
    async with httpx2.AsyncClient(headers=dict(made.headers or {}), timeout=limits) as client:
        yield streamable_http_client(made.url or "", http_client=client)
