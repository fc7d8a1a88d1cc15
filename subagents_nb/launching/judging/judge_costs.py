"""What judges ask of models: their tokens and money, counted with the scores that they gave."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import inspect
import sys
import threading
from collections.abc import Awaitable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

USAGE = "usage"  # what a scorer that counts itself calls it among its scores
_NAMES = {  # ours, and how libraries call it
    "input_tokens": ("input_tokens", "prompt_tokens", "request_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "response_tokens"),
    "cost_usd": ("cost_usd",),
}


@contextlib.contextmanager
def counted(*, asks: bool) -> Iterator[dict[str, float]]:
    """Count what an agent of pydantic-ai uses meanwhile, if one is asked; of several, the first.

    Args:
        asks: a model is likely to be asked, so pydantic-ai is worth its import; else it counts where it is loaded.
    """
    used: dict[str, float] = {}
    if not asks and "pydantic_ai" not in sys.modules:
        yield used
        return
    with importlib.import_module("pydantic_ai").capture_run_messages() as messages:
        try:
            yield used
        finally:
            _count([one for one in messages if getattr(one, "kind", "") == "response"], used)


def _count(responses: list[Any], used: dict[str, float]) -> None:
    for one in responses:
        for name, number in usage_in(one.usage).items():
            used[name] = used.get(name, 0) + number
    if used:
        with contextlib.suppress(Exception):  # one has no price: then the sum is not known
            used["cost_usd"] = sum(float(one.cost().total_price) for one in responses)


def usage_in(value: Any) -> dict[str, float]:
    """Return tokens and money of what says them, a mapping or an object; nothing if it is none."""
    found: dict[str, float] = {}
    for name, names in _NAMES.items():
        for called in names:
            number = value.get(called) if isinstance(value, Mapping) else getattr(value, called, None)
            if isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < 1e15:
                found[name] = number
                break
    return found


def finished(given: Any) -> Any:
    """Return what was given, or what it comes to if it is to be awaited.

    That is done on a thread of its own: a kernel's loop is at work while a cell runs.
    """
    if not inspect.isawaitable(given):
        return given
    outcome: Future[Any] = Future()

    async def wait(awaitable: Awaitable[Any]) -> Any:
        return await awaitable

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(wait(given)))
        except BaseException as error:  # noqa: BLE001 - raised where the scorer was called
            outcome.set_exception(error)

    context = contextvars.copy_context()  # what it prints belongs into the cell that asks
    threading.Thread(target=context.run, args=(work,), name="subagents-nb-evaluator", daemon=True).start()
    return outcome.result()
