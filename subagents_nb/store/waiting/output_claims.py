"""Which run an output file of a workspace belongs to: one at a time, for two would take each other's answer.

    outputs/<path>      the run that was launched last with this file as an output; `lock` is held while one is

A claim is not given back: it holds as long as its run is live.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values.base import Value, sha256_text
from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.errors import LaunchRefused, StoreError, Unreadable
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR
from subagents_nb.store.files.lock import exclusive
from subagents_nb.store.layout import StoreHome

_FOLDER = "outputs"
_PATIENCE_S = 60.0


class OutputClaim(Value):
    """Whose an output file is."""

    path: str
    run_id: str


@contextlib.contextmanager
def output_claims(
    home: StoreHome, cwd: str, paths: Sequence[str], settled: Callable[[str], Snapshot], *, own: str = ""
) -> Iterator[Callable[[str], None]]:
    """Give what claims these output files for a run; nobody else claims any inside. `own` is a run that may hold them.

    `settled` reads a run, once it is plain whether it works.

    Raises:
        LaunchRefused: some belong to live runs; all of them are named.
        StoreError: somebody else is claiming all the time.
    """
    if not paths:
        yield lambda _run_id: None
        return
    places = _claim_paths(home, cwd, paths)
    folder = home.root / _FOLDER
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=PRIVATE_DIR)
    busy = StoreError(f"Another process has been claiming output files for {_PATIENCE_S:g} s.")
    with exclusive(folder / "lock", patience_s=_PATIENCE_S, what="The claims of output files", busy=busy):
        if reasons := held_outputs(home, cwd, paths, settled, own=own):
            raise LaunchRefused(reasons)

        def claim(run_id: str) -> None:
            for path, place in places.items():
                claimed = OutputClaim(path=path, run_id=run_id)
                DISK.replace(place, claimed.model_dump_json().encode(), durable=False)

        yield claim


def held_outputs(
    home: StoreHome, cwd: str, paths: Sequence[str], settled: Callable[[str], Snapshot], *, own: str = ""
) -> list[str]:
    """Say which of these files belong to live runs other than `own`, now; arguments as of `output_claims`."""
    reasons = []
    for path, place in _claim_paths(home, cwd, paths).items():
        holder = _holder(home, place)
        snapshot = settled(holder) if holder is not None and holder != own else None
        if snapshot is not None and snapshot.state is not None and snapshot.state.live:
            reasons.append(
                f"{path} is the output of {snapshot.name}, which is {snapshot.state}: a file belongs to one run at "
                "a time. Name another output, or wait for its end"
            )
    return reasons


def _claim_paths(home: StoreHome, cwd: str, paths: Sequence[str]) -> dict[str, Path]:
    folder = home.root / _FOLDER
    return {path: folder / sha256_text(os.path.realpath(os.path.join(cwd, path))) for path in paths}


def _holder(home: StoreHome, place: Path) -> str | None:
    with contextlib.suppress(Unreadable, ValidationError, OSError, ValueError):
        run_id = OutputClaim.model_validate_json(DISK.read(place)).run_id
        if is_run_id(run_id) and os.path.isdir(home.run_folder(run_id)):
            return run_id
    return None
