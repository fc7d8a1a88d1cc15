"""Whether a model's answer is whole, by what its provider said of its end. One table; only the model's own end is one.

Read of pydantic-ai 2.68 and of the servers it speaks to. It has five words of its own and takes an answer under any of
them for a whole one; a provider's own word, where it sends one, says more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from subagents_nb.domain.runs.records import EndReason

BROKE_OFF = "The model's answer broke off before it was complete."
HIT_LIMIT = "The model's answer reached the output token limit before it was complete. Ask for a shorter answer."
Calls = Literal["none", "whole", "cut"]  # the tool calls of an answer; a cut one's arguments are no JSON


class Finish(StrEnum):
    """How an answer ended."""

    STOP = "stop"
    CALLS = "calls"
    LIMIT = "limit"
    CONTEXT = "context"
    FILTERED = "filtered"
    REFUSED = "refused"
    MALFORMED = "malformed"  # the provider could not read what its model wrote
    ERROR = "error"
    PAUSED = "paused"  # it wants to go on
    UNKNOWN = "unknown"  # the provider's word is in no table
    UNSAID = "unsaid"  # the stream was closed as it should be, and nothing was said
    BROKEN = "broken"  # the stream just ended


# pydantic-ai's own words.
_NORMAL = {
    "stop": Finish.STOP,
    "tool_call": Finish.CALLS,
    "length": Finish.LIMIT,
    "content_filter": Finish.FILTERED,
    "error": Finish.ERROR,
}
# Providers' words, in small letters.
_WORDS = {
    Finish.STOP: "stop end_turn stop_sequence completed complete eos eos_token end compaction",
    Finish.CALLS: "tool_calls tool_call tool_use function_call",
    Finish.LIMIT: "length max_tokens max_output_tokens max_completion_tokens continuation",
    Finish.CONTEXT: "model_length model_context_window_exceeded context_length_exceeded",
    Finish.FILTERED: (
        "content_filter content_filtered guardrail_intervened safety recitation blocklist prohibited_content spii "
        "image_safety image_prohibited_content image_recitation model_armor sensitive"
    ),
    Finish.REFUSED: "refusal",
    Finish.MALFORMED: (
        "malformed_function_call malformed_tool_use malformed_model_output malformed_response unexpected_tool_call"
    ),
    Finish.ERROR: (
        "error failed cancelled canceled abort aborted language no_image network_error timeout "
        "insufficient_system_resource too_many_tool_calls"
    ),
    Finish.PAUSED: "pause_turn incomplete in_progress queued",
    Finish.UNKNOWN: "finish_reason_unspecified other unknown",
}
_BY_WORD = {word: finish for finish, words in _WORDS.items() for word in words.split()}
_WELL = (Finish.STOP, Finish.CALLS)


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """Why an answer is none: the reason for a program, the sentence for a person."""

    reason: EndReason
    text: str


def finish_of(word: object, normal: str | None, *, refused: bool = False, closed: bool = False) -> Finish:
    """Return how an answer ended: by the provider's `word` for it and by pydantic-ai's, of which the worse one counts.

    `closed` if the stream came to its own last line, which some servers send without having said why.
    """
    own = _BY_WORD.get(word.strip().lower()) if isinstance(word, str) else None
    ours = _NORMAL.get(normal or "")
    if refused:
        return Finish.REFUSED
    for finish in (own, ours):
        if finish is not None and finish not in _WELL:
            return finish
    if own is not None:
        return own
    if isinstance(word, str) and word.strip():
        return ours or Finish.UNKNOWN
    # Without a word of the provider's, pydantic-ai's `stop` is its guess.
    return Finish.UNSAID if closed else Finish.BROKEN


def judge_end(finish: Finish, calls: Calls, *, word: str = "", tool: str = "", why: str = "") -> CutAnswer | None:
    """Return why an answer that ended so is none; None if it counts.

    A call whose arguments are whole is whole, wherever the text around it was cut. `word` is what the provider said,
    `tool` the call that was cut, `why` what it gave as its ground.
    """
    stop_word = f" ({word})" if word else ""
    detail = f": {why}" if why else "."
    match finish:
        case Finish.STOP:
            return None
        case Finish.CALLS:
            lost = "The provider said that the model called a tool, and sent no call."
            return CutAnswer("model", lost) if calls == "none" else None
        case Finish.LIMIT if calls == "cut":
            text = f"The model's call of {tool} was cut at the output token limit. Ask for smaller steps."
            return CutAnswer("truncated", text)
        case Finish.CONTEXT if calls != "whole":
            return CutAnswer("context", f"The model's answer was cut: the model's context is full{stop_word}.")
        case Finish.LIMIT if calls == "none":
            return CutAnswer("truncated", HIT_LIMIT)
        case Finish.FILTERED:
            return CutAnswer("filtered", f"The provider's content filter stopped the answer{stop_word}{detail}")
        case Finish.REFUSED:
            return CutAnswer("filtered", f"The model refused to answer{detail}")
        case Finish.MALFORMED:
            return CutAnswer("model", f"The provider could not make sense of what its model wrote{stop_word}.")
        case Finish.ERROR:
            return CutAnswer("model", f"The provider ended the answer with an error{stop_word}.")
        case Finish.PAUSED if calls != "whole":
            return CutAnswer("truncated", f"The provider ended the answer before it was complete{stop_word}.")
        case Finish.UNKNOWN if calls != "whole":
            text = f"The provider ended the answer with the word {word!r}, which does not say that it is complete."
            return CutAnswer("unknown", text)
        case Finish.UNSAID if calls == "cut":
            return CutAnswer("truncated", BROKE_OFF)
        case Finish.BROKEN:
            return CutAnswer("truncated", BROKE_OFF)
        case _:
            return None
