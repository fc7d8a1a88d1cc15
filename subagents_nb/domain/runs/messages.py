"""What was said in a step, read from its `session.json`, one message after another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.usage import Usage

Role = Literal["system", "user", "thought", "answer", "call", "result", "again"]
# pydantic-ai's own name for the tool that takes a structured answer.
ANSWER_TOOL = "final_result"


class Message(Value):
    """One thing that was said, and by whom: `again` is what a model was told when its answer did not do."""

    role: Role
    text: str = ""  # of a call: its arguments as JSON
    turn: int = 0  # the request or response that it belongs to, counted from 0
    at: str | None = None
    tool: str = ""
    call_id: str = ""
    args: Any = None  # of a call: a JSON object where the model gave one
    ok: bool = True  # of a result
    structured: bool = False  # the text is JSON

    @property
    def from_model(self) -> bool:
        """Whether the model said it."""
        return self.role in ("thought", "answer", "call")


class Turn(Value):
    """One response of a model."""

    number: int
    model: str = ""
    at: str | None = None
    finish_reason: str | None = None
    usage: Usage = Usage()


class Session(Value):
    """A step's history."""

    messages: tuple[Message, ...] = ()
    turns: tuple[Turn, ...] = ()


def parse_session(content: bytes) -> Session:
    """Read a session file. What has a form that nobody here knows is left out.

    Raises:
        ValueError: it is no list of messages.
    """
    try:
        data = json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, list):
        raise ValueError("it is no list of messages")
    entries = [one for one in data if isinstance(one, dict)]
    turns = tuple(_turn(number, one) for number, one in enumerate(entries) if one.get("kind") == "response")
    return Session(messages=tuple(_without_repeats(_messages(entries))), turns=turns)


def _messages(entries: list[dict[str, Any]]) -> Iterator[Message]:
    for number, one in enumerate(entries):
        at = _text(one.get("timestamp")) or None
        if instructions := _text(one.get("instructions")):
            yield Message(role="system", text=instructions, turn=number, at=at)
        parts = one.get("parts")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and (message := _message(part, number, at)) is not None:
                yield message


def _message(part: dict[str, Any], turn: int, at: str | None) -> Message | None:
    at = _text(part.get("timestamp")) or at
    tool, call_id = _text(part.get("tool_name")), _text(part.get("tool_call_id"))
    match part.get("part_kind"):
        case "system-prompt":
            return Message(role="system", text=_content(part), turn=turn, at=at)
        case "user-prompt":
            return Message(role="user", text=_content(part), turn=turn, at=at)
        case "thinking":
            text = _content(part)
            return Message(role="thought", text=text, turn=turn, at=at) if text else None
        case "text":
            text = _content(part)
            return Message(role="answer", text=text, turn=turn, at=at) if text.strip() else None
        case "tool-call" if tool.startswith(ANSWER_TOOL):
            return Message(
                role="answer", text=_as_json(part.get("args")), turn=turn, at=at, call_id=call_id, structured=True
            )
        case "tool-call":
            args = part.get("args")
            text = _as_json(args)
            return Message(
                role="call",
                text=text,
                turn=turn,
                at=at,
                tool=tool,
                call_id=call_id,
                args=_object(args),
                structured=True,
            )
        case "tool-return":
            ok = part.get("outcome", "success") == "success"
            if tool.startswith(ANSWER_TOOL):
                return None if ok else Message(role="again", text=_content(part), turn=turn, at=at, call_id=call_id)
            return Message(role="result", text=_content(part), turn=turn, at=at, tool=tool, call_id=call_id, ok=ok)
        case "retry-prompt" if tool and not tool.startswith(ANSWER_TOOL):
            return Message(role="result", text=_content(part), turn=turn, at=at, tool=tool, call_id=call_id, ok=False)
        case "retry-prompt" | "retry-feedback":
            return Message(role="again", text=_content(part), turn=turn, at=at, call_id=call_id)
        case _:
            return None


def _without_repeats(messages: Iterator[Message]) -> Iterator[Message]:
    """Leave out instructions that every request of a session repeats."""
    last = None
    for message in messages:
        if message.role == "system":
            if message.text == last:
                continue
            last = message.text
        yield message


def _turn(number: int, one: dict[str, Any]) -> Turn:
    counted = one.get("usage")
    spent = counted if isinstance(counted, dict) else {}
    return Turn(
        number=number,
        model=_text(one.get("model_name")),
        at=_text(one.get("timestamp")) or None,
        finish_reason=_text(one.get("finish_reason")) or None,
        usage=Usage(
            input_tokens=_number(spent.get("input_tokens")),
            output_tokens=_number(spent.get("output_tokens")),
            cache_read_tokens=_number(spent.get("cache_read_tokens")),
            requests=1,
        ),
    )


def _content(part: dict[str, Any]) -> str:
    content = part.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_piece(one) for one in content)
    return "" if content is None else _as_json(content)


def _piece(one: Any) -> str:
    if isinstance(one, str):
        return one
    if isinstance(one, dict) and isinstance(one.get("kind"), str):
        return f"[{one['kind']}]"  # a picture, a document: named, not carried along
    return _as_json(one)


def _object(args: Any) -> Any:
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return None
    return args if isinstance(args, dict) else None


def _as_json(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
