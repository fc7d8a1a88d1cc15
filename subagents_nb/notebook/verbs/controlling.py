"""The verbs that act on a live run: stop, interrupt, steer, answer, append, retune, drain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subagents_nb.terminal import say

if TYPE_CHECKING:
    from subagents_nb.domain.runs.control import ControlAnswer
    from subagents_nb.launching import Run
    from subagents_nb.notebook.verbs.call import Call

_STEERED = {
    "delivered": "the agent was told.",
    "queued": "waiting; the agent is told before its next request, or when its turn is over.",
    "too-late": "too late, it ended first.",
}


def stop(call: Call) -> tuple[list[Run], list[Run]]:
    """Stop runs, or one step; return which were meant and which had not ended yet."""
    from subagents_nb import launching
    from subagents_nb.launching.stored.selecting import runs_of

    options = call.options
    if bool(options.run) == options.all:
        call.refuse("say which run, or --all for all that are live")
    meant = runs_of(call.meant()) if options.run else list(launching.runs(state="live"))
    if options.step is not None and len(meant) != 1:
        call.refuse("--step is of one run")
    asked = [run for run in meant if run.stop(options.reason, step=options.step, asked_by=call.asked_by)]
    for run in asked if options.step is None else ():
        call.settle(run)
    return meant, asked


def show_stopped(call: Call, stopped: tuple[list[Run], list[Run]]) -> Any:
    """Return the one run as it stands now, or a list of several."""
    from subagents_nb import launching
    from subagents_nb.notebook.cards.receipts import Receipt

    runs, asked = stopped
    if call.options.step is not None:
        return Receipt.about(runs[0].name, "stop requested", f"steps[{call.options.step}]; the others go on")
    if len(runs) == 1:
        (run,) = runs
        return run if asked else Receipt.about(run.name, f"{run.state} already", "there was nothing to stop")
    return launching.Runs(runs[0].home, [run.status for run in runs]) if runs else launching.runs(state="live")


def print_stopped(call: Call, stopped: tuple[list[Run], list[Run]]) -> int:
    """Print a line for each run."""
    runs, asked = stopped
    if call.options.step is not None and asked:
        say(f"{asked[0].name}: steps[{call.options.step}] is asked to stop; the others go on.")
        return 0
    return max([0, *(print_settled(call, run) for run in runs)])


def interrupt(call: Call) -> Run:
    """Pause a run."""
    call.run.interrupt(call.options.reason, asked_by=call.asked_by)
    call.settle(call.run)
    return call.run


def print_settled(_: Call, run: Run) -> int:
    """Print how a run stands; the code says whether it has ended."""
    from subagents_nb.notebook.cards.view import text_line

    say(text_line(run.status))
    return 0 if run.status.ended else 1


def steer(call: Call) -> ControlAnswer | None:
    """Say something to an agent; return its receipt, if one came in time."""
    options = call.options
    return call.run.steer(call.text, follow_up=options.follow_up, step=options.step, asked_by=call.asked_by)


def show_steered(call: Call, receipt: ControlAnswer | None) -> Any:
    """Say what became of it."""
    from subagents_nb.notebook.cards.receipts import steered

    return steered(call.run.status, receipt, follow_up=call.options.follow_up)


def print_steered(call: Call, receipt: ControlAnswer | None) -> int:
    """Say what became of it."""
    outcome = receipt.outcome if receipt is not None else "queued"
    say(f"{call.run.name}: {_STEERED.get(outcome, outcome)}")
    return int(outcome == "too-late")


def answer(call: Call) -> Any:
    """Answer a question; return the line that says which."""
    from subagents_nb.domain.runs.questions import brief
    from subagents_nb.notebook.cards.receipts import Receipt

    question = call.run.answer(call.text, question=call.options.question, asked_by=call.asked_by)
    return Receipt.about(call.run.name, "answered", brief(question))


def append(call: Call) -> Any:
    """Append items to a live chain; return the line that says what became of them."""
    from subagents_nb.errors import LaunchRefused
    from subagents_nb.launching.composing.appending import AppendRefused
    from subagents_nb.notebook.cards.receipts import Receipt

    run = call.run
    try:
        parsed = call.read_chain()
        taken = run.append(parsed.chain, asked_by=call.asked_by)
    except AppendRefused as refused:
        raise AppendRefused(parsed.located(refused.reasons)) from refused
    except LaunchRefused as refused:
        raise AppendRefused(refused.reasons) from refused
    count = len(parsed.chain.items)
    what = f"{count} item{'' if count == 1 else 's'}"
    if taken is None:
        return Receipt.about(run.name, "queued", f"{what}; the run is busy and takes them in later")
    return Receipt.about(run.name, "appended" if taken.outcome == "accepted" else taken.outcome, taken.text or what)


def retune(call: Call) -> Any:
    """Change the limits of a live run; return the line that says what became of it."""
    from subagents_nb.launching import Run
    from subagents_nb.notebook.cards.receipts import retuned

    limits = {**call.arguments_for(Run.retune), "cost_usd": call.options.cost}
    if not any(limits.values()):
        flags = (f"--{name.removesuffix('_usd').replace('_', '-')}" for name in limits)
        call.refuse(f"say what to change: {', '.join(flags)}")
    run = call.run
    changes = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in limits.items() if value)
    return retuned(run.name, run.retune(**limits, asked_by=call.asked_by), changes)


def _plain(value: Any) -> str:
    return f"{value:,.12g}" if isinstance(value, float) else str(value)


def drain(call: Call) -> Any:
    """Let a run start nothing new; return the line that says so."""
    from subagents_nb.notebook.cards.receipts import drained

    run = call.run
    return drained(run.name, run.drain(asked_by=call.asked_by), began=not run.status.ended_in_queue)


def too_late(said: Any) -> bool:
    """Whether the run had ended before it heard of it."""
    return bool(said.outcome == "too-late")
