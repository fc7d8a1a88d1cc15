"""How an answer ended, by what providers say, and what follows from it."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic_ai.messages import FinishReason

from subagents_nb.domain.runs.finish import Calls, Finish, finish_of, judge_end

WELL = {"stop", "tool_call"}


@pytest.mark.parametrize(
    "word",
    [
        # OpenAI, chat and responses; servers that speak like it
        "stop", "length", "tool_calls", "content_filter", "function_call", "completed", "max_output_tokens", "failed",
        "cancelled", "incomplete", "in_progress", "queued", "eos_token", "abort", "insufficient_system_resource",
        # Anthropic
        "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded",
        # Google
        "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
        "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "FINISH_REASON_UNSPECIFIED",
        # nobody
        "guardrail_deluxe", "", None,
    ],
)  # fmt: skip
def test_only_the_models_own_end_makes_an_answer(word: str | None) -> None:
    own = {"stop", "eos_token", "completed", "end_turn", "stop_sequence", "STOP"}
    for normal in (*get_args(FinishReason), None):
        finish = finish_of(word, normal)
        cut = judge_end(finish, "none", word=word or "")

        whole = finish is Finish.STOP
        assert (cut is None) == whole, normal
        if whole:
            assert word in own | {"guardrail_deluxe"} and normal in (*WELL, None), normal
        if normal not in (*WELL, None):
            assert not whole, f"the worse word, {normal}, counts"


@pytest.mark.parametrize(
    ("word", "normal", "calls", "reason", "said"),
    [
        ("content_filter", "content_filter", "none", "filtered", "content filter"),
        ("SAFETY", "content_filter", "whole", "filtered", "(SAFETY)"),
        ("refusal", "content_filter", "none", "filtered", "refused to answer: no"),
        ("length", "length", "none", "truncated", "output token limit"),
        ("length", "length", "cut", "truncated", "call of write was cut"),
        ("model_context_window_exceeded", "length", "none", "context", "context is full"),
        ("MALFORMED_FUNCTION_CALL", "error", "none", "model", "(MALFORMED_FUNCTION_CALL)"),
        ("failed", "error", "whole", "model", "(failed)"),
        ("pause_turn", None, "none", "truncated", "pause_turn"),
        ("guardrail_deluxe", None, "none", "unknown", "'guardrail_deluxe'"),
        ("tool_calls", "tool_call", "none", "model", "sent no call"),
        (None, "stop", "none", "truncated", "broke off"),
        (None, None, "whole", "truncated", "broke off"),
    ],
)
def test_what_cut_an_answer_is_said(word: str | None, normal: str | None, calls: Calls, reason: str, said: str) -> None:
    cut = judge_end(finish_of(word, normal), calls, word=word or "", tool="write", why="no")

    assert cut is not None and cut.reason == reason and said in cut.text


@pytest.mark.parametrize("word", ["stop", "STOP", "tool_calls", "length", "pause_turn", "guardrail_deluxe"])
def test_a_whole_call_is_whole_wherever_the_answer_around_it_was_cut(word: str) -> None:
    assert judge_end(finish_of(word, None), "whole") is None


def test_a_stream_that_was_closed_without_a_word_counts_and_one_that_just_ended_does_not() -> None:
    assert finish_of(None, "stop", closed=True) is Finish.UNSAID
    assert judge_end(Finish.UNSAID, "none") is None and judge_end(Finish.UNSAID, "cut") is not None
    assert finish_of(None, "stop") is Finish.BROKEN
