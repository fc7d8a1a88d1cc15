"""A model on loopback that speaks OpenAI's chat protocol and notes when requests came and answers ended.

Run as a process of its own: prints its port, serves until its input closes. `GET /log` returns the notes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

NOTES: list[dict[str, Any]] = []


def _chunk(delta: dict[str, Any], end: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "loop", "choices": [choice], **more}
    return f"data: {json.dumps(body)}\n\n".encode()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    came = time.time()
    if head.startswith(b"GET"):
        body = json.dumps(NOTES).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()
        return
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    request = json.loads(await reader.readexactly(int(length.split(b":")[1])))
    task = str(request["messages"][-1]["content"])
    hold = float(task.split("hold=")[1].split()[0]) if "hold=" in task else 0.0
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    writer.write(_chunk({"role": "assistant", "content": "fine"}))
    await writer.drain()
    await asyncio.sleep(hold)
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    writer.write(_chunk({}, "stop") + _chunk({}, None, usage=usage) + b"data: [DONE]\n\n")
    await writer.drain()
    NOTES.append({"task": task, "came": came, "ended": time.time()})
    writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, limit=2**22)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
