"""A model on loopback that does as it is told: OpenAI's chat protocol, one tool call and then an answer.

Prints its port, serves until its input closes. A task that holds `RUN: command` makes it call bash with the rest of
that line once; its answer repeats what the tool said. `SAY: text` is answered with the rest of that line, any other
task with `fine`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


def _chunk(delta: dict[str, Any], end: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": end}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "told", "choices": [choice], **more}
    return f"data: {json.dumps(body)}\n\n".encode()


def _reply(messages: list[dict[str, Any]]) -> bytes:
    said = [str(message["content"]) for message in messages if message["role"] == "tool"]
    task = next(str(message["content"]) for message in messages if message["role"] == "user")
    if "RUN: " in task and not said:
        command = task.partition("RUN: ")[2].splitlines()[0]
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        call = {"index": 0, "id": "call-1", "type": "function", "function": function}
        body = _chunk({"role": "assistant", "tool_calls": [call]}) + _chunk({}, "tool_calls")
    else:
        asked = task.partition("SAY: ")[2].splitlines()
        answer = "\n".join(said) or (asked[0] if asked else "fine")
        half = len(answer) // 2  # in two pieces, as a stream may cut a word anywhere
        body = _chunk({"role": "assistant", "content": answer[:half]}) + _chunk({"content": answer[half:]})
        body += _chunk({}, "stop")
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    return body + _chunk({}, None, usage=usage) + b"data: [DONE]\n\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        request = json.loads(await reader.readexactly(int(length.split(b":")[1])))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        writer.write(_reply(request["messages"]))
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass  # whoever asked was killed
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, limit=2**22)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
