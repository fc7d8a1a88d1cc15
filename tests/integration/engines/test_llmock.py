"""The native engine against llmock, which scripts faults and grades its client."""

from __future__ import annotations

import os
from typing import Any

import pytest
from support import free_port

from subagents_nb.domain.runs.events import ModelAsked, Noticed, ToolEnded
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.native.request_retries import NO_RETRIES, RetryPolicy

both = pytest.mark.parametrize("api", ["chat", "responses"])


@pytest.fixture(autouse=True)
def _key(workshop: Any) -> None:
    workshop.environ.update(LAB_KEY="sk-very-secret-value")


@both
@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_stream_that_ends_early_is_a_failure_even_when_it_ends_politely(
    workshop: Any, plan: Any, llmock: Any, api: str, after: int
) -> None:
    llmock.reply("one two three four five six seven eight nine ten").truncate(after_chunks=after)

    failure = workshop.fail(NativeEngine(patience=NO_RETRIES), plan("count", at=llmock.url, api=api, output_retries=0))

    assert failure.reason in ("truncated", "no-answer", "model"), failure.message
    if workshop.text:
        assert failure.reason == "truncated"


@both
def test_a_dropped_stream_is_a_lost_connection(workshop: Any, plan: Any, llmock: Any, api: str) -> None:
    llmock.disconnect(after_chunks=2)

    failure = workshop.fail(NativeEngine(patience=NO_RETRIES), plan("count", at=llmock.url, api=api))

    assert failure.reason == "connection" and "127.0.0.1:" in failure.message


@both
def test_a_stream_that_stalls_is_a_lost_connection(workshop: Any, plan: Any, llmock: Any, api: str) -> None:
    llmock.stall(after_chunks=2, seconds=2)

    failure = workshop.fail(NativeEngine(request_s=0.5, patience=NO_RETRIES), plan("count", at=llmock.url, api=api))

    assert failure.reason == "connection" and "in time" in failure.message, failure.message


@both
def test_a_model_that_does_not_begin_is_a_lost_connection(workshop: Any, plan: Any, llmock: Any, api: str) -> None:
    llmock.slow_first_token(2)

    failure = workshop.fail(NativeEngine(request_s=0.5, patience=NO_RETRIES), plan("count", at=llmock.url, api=api))

    assert failure.reason == "connection" and "in time" in failure.message, failure.message


@both
def test_garbage_in_a_stream_is_the_models_fault(workshop: Any, plan: Any, llmock: Any, api: str) -> None:
    llmock.corrupt(after_chunks=2)

    failure = workshop.fail(NativeEngine(patience=NO_RETRIES), plan("count", at=llmock.url, api=api))

    assert failure.reason in ("model", "provider"), failure.message


@both
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_provider_is_waited_for_as_long_as_it_asks(
    workshop: Any, plan: Any, llmock: Any, api: str, status: int
) -> None:
    llmock.fail(status, times=3, retry_after=0.1).reply("after all")

    assert workshop.run(NativeEngine(), plan("count", at=llmock.url, api=api)).text == "after all"
    assert workshop.told(Noticed) == [Noticed("rate-limited", "The provider asks to wait 0.1 s.")] * 3
    assert workshop.told(ModelAsked) == [ModelAsked(1)]
    llmock.assert_resilient()


@both
def test_a_rate_limit_that_stays_is_given_up_after_five_requests_in_all(
    workshop: Any, plan: Any, llmock: Any, api: str
) -> None:
    llmock.rate_limit(times=None, retry_after=0.01)

    failure = workshop.fail(NativeEngine(), plan("count", at=llmock.url, api=api))

    assert failure.reason == "rate-limit" and len(llmock.requests) == 5
    assert failure.usage is not None and failure.usage.requests == 1


@both
def test_a_rate_limit_that_is_too_long_says_how_long_to_wait(workshop: Any, plan: Any, llmock: Any, api: str) -> None:
    llmock.rate_limit(times=None, retry_after=700)

    failure = workshop.fail(NativeEngine(), plan("count", at=llmock.url, api=api))

    assert failure.reason == "rate-limit" and "700 seconds" in failure.message, failure.message
    assert len(llmock.requests) == 1


