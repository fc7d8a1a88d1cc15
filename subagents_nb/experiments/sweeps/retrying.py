"""Launch again what failed, and nothing else."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RequestError
from subagents_nb.experiments.sweeps.sweep import Sweep
from subagents_nb.launching import Run, Runs
from subagents_nb.launching.stored.selecting import runs_of
from subagents_nb.store import FileRuns, open_home

_FAILED = (RunState.FAILED, RunState.LOST, RunState.STOPPED, RunState.REJECTED)


def retry(runs: Any) -> Runs:
    """Start a new run of the very plan of each that failed, was lost, stopped or rejected; return the new ones.

    The others stay as they are. Of a sweep, cells without a run are launched too.

    Raises:
        RequestError: none of them failed.
        LaunchRefused, StoreError, LaunchError: one can't be launched; those before it go on.
    """
    if isinstance(runs, Sweep):
        before = set(runs.ids)
        runs.retry()
        return runs.listed([run_id for run_id in runs.ids if run_id not in before])
    chosen = runs_of(runs)
    failed = [run for run in chosen if run.state in _FAILED]
    if not failed:
        what = "The run did not fail" if len(chosen) == 1 else f"None of these {len(chosen)} runs failed"
        raise RequestError(f"{what}, so there is nothing to launch again. For a second run of one: run.launch_again().")
    return _listed([run.launch_again() for run in failed])


def _listed(runs: list[Run]) -> Runs:
    home = runs[0].home if runs else open_home(create=False)
    reader = FileRuns(home)
    return Runs(home, [reader.snapshot(run.id) for run in runs])
