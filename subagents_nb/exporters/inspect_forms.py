"""Messages, usage, errors and ids as logs of Inspect AI have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from subagents_nb.domain.runs.messages import Message, Session
from subagents_nb.domain.runs.records import Usage
from subagents_nb.domain.values.base import sha256_text

Said = tuple[int, dict[str, Any]]  # the turn it belongs to, and the message

_REFERENCES = ("attachment://", "tc://")  # what a reader of logs takes for the name of an attachment
_INLINE_CHARS = 100  # as Inspect itself has it
_DEEPEST = 50  # readers of JSON give up at 200
_TOO_DEEP = "[nested too deeply]"


class Texts:
    """The texts of a sample that stand in its attachments, each once. Readers put them back."""

    def __init__(self, run_id: str, step: int) -> None:
        self._names: dict[str, str] = {}
        self._place = (run_id, step)

    @property
    def kept(self) -> dict[str, str]:
        """Return the attachments by their names."""
        return {name: text for text, name in self._names.items()}

    def short(self, text: str) -> str:
        """Return the text, or the reference to it if it is long."""
        return self._keep(text) if len(text) > _INLINE_CHARS else self.literal(text)

    def literal(self, text: str) -> str:
        """Return the text; one that looks like a reference is kept as an attachment, or it would be taken for one."""
        return self._keep(text) if text.startswith(_REFERENCES) else text

    def _keep(self, text: str) -> str:
        run_id, step = self._place
        # No digest of the text: secrets are taken out of it later, and a digest would tell a guess at one from another.
        name = self._names.setdefault(text, f"t{own_id(run_id, f'text {step} {len(self._names)}')}")
        return f"{_REFERENCES[0]}{name}"


def inspect_messages(session: Session, model: str, *, run_id: str, step: int) -> list[Said]:
    """Return what was said in Inspect's form: what a model said at once is one message of its own."""
    models = {turn.number: turn.model for turn in session.turns}
    numbered = enumerate(_messages(session, models, model))
    return [(turn, {"id": own_id(run_id, f"message {step} {number}"), **form}) for number, (turn, form) in numbered]


def with_texts(message: dict[str, Any], text: Callable[[str], str]) -> dict[str, Any]:
    """Return a message with each text in it replaced, where readers look for references."""
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": text(content)}
    parts = [{**part, part["type"]: text(part[part["type"]])} for part in content]
    calls = [{**call, "arguments": each_text(call["arguments"], text)} for call in message.get("tool_calls", ())]
    return {**message, "content": parts, **({"tool_calls": calls} if calls else {})}


def each_text(value: Any, text: Callable[[str], str]) -> Any:
    """Return plain JSON data with each text in it replaced."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {name: each_text(one, text) for name, one in value.items()}
    return [each_text(one, text) for one in value] if isinstance(value, list) else value


def plain(value: Any, depth: int = _DEEPEST) -> Any:
    """Return JSON data as every reader of JSON takes it: numbers finite, lists and objects not too deep."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if not isinstance(value, dict | list | tuple):
        return value
    if not depth:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {str(name): plain(one, depth - 1) for name, one in value.items()}
    return [plain(one, depth - 1) for one in value]


def usage_form(usage: Usage) -> dict[str, Any]:
    """Return tokens and cost."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "input_tokens_cache_read": usage.cache_read_tokens,
        "total_cost": usage.cost_usd,
    }


def error_form(message: str) -> dict[str, str]:
    """Return an error; there is no traceback of it."""
    return {"message": message, "traceback": message, "traceback_ansi": message}


def own_id(run_id: str, what: str) -> str:
    """Return the id of something of a run, the same each time."""
    return sha256_text(f"{run_id} {what}")[:22]


def _messages(session: Session, models: dict[int, str], model: str) -> Iterator[Said]:
    open_: list[Message] = []
    for message in session.messages:
        if open_ and (not message.from_model or message.turn != open_[0].turn):
            yield open_[0].turn, _assistant(open_, models.get(open_[0].turn) or model)
            open_ = []
        if message.from_model:
            open_.append(message)
        else:
            yield message.turn, _heard(message)
    if open_:
        yield open_[0].turn, _assistant(open_, models.get(open_[0].turn) or model)


def _heard(message: Message) -> dict[str, Any]:
    if message.role != "result":
        return {"role": "system" if message.role == "system" else "user", "content": message.text}
    tool_message: dict[str, Any] = {"role": "tool", "content": message.text, "function": message.tool}
    if message.call_id:
        tool_message["tool_call_id"] = message.call_id
    if not message.ok:
        tool_message["error"] = {"type": "unknown", "message": message.text}
    return tool_message


def _assistant(said: list[Message], model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    calls = []
    for number, message in enumerate(said):
        if message.role == "thought":
            content.append({"type": "reasoning", "reasoning": message.text})
        elif message.role == "answer":
            content.append({"type": "text", "text": message.text})
        else:
            args = plain(message.args) if isinstance(message.args, dict) else {"arguments": message.text}
            call_id = message.call_id or f"call-{message.turn}-{number}"
            calls.append({"id": call_id, "function": message.tool, "arguments": args, "type": "function"})
    assistant_message: dict[str, Any] = {"role": "assistant", "content": content, "source": "generate", "model": model}
    return {**assistant_message, "tool_calls": calls} if calls else assistant_message