@both
def test_a_provider_that_stumbles_is_asked_again(workshop: Any, plan: Any, llmock: Any, api: str) -> None:
    llmock.fail(500, times=2).reply("after all")

    outcome = workshop.run(NativeEngine(patience=RetryPolicy(first_s=0.05)), plan("count", at=llmock.url, api=api))

    assert outcome.text == "after all" and [event.code for event in workshop.told(Noticed)] == ["retrying"] * 2


@both
def test_a_stream_that_broke_off_is_not_asked_for_again(workshop: Any, plan: Any, llmock: Any, api: str) -> None:
    llmock.reply("one two three four five six seven eight nine ten").disconnect(after_chunks=8)

    failure = workshop.fail(NativeEngine(patience=RetryPolicy(first_s=0.01)), plan("count", at=llmock.url, api=api))

    assert failure.reason == "connection" and workshop.text and len(llmock.requests) == 1


@both
@pytest.mark.parametrize(("status", "reason"), [(401, "auth"), (403, "auth"), (404, "provider"), (500, "provider")])
def test_each_status_has_its_reason(workshop: Any, plan: Any, llmock: Any, api: str, status: int, reason: str) -> None:
    llmock.fail(status, message="sk-very-secret-value is not welcome")

    failure = workshop.fail(NativeEngine(patience=NO_RETRIES), plan("count", at=llmock.url, api=api))

    assert failure.reason == reason and f"HTTP {status}" in failure.message
    assert "sk-very-secret-value" not in failure.message


@both
def test_a_task_that_does_not_fit_is_a_matter_of_context(workshop: Any, plan: Any, llmock: Any, api: str) -> None:
    llmock.context_overflow()

    assert workshop.fail(NativeEngine(), plan("count", at=llmock.url, api=api)).reason == "context"


@both
def test_an_answer_cut_by_its_token_limit_is_a_failure_that_says_so(
    workshop: Any, plan: Any, llmock: Any, api: str
) -> None:
    from llmock.scenarios import Reply

    llmock.add(Reply(text="one two three", finish_reason="length"))

    failure = workshop.fail(NativeEngine(), plan("count", at=llmock.url, api=api))

    assert failure.reason == "truncated" and "token limit" in failure.message, failure.message


@both
@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_a_broken_tool_call_is_survived(workshop: Any, plan: Any, llmock: Any, api: str, kind: str) -> None:
    llmock.break_tool_call(kind).reply("survived")

    outcome = workshop.run(NativeEngine(), plan("list it", at=llmock.url, api=api, tools=("list",)))

    ended = workshop.told(ToolEnded)
    assert outcome.text and not ended[0].ok
    assert (ended[0].refused is not None) == (kind == "unknown_tool")
    llmock.assert_resilient()


def test_a_closed_port_is_named(workshop: Any, plan: Any) -> None:
    port = free_port()
    failure = workshop.fail(NativeEngine(patience=NO_RETRIES), plan("count", at=f"http://127.0.0.1:{port}"))

    assert failure.reason == "connection" and failure.message == f"No connection to 127.0.0.1:{port}."


def test_a_missing_key_names_its_variable_and_asks_nobody(workshop: Any, plan: Any, llmock: Any) -> None:
    workshop.environ.clear()

    failure = workshop.fail(NativeEngine(), plan("count", at=llmock.url))

    assert failure.reason == "auth" and "LAB_KEY" in failure.message
    assert llmock.requests == []


def test_a_server_without_a_key_gets_none_of_ours(workshop: Any, plan: Any, llmock: Any) -> None:
    workshop.environ["OPENAI_API_KEY"] = os.environ["OPENAI_API_KEY"]

    workshop.run(NativeEngine(), plan("count", at=llmock.url, key_env=None))

    assert os.environ["OPENAI_API_KEY"] not in str(llmock.last_request)
