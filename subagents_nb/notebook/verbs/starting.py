"""The verbs that start a run: launch, chain, resume, again, retry, and the demo of the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from subagents_nb.terminal import say

if TYPE_CHECKING:
    from subagents_nb.launching import Run, Runs
    from subagents_nb.notebook.magics.cells import CellCall
    from subagents_nb.notebook.verbs.call import Call

_DEMO_TASK = "Say in one short sentence why a program should write down what it is doing."


def launch(call: CellCall) -> Any:
    """Launch an agent on the text as its task."""
    return call.magics.launch(call)


def chain(call: Call) -> Any:
    """Launch the chain of the body."""
    return call.launch_chain()


def resume(call: Call) -> Any:
    """Go on from a run."""
    run = call.typed_run
    return call.begun(run.resume(**{**call.arguments_for(run.resume), "text": call.text, "origin": call.origin}))


def print_resumed(call: Call, run: Run) -> None:
    """Say which run goes on from which."""
    say(f"{run.name} goes on from {call.run.name}. See it: subagents-nb status {run.id}")


def again(call: Call) -> Any:
    """Launch the plan of a run again."""
    return call.begun(call.typed_run.launch_again(origin=call.origin))


def print_begun(_: Call, run: Run) -> None:
    """Say where a run is found, and whether it is a new one."""
    from subagents_nb.notebook.cards.reused import reused_line

    how = reused_line(run, run.status) if run.reused else "works in a process of its own"
    say(f"{run.name} {how}. See it: subagents-nb status {run.id}")


def retry(call: Call) -> Runs:
    """Launch again those of the runs that failed."""
    from subagents_nb import experiments
    from subagents_nb.notebook.verbs.looking import chosen

    fresh = experiments.retry(chosen(call, call.options.experiment))
    for run in fresh:
        call.expect_end(run)
    return fresh


def print_retried(call: Call, fresh: Runs) -> None:
    """Say where the new runs are found."""
    for run in fresh:
        print_begun(call, run)


def demo(call: Call) -> Run:
    """Launch a run and print its answer while it comes in."""
    from subagents_nb import launching, local_model

    model = call.options.model or ("scripted:echo" if local_model.available() else "local:smollm2")
    run = launching.launch("delegate", _DEMO_TASK, model=model, fresh=True)
    say(f"{run.name} works on {model}, in a process of its own: {run.id}\n")
    shown = 0
    while True:
        snapshot = run.status
        fresh = snapshot.status.steps[0].tail_end - shown if snapshot.status is not None else 0
        if fresh > 0:
            say(snapshot.tail[-fresh:], end="", flush=True)
            shown += fresh
        if snapshot.ended:
            break
        time.sleep(0.05)
    say(run.text[shown:] if snapshot.state == "complete" else "")
    return run


def print_demo(_: Call, run: Run) -> int:
    """Say how it ended."""
    say(f"\n{run.name} is {run.state}. See it again: subagents-nb status {run.id}")
    return 0 if run.status.error is None else 1
