"""What is held of a server's answer has a bound, whatever the server sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.runner.engines.native.provider_http import LastLine, open_client

MEGABYTE = 1024 * 1024
EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


class Sent(httpx2.AsyncByteStream):
    """So many pieces, of which the reader may not want all."""

    def __init__(self, piece: bytes, times: int) -> None:
        self._piece = piece
        self.left = times

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.left:
            self.left -= 1
            yield self._piece


def read(sent: Sent, headers: dict[str, str]) -> int:
    async def main() -> int:
        response = httpx2.Response(500, headers=headers, stream=sent)
        await LastLine().watch(response)
        return sum([len(piece) async for piece in response.aiter_raw()])

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("headers", "piece"),
    [
        ({"content-type": "application/json"}, b"a"),
        ({"content-type": "application/json"}, b"\n\n"),
        ({}, b"a"),
        (EVENTS, b"data: a\n"),
        (EVENTS, b"data: a"),
    ],
)
def test_a_body_or_an_event_without_end_is_not_read_to_its_end(headers: dict[str, str], piece: bytes) -> None:
    sent = Sent(piece * (MEGABYTE // len(piece)), 100)
    with pytest.raises(StepFailed, match="sent 32 MB without an end"):
        read(sent, headers)
    assert sent.left > 60


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_many_events_are_many(end: bytes) -> None:
    assert read(Sent(b"data: a" + end + b"x" * MEGABYTE, 40), EVENTS) > 40 * MEGABYTE


def test_what_is_packed_could_be_of_any_size() -> None:
    with pytest.raises(StepFailed, match="asked not to"):
        read(Sent(b"a", 1), {"content-encoding": "gzip", **EVENTS})

    async def asked() -> str:
        async with open_client(LastLine()) as client:
            return str(client.build_request("GET", "http://127.0.0.1/").headers["accept-encoding"])

    assert asyncio.run(asked()) == "identity"
