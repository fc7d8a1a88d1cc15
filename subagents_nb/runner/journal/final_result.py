"""From the accounts of its steps to the result of a run, and onto a disk that may refuse it at first."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.reads import ReadLog
from subagents_nb.domain.runs.records import Actor, EndReason, RunResult, RunStatus
from subagents_nb.domain.runs.stages import Stage
from subagents_nb.domain.runs.states import RunEvent
from subagents_nb.domain.values.usage import total
from subagents_nb.runner.journal.account import StepAccount, truncated
from subagents_nb.runner.journal.work_clock import WorkClock
from subagents_nb.store.clock import utc_now

_FIRST_RETRY_S, _LAST_RETRY_S, _GIVE_UP_S = 0.1, 5.0, 600.0


def final_result(
    plan: LaunchPlan,
    status: RunStatus,
    accounts: Sequence[StepAccount],
    *,
    event: RunEvent,
    reason: EndReason | None,
    actor: Actor,
    error: str | None,
    clock: WorkClock,
    stages: tuple[Stage, ...],
    reads: ReadLog | None,
) -> RunResult:
    """Return the result of a run whose steps have all been settled; `status` is how it stood."""
    now, well = clock.worked_s, event is RunEvent.COMPLETE
    steps = tuple(account.result for account in accounts if account.result is not None)
    if reads is not None:  # what a person added to the contract meanwhile counts as not known
        steered = any(receipt.outcome == "delivered" for receipt in status.steering)
        reads = reads.with_unknown(steered=steered, appended=len(stages) > len(plan.items))
    fields = {
        "reason": reason,
        "error": error,
        "elapsed_s": round(now, 3),
        "waited_s": round(clock.waited_s, 3),
        "usage": total(step.usage for step in steps),
        "stages": stages,
    }
    return RunResult(
        **status.to(event).head() | fields,
        actor=actor,
        ended_at=utc_now(),
        steps=tuple(truncated(step) for step in steps) if plan.is_flow else steps,
        resumed_from=plan.resumes.run_id if plan.resumes else None,
        changed_files=tuple(dict.fromkeys(name for account in accounts for name in account.changed_files)),
        changed_meanwhile=tuple(dict.fromkeys(name for account in accounts for name in account.changed_meanwhile)),
        open_tools=() if well else tuple(row for account in accounts for row in account.open_rows(now)),
        tail="" if well else next((account.status.tail for account in accounts if account.status.tail), ""),
        artifacts=tuple(artifact for account in accounts for artifact in account.artifacts),
        reads=reads,
    )


def retry_until_written(write: Callable[[], object], *, give_up_s: float = _GIVE_UP_S) -> str | None:
    """Store the result by `write`; return None once it is stored, or why it could not be.

    Where the directory is gone there is nothing to wait for.
    """
    wait, deadline = _FIRST_RETRY_S, time.monotonic() + give_up_s
    while True:
        try:
            write()
        except OSError as error:
            gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
            if gone or time.monotonic() + wait > deadline:
                why = "the run's directory is gone" if gone else _error_text(error)
                print(f"result not stored: {why}", file=sys.stderr, flush=True)  # noqa: T201
                return why
            time.sleep(wait)
            wait = min(wait * 2, _LAST_RETRY_S)
        else:
            return None


def _error_text(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__
