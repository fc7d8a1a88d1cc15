"""Pick the engine for a step, and get a fork server ready so that a forked run starts at once."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.runner.engines.engine import Engine


def engine_for(step: StepPlan) -> Engine:
    """Return the engine that carries the step out. A scripted step never imports pydantic-ai."""
    if step.model.kind == "scripted":
        from subagents_nb.runner.engines.scripted.scripted import ScriptedEngine

        return ScriptedEngine()
    from subagents_nb.runner.engines.native.native import NativeEngine

    return NativeEngine()


def load(steps: Iterable[StepPlan]) -> None:
    """Import all of ours that these steps can need: later it may be gone, for an upgrade waits for no run.

    What is missing now is told by the step that needs it.
    """
    for step in steps:
        with contextlib.suppress(ImportError):
            engine_for(step)
            if step.model.kind == "local":
                from subagents_nb.local_model import server  # noqa: F401
            if step.model.kind != "scripted" and "python" in step.tools:
                from subagents_nb.runner.engines.kernel import kernel_session  # noqa: F401


def warm_up() -> None:
    """Import what a run through OpenAI's protocol needs and build what its first run would build.

    Called once in the fork server, before its first fork. Leaves one thread, no event loop, no open connection. The
    caller freezes the collector afterwards; while this runs it is off, which halves the time.
    """
    with _uncollected():
        from subagents_nb.runner.engines.native.prewarm import prewarm

        prewarm("chat")


def warm_up_further() -> Iterator[None]:
    """Make ready, piece by piece, what some runs need beyond that; runs may be forked between the pieces."""
    with _uncollected():
        from subagents_nb.runner.engines.native.prewarm import load_prices

        load_prices()
    yield
    with _uncollected():
        from subagents_nb.runner.engines.kernel import kernel_session  # noqa: F401
    yield
    with _uncollected():
        from subagents_nb.runner.engines.native.prewarm import prewarm

        prewarm("responses")  # what reads its answers takes as long to build as a third of all the rest
    yield


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
