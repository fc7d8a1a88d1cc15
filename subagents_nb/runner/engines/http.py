"""The HTTP client of a step. Its trust store is read once a process, so a forked runner has it for nothing."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any

import httpx2

_CONNECT_S = 10.0
_IDLE_S = 600.0


def trust() -> ssl.SSLContext:
    """Return the certificates to trust, as httpx2 chooses them; reading them takes 40 ms, so they are kept."""
    return _trust(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@cache
def _trust(_file: str, _directory: str) -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def open_client() -> httpx2.AsyncClient:
    """Return a client that honours the proxy variables; the caller closes it."""
    return httpx2.AsyncClient(
        verify=trust(),
        timeout=httpx2.Timeout(_IDLE_S, connect=_CONNECT_S, pool=_CONNECT_S),
        follow_redirects=False,
        event_hooks={"request": [_cap_connecting]},
    )


async def _cap_connecting(request: httpx2.Request) -> None:
    # The SDKs send one figure for every phase, and nobody wants to wait ten minutes for a connection.
    phases: dict[str, Any] = dict(request.extensions.get("timeout") or {})
    for phase in ("connect", "pool"):
        given = phases.get(phase)
        phases[phase] = _CONNECT_S if given is None else min(given, _CONNECT_S)
    request.extensions = {**request.extensions, "timeout": phases}
