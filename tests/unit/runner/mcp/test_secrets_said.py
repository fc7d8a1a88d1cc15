"""What a server was given as a secret, and says: in a question, in what is kept as an artifact, in its last line."""

from __future__ import annotations

import asyncio
import base64
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, EmbeddedResource, TextContent

from subagents_nb.domain.agents.mcp_servers import McpServer, secrets_of
from subagents_nb.domain.texts.redaction import Redactor
from subagents_nb.runner.engines.engine import ServedTool
from subagents_nb.runner.mcp.eliciting import Eliciting
from subagents_nb.runner.mcp.stdio_server import SaidBeside
from subagents_nb.runner.mcp.tool_answers import Answers
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter
from subagents_nb.store.files.disk import DISK

VALUE = "open-sesame-4711"
SERVERS = {
    "env": McpServer(name="x", command="y", env={"LAB_TOKEN": "${PLAIN}"}),
    "filled in": McpServer(name="x", command="y", env={"LAB_TOKEN": "${GONE:-open-sesame-4711}"}),
    "header": McpServer(name="x", url="http://y", headers={"X-Lab": "Id ${PLAIN}"}),
    "header by env": McpServer(name="x", url="http://y", env={"A": "${PLAIN}"}, headers={"X-Lab": "${A}"}),
    "query": McpServer(name="x", url="http://y?a=${A}", env={"A": "${PLAIN}"}),
}


def redactor(server: McpServer) -> Redactor:
    given, sure = secrets_of(server, {"PLAIN": VALUE})
    return Redactor(given, sure)


@pytest.mark.parametrize("given", SERVERS)
def test_a_secret_is_known_however_a_server_is_given_it(given: str) -> None:
    assert redactor(SERVERS[given])(f"it is {VALUE}.") == "it is [redacted]."


def test_what_is_no_secret_is_left() -> None:
    server = McpServer(name="x", command="y", env={"WAY": "${PLAIN}"})
    assert redactor(server)(VALUE) == VALUE, "a name that tells no secret"


def test_no_question_repeats_it() -> None:
    asked: list[str] = []

    async def ask(text: str, choices: Any = (), *, call_id: str = "") -> str:
        asked.append(text)
        return "decline"

    context: Any = SimpleNamespace(ask=ask, permit=object())
    wants = SimpleNamespace(mode="url", message=f"Use {VALUE}", url=f"http://y/{VALUE}")
    asyncio.run(Eliciting("x", context, nullcontext, redactor(SERVERS["env"]))(None, wants))
    assert len(asked) == 1 and VALUE not in asked[0] and "[redacted]" in asked[0]


@pytest.mark.parametrize("kind", ["long", "blob"])
def test_no_artifact_holds_it(tmp_path: Path, kind: str) -> None:
    text = f"{VALUE} " * 10_000
    blob = BlobResourceContents(uri="x://y", blob=base64.b64encode(text.encode()).decode(), mime_type="text/plain")
    part: ContentBlock = (
        TextContent(type="text", text=text) if kind == "long" else EmbeddedResource(type="resource", resource=blob)
    )
    answers = Answers(0, ArtifactWriter(tmp_path, DISK), lambda _event: None)
    tool = ServedTool("mcp__x__y", "x", "y", "", {})
    said = answers.text_of(CallToolResult(content=[part]), tool, redactor(SERVERS["env"]))
    kept = b"".join(path.read_bytes() for path in (tmp_path / "artifacts").iterdir())
    assert VALUE not in said and VALUE.encode() not in kept and kept.count(b"[redacted]") == 10_000


@pytest.mark.parametrize("size", [1, 5, 4096])
def test_neither_log_nor_last_line_has_it_however_it_is_cut(tmp_path: Path, size: int) -> None:
    said = SaidBeside(tmp_path / "log", redactor(SERVERS["env"]))
    data = f"first ü {VALUE}\n{'x' * 3_000} {VALUE} end\n".encode()
    for start in range(0, len(data), size):
        said.add(data[start : start + size])
    assert said.last_line.endswith("[redacted] end")
    said.close()
    assert (tmp_path / "log").read_text() == data.decode().replace(VALUE, "[redacted]")
