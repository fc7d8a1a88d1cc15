"""Claim the output files of a launch, against other runs that are live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.launching.starting.reuse_search import settled
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.waiting.output_claims import output_claims


def claiming(
    home: StoreHome, cwd: str, paths: Sequence[str], *, own: str = ""
) -> AbstractContextManager[Callable[[str], None]]:
    """Give what claims these files of a directory for a run; `own` is a run that may hold them already.

    Raises:
        LaunchRefused, StoreError: as of `output_claims`.
    """
    return output_claims(home, cwd, paths, settled_in(home), own=own)


def settled_in(home: StoreHome) -> Callable[[str], Snapshot]:
    """Give what reads a run, once it is plain whether it works."""
    reader = FileRuns(home)
    return lambda run_id: settled(home, reader, run_id, alone=False)
