"""Make a model's answer fit to be resumed, before anything looks at it: its texts, the ids of its calls."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    FileUrl,
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UploadedFile,
    UserPromptPart,
)

from subagents_nb.domain.runs.finish import Calls, CutAnswer, Finish, finish_of, judge_end
from subagents_nb.domain.values.characters import sayable, sayable_data
from subagents_nb.runner.engines.clean_text import one_line

_LONGEST_ID = 200
_LEFT_OUT = "[a file that lay elsewhere, left out]"
# Models that live in this process send no protocol, so nothing of theirs can break off.
_IN_PROCESS = frozenset({"function", "test"})


def mended(response: ModelResponse, earlier: Iterable[ModelMessage]) -> ModelResponse:
    """Return the response with texts that can be sent again, and with an id of its own for each call.

    Some servers give calls one id or none, huggingface/smolagents#2683, or count from 0 in each turn,
    MoonshotAI/kimi-code#1730; pydantic-ai ends a run for two alike.
    """
    taken: set[str] = set()
    if response.tool_calls:
        taken = {call.tool_call_id for one in earlier if isinstance(one, ModelResponse) for call in one.tool_calls}
    parts = [_part(part, taken) for part in response.parts]
    name: Any = response.model_name
    changed = any(new is not old for new, old in zip(parts, response.parts, strict=True))
    if name is not None and (fit := sayable(str(name))) is not name:  # a server may say a number
        return replace(response, parts=parts, model_name=fit)
    return replace(response, parts=parts) if changed else response


def _part(part: Any, taken: set[str]) -> Any:
    if isinstance(part, TextPart | ThinkingPart):
        text = sayable(part.content)
        return part if text is part.content else replace(part, content=text)
    if not isinstance(part, ToolCallPart):
        return part
    call_id, name, args = part.tool_call_id, sayable(part.tool_name), sayable_data(part.args)
    if call_id in taken or not 0 < len(call_id) <= _LONGEST_ID or not (call_id.isascii() and call_id.isprintable()):
        call_id = f"call_{secrets.token_hex(12)}"
    taken.add(call_id)
    if call_id == part.tool_call_id and name is part.tool_name and args == part.args:
        return part
    return replace(part, tool_call_id=call_id, tool_name=name, args=args)


def told_before(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """Return a stored conversation as it may be told again: it may have come in an archive.

    What is named by an address is left out, since pydantic-ai fetches it, of this machine too if the session says so;
    and nobody but us says what a system says.
    """
    return [replace(one, parts=[_said_before(part) for part in one.parts]) for one in messages]  # type: ignore[arg-type]


def _said_before(part: Any) -> Any:
    if isinstance(part, SystemPromptPart):
        return UserPromptPart(part.content, timestamp=part.timestamp)
    content = getattr(part, "content", None)
    if content is None or isinstance(content, str | BinaryContent):
        return part
    return replace(part, content=_without_addresses(content))


def _without_addresses(content: Any) -> Any:
    match content:
        case FileUrl() | UploadedFile():
            return _LEFT_OUT
        case dict():
            return {key: _without_addresses(one) for key, one in content.items()}
        case list() | tuple():
            return [_without_addresses(one) for one in content]
        case _:
            return content


def end_of(response: ModelResponse, *, closed: bool) -> Finish:
    """Return how a response ended; `closed` if its stream came to its own last line."""
    if response.provider_name is None or response.provider_name in _IN_PROCESS:
        return Finish.STOP
    details = response.provider_details or {}
    return finish_of(
        details.get("finish_reason"), response.finish_reason, refused=bool(details.get("refusal")), closed=closed
    )


def cut_of(response: ModelResponse, finish: Finish) -> CutAnswer | None:
    """Return why a response that ended so is no answer; None if it is one."""
    details = response.provider_details or {}
    # A prompt that Gemini blocked has no answer, so no end of one either.
    word = str(details.get("finish_reason") or details.get("block_reason") or "")
    why = str(details.get("refusal") or details.get("block_reason_message") or "")
    state, tool = _calls(response.tool_calls, finish)
    return judge_end(finish, state, word=one_line(word, 60), why=one_line(why), tool=one_line(tool, 60))


def _calls(calls: Sequence[ToolCallPart], finish: Finish) -> tuple[Calls, str]:
    if not calls:
        return "none", ""
    if finish not in (Finish.STOP, Finish.CALLS):
        for call in calls:
            # A call without arguments looks like one that was cut before them.
            if not call.args or (isinstance(call.args, str) and not _is_json(call.args)):
                return "cut", call.tool_name
    return "whole", ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
