"""Providers that are busy or stumble: who is asked again, when, and how that is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic_ai import exceptions as pai

from subagents_nb.domain.runs.events import ModelAsked, Noticed
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.native.request_retries import NO_RETRIES, RetryPolicy, pause_after

QUICK = RetryPolicy(first_s=0.001, longest_s=0.002)


def http(status: int, kind: Any = None, **more: Any) -> pai.ModelHTTPError:
    return pai.ModelHTTPError.for_category(kind, status_code=status, model_name="m", body=None, **more)


def busy(**more: Any) -> pai.ModelHTTPError:
    return http(429, pai.ModelRateLimitError, **more)


class Clock:
    """Counts the waits that no deadline counts."""

    def __init__(self) -> None:
        self.waits = 0
        self.open = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self.waits += 1
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1


@pytest.mark.parametrize(
    ("error", "attempt", "least", "most", "code"),
    [
        (busy(), 1, 0.75, 1.0, "rate-limited"),
        (busy(), 4, 6.0, 8.0, "rate-limited"),
        (http(503, pai.ModelUnavailableError), 2, 1.5, 2.0, "rate-limited"),
        (http(529, pai.ModelOverloadedError), 1, 0.75, 1.0, "rate-limited"),
        (busy(retry_after=20.0), 1, 20.0, 21.0, "rate-limited"),
        (http(503, retry_after=500.0), 1, 500.0, 501.0, "rate-limited"),
        (http(500, pai.ModelServerError), 1, 0.75, 1.0, "retrying"),
        (http(502, retry_after=3.0), 1, 3.0, 3.3, "rate-limited"),
        (http(408), 2, 1.5, 2.0, "retrying"),
        (pai.ModelConnectionError("m", "x", phase="connect"), 1, 0.75, 1.0, "retrying"),
        (pai.ModelTimeoutError("m", "x", phase="connect"), 1, 0.75, 1.0, "retrying"),
    ],
)
def test_who_may_be_asked_again_is_waited_for(
    error: Exception, attempt: int, least: float, most: float, code: str
) -> None:
    pause = pause_after(error, attempt, RetryPolicy(), "run-1")

    assert pause is not None and least <= pause.seconds <= most and pause.notice.code == code
    assert pause == pause_after(error, attempt, RetryPolicy(), "run-1"), "nothing is left to luck"
    assert pause != pause_after(error, attempt, RetryPolicy(), "run-2"), "runs come back apart"


@pytest.mark.parametrize(
    ("error", "attempt"),
    [
        (busy(), 5),
        (busy(retry_after=601.0), 1),
        (http(429, pai.ModelQuotaExceededError, retry_after=1.0), 1),
        (http(401, pai.ModelAuthenticationError), 1),
        (http(400), 1),
        (http(500), 3),
        (pai.ModelTimeoutError("m", "x", phase="read"), 1),
        (pai.ModelRequestTimeout("m", 600.0), 1),
        (pai.UnexpectedModelBehavior("x"), 1),
        (ZeroDivisionError(), 1),
    ],
)
def test_others_are_not_asked_again(error: Exception, attempt: int) -> None:
    assert pause_after(error, attempt, RetryPolicy(), "run-1") is None


def test_no_pause_is_longer_than_the_longest() -> None:
    pause = pause_after(busy(), 50, RetryPolicy(tries=99), "run-1")

    assert pause is not None and 45 <= pause.seconds <= 60


def test_a_busy_provider_is_asked_again_and_no_deadline_counts_the_wait(workshop: Any, plan: Any, plays: Any) -> None:
    clock = Clock()
    workshop.more["waiting"] = clock.waiting
    model = plays([busy(retry_after=0.001)], [busy()], ["after all"])

    outcome = workshop.run(NativeEngine(model, patience=QUICK), plan())

    assert outcome.text == workshop.text == "after all"
    assert clock.waits == 2 and clock.open == 0
    first, second = workshop.told(Noticed)
    assert first == Noticed("rate-limited", "The provider asks to wait 0.001 s.")
    assert second.code == "rate-limited" and "busy" in second.text
    assert workshop.told(ModelAsked) == [ModelAsked(1)] and outcome.usage.requests == 1
    assert len(workshop.messages) == 2


def test_a_provider_that_stays_busy_is_given_up(workshop: Any, plan: Any, plays: Any) -> None:
    failure = workshop.fail(NativeEngine(plays([busy(retry_after=0.001)]), patience=QUICK), plan())

    assert failure.reason == "rate-limit" and len(workshop.told(Noticed)) == 4


def test_an_answer_that_has_begun_is_not_asked_for_again(workshop: Any, plan: Any, plays: Any) -> None:
    failure = workshop.fail(NativeEngine(plays(["half ", busy()], ["whole"]), patience=QUICK), plan())

    assert failure.reason == "rate-limit" and workshop.text == "half " and workshop.told(Noticed) == []


def test_without_patience_nobody_is_asked_again(workshop: Any, plan: Any, plays: Any) -> None:
    failure = workshop.fail(NativeEngine(plays([http(500)], ["x"]), patience=NO_RETRIES), plan())

    assert failure.reason == "provider" and workshop.told(Noticed) == []


def test_a_wait_ends_at_once_when_the_run_is_stopped(workshop: Any, plan: Any, plays: Any) -> None:
    clock = Clock()
    workshop.more["waiting"] = clock.waiting
    model = plays([busy(retry_after=300.0)])

    async def main() -> float:
        reached = asyncio.Event()
        workshop.on = lambda event: reached.set() if isinstance(event, Noticed) else None
        task = asyncio.ensure_future(NativeEngine(model).run(plan(), workshop.context()))
        await reached.wait()
        began = asyncio.get_running_loop().time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(main()) < 1.0
    assert clock.waits == 1 and clock.open == 0
    assert workshop.messages, "the history is saved"
