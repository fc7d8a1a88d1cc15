"""The HTTP client of a step. Its trust store is read once a process, so a forked runner has it for nothing."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2

from subagents_nb.domain.runs.events import StepFailed

_CONNECT_S = 10.0
_IDLE_S = 600.0
_LAST_BYTES = 64
# No answer is so large, nor an event of one: longest answers are four million characters, each at most six bytes.
_MOST_BYTES = 32 * 1024 * 1024
_TOO_MUCH = f"The provider's server sent {_MOST_BYTES // 1024**2} MB without an end, and was not read any further."
_EVENT_ENDS = (b"\n\n", b"\r\r", b"\n\r\n")


def trust() -> ssl.SSLContext:
    """Return the certificates to trust, as httpx2 chooses them; reading them takes 40 ms, python/cpython#95031."""
    return _trust(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@cache
def _trust(_file: str, _directory: str) -> ssl.SSLContext:
    return httpx2.create_ssl_context()


@dataclass(slots=True)
class LastLine:
    """Whether the last response came to the line that closes a stream of the chat protocol; the SDK keeps it."""

    came: bool = False

    async def watch(self, response: httpx2.Response) -> None:
        """Look at the end of this response as it is read, and at how much of it has to be held."""
        self.came = False
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Watched(response.stream, self, response.headers)


class _Watched(httpx2.AsyncByteStream):
    """A response whose reader never holds more than an event, or a body, may have; what is packed could be any size."""

    def __init__(self, stream: httpx2.AsyncByteStream, last: LastLine, headers: httpx2.Headers) -> None:
        self._stream = stream
        self._last = last
        self._of_events = headers.get("content-type", "").startswith("text/event-stream")
        self._packed = headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed:
            raise StepFailed("provider", "The provider's server packed its answer, and was asked not to.")
        end, held = b"", 0
        async for chunk in self._stream:
            held += len(chunk)
            if self._of_events and any(one in end[-2:] + chunk for one in _EVENT_ENDS):
                held = 0
            if held > _MOST_BYTES:
                raise StepFailed("provider", _TOO_MUCH)
            end = (end + chunk)[-_LAST_BYTES:]
            self._last.came = b"[DONE]" in end
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def open_client(last: LastLine) -> httpx2.AsyncClient:
    """Return a client that honours the proxy variables; the caller closes it."""
    return httpx2.AsyncClient(
        verify=trust(),
        timeout=httpx2.Timeout(_IDLE_S, connect=_CONNECT_S, pool=_CONNECT_S),
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"request": [_cap_connecting], "response": [last.watch]},
    )


async def _cap_connecting(request: httpx2.Request) -> None:
    # The SDKs send one figure for every phase, and nobody wants to wait ten minutes for a connection.
    phases: dict[str, Any] = dict(request.extensions.get("timeout") or {})
    for phase in ("connect", "pool"):
        limit_s = phases.get(phase)
        phases[phase] = _CONNECT_S if limit_s is None else min(limit_s, _CONNECT_S)
    request.extensions = {**request.extensions, "timeout": phases}
