"""Find the run that already does, or did, what a launch asks for; or say why none can stand in for it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.agents.environment import comparable_environ
from subagents_nb.domain.agents.settings import REUSE_POLICIES, ReusePolicy
from subagents_nb.domain.plans.plan import Draft
from subagents_nb.domain.runs.reads import ReadLog, ReadsSoFar
from subagents_nb.domain.runs.records import RunResult
from subagents_nb.domain.runs.reuse import ANEW, changed_skills, contract_key, key_but_for_skills, reuse_miss
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchRefused, Unreadable
from subagents_nb.launching.gathering.memory_folders import memory_folders
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.store.files.fingerprints import (
    TooLong,
    Unsettled,
    file_sha256,
    names_below,
    names_sha256,
    own_names,
    variable_sha256,
)
from subagents_nb.store.files.globbing import Allowance
from subagents_nb.store.files.memory_files import memory_sha256
from subagents_nb.store.runs.contracts import locked, runs_of
from subagents_nb.store.runs.left import LeftFiles
from subagents_nb.store.runs.reader import read_document
from subagents_nb.supervisor.warm.reconcile import reconcile

_MOST_LOOKED_AT = 20  # of the newest runs of one contract
_BEGIN_S = 5.0  # a run that was let go on says so within milliseconds
_PAUSE_S = 0.005
_COMPARE_S = 3.0  # what a run read is compared for so long, with files of a gigabyte; then it is launched anew


@dataclass(frozen=True, slots=True)
class ReuseDecision:
    """What was found: the run that stands in, or why none does; a note for the card in both cases."""

    run_id: str | None = None
    note: str = ""
    draft: Draft | None = None  # as which plan of the launch it was found
    live: bool = False  # it was at work then

    @property
    def miss(self) -> str:
        """Return why no run stands in; empty where there was none of this contract."""
        return self.note.removeprefix(ANEW) if self.run_id is None else ""


NO_MATCH = ReuseDecision()


def policy_of(asked: str | None, default: ReusePolicy, *, fresh: bool) -> ReusePolicy:
    """Return which runs may stand in.

    Raises:
        LaunchRefused: there is no such policy.
    """
    if fresh:
        return "never"
    for policy in REUSE_POLICIES:
        if policy == (asked or default):
            return policy
    raise LaunchRefused([f"there is no reuse {asked!r}; it is one of {', '.join(REUSE_POLICIES)}"])


@contextlib.contextmanager
def matching(
    home: StoreHome, draft: Draft, policy: ReusePolicy, others: Sequence[Draft] = ()
) -> Iterator[ReuseDecision]:
    """Give what stands in for a launch; inside, nobody else launches the same contract.

    `others` are the plans that the launch may have had elsewhere; a run of one of them stands in too.

    Raises:
        StoreError: somebody else is launching it all the time.
    """
    key = contract_key(draft)
    if key is None or policy == "never":
        yield NO_MATCH
        return
    with locked(home, key):
        yield find_any(home, draft, others, policy, alone=True)


def find_any(
    home: StoreHome, draft: Draft | None, others: Sequence[Draft], policy: ReusePolicy, *, alone: bool = False
) -> ReuseDecision:
    """Find what stands in for a launch by its own plan, else by one of the others; say why none of its own does."""
    match = NO_MATCH if draft is None else find(home, draft, policy, alone=alone)
    if match.run_id is None:
        alternatives = (find(home, other, policy) for other in others)
        match = next((found for found in alternatives if found.run_id is not None), match)
    return match


def find(home: StoreHome, draft: Draft, policy: ReusePolicy, *, alone: bool = False) -> ReuseDecision:
    """Find what stands in for a launch. `alone` says that nobody else can be launching the same just now.

    The newest comes first, and the user's own runs before those that came in an archive.
    """
    key = contract_key(draft)
    if key is None or policy == "never":
        return NO_MATCH
    reader, reasons, cwd = FileRuns(home), [], Path(draft.cwd)
    ids = runs_of(home, key)
    imported = {run_id for run_id in ids if _is_imported(home, run_id)}
    for run_id in sorted(ids, key=imported.__contains__)[:_MOST_LOOKED_AT]:
        snapshot = settled(home, reader, run_id, alone=alone and run_id not in imported)
        live = snapshot.state is not None and snapshot.state.live
        if live and run_id not in imported:
            why = _changed_meanwhile(home, snapshot, cwd)
            if why is None:
                return ReuseDecision(run_id, "It is at work already.", draft, live=True)
        else:
            replaced: list[str] = []
            why = _miss(home, snapshot, cwd, policy, replaced=replaced)
            if why is None:
                reads = snapshot.result.reads if snapshot.result is not None else None
                return ReuseDecision(run_id, _note_of(replaced, reads), draft)
        reasons.append((not live and snapshot.state is not RunState.COMPLETE, why))
    if not reasons:
        return _by_skills(home, reader, draft)
    # What keeps a good run from standing in says more than that another one failed.
    return ReuseDecision(None, f"{ANEW}{min(reasons, key=lambda one: one[0])[1]}.")


def _by_skills(home: StoreHome, reader: FileRuns, draft: Draft) -> ReuseDecision:
    """Say which skill it is that no run of this contract is there, if one is that had another content of it."""
    key = key_but_for_skills(draft)
    for run_id in runs_of(home, key)[:_MOST_LOOKED_AT] if key is not None else ():
        snapshot = reader.snapshot(run_id, whole=True)
        if snapshot.plan is not None and (names := changed_skills(draft, snapshot.plan)):
            changed = f"skill {names[0]}" if len(names) == 1 else f"skills {', '.join(names)}"
            return ReuseDecision(None, f"{ANEW}{changed} changed since {snapshot.name}.")
    return NO_MATCH


def current_miss(
    home: StoreHome, snapshot: Snapshot, cwd: Path, policy: ReusePolicy, *, good: Collection[RunState]
) -> str | None:
    """Return why a run of the same contract, as it was just read, can't stand in for a new one; None if it can.

    `good` are the states in which an ended one may.
    """
    if snapshot.state is not None and snapshot.state.live and not _is_imported(home, snapshot.run_id):
        return _changed_meanwhile(home, snapshot, cwd)
    return _miss(home, snapshot, cwd, policy, good)


def settled(home: StoreHome, reader: FileRuns, run_id: str, *, alone: bool) -> Snapshot:
    """Read a run that a launcher may have left half begun, once it is plain whether it works.

    `alone` says that nobody else can be launching it just now.
    """
    deadline = time.monotonic() + (_BEGIN_S if alone else 0.0)
    while True:
        snapshot = reader.snapshot(run_id)
        if not snapshot.ended and reconcile(home, [run_id]):
            snapshot = reader.snapshot(run_id)
        status = snapshot.status
        if snapshot.state is not RunState.QUEUED or (status is not None and status.queue_keeper is not None):
            return snapshot
        if alone and status is None:
            # Whoever launches holds the lock, and that is us: this launcher is dead, and its run never worked.
            return Snapshot(run_id=run_id)
        if time.monotonic() >= deadline:
            return snapshot
        time.sleep(_PAUSE_S)


def _miss(
    home: StoreHome,
    snapshot: Snapshot,
    cwd: Path,
    policy: ReusePolicy,
    good: Collection[RunState] = (RunState.COMPLETE,),
    *,
    replaced: list[str] | None = None,
) -> str | None:
    result = snapshot.result
    if result is None:
        if snapshot.state is None:
            return f"{snapshot.name} never began" if not snapshot.damage else f"{snapshot.name} can't be read"
        return f"{snapshot.name} is {snapshot.state}"
    left_files = LeftFiles(home, cwd)
    why = reuse_miss(result, policy, good, explained=lambda path: _is_anothers(left_files, path, result))
    if why is not None or result.reads is None:
        return why
    artifact_paths = frozenset(one.workspace for one in result.artifacts if one.path and one.workspace is not None)

    def is_replaced(path: str, now: str | None) -> bool:
        last = left_files.last(path)
        if path not in artifact_paths or last is None or last.sha256 != now:
            return False
        if replaced is not None:
            replaced.append(path)
        return True

    here = not _is_imported(home, snapshot.run_id)
    return _differs(cwd, result.reads, result.name, is_replaced, here=here)


def _note_of(replaced: Sequence[str], reads: ReadLog | None) -> str:
    notes = [] if reads is None or not (compared := reads.compared) else [f"compared: {compared}"]
    if replaced:
        more = f" and {len(replaced) - 1} more" if len(replaced) > 1 else ""
        own = "this run's own is among its artifacts"
        notes.append(f"in the workspace {replaced[0]}{more} is what a later run left, {own}")
    return "; ".join(notes)


def _is_anothers(left_files: LeftFiles, path: str, result: RunResult) -> bool:
    """Say whether what changed while a run was at work is known to be another run's doing."""
    last = left_files.last(path)
    with contextlib.suppress(Unsettled):
        return last is not None and last.run_id != result.run_id and file_sha256(left_files.cwd, path) == last.sha256
    return False


def _is_imported(home: StoreHome, run_id: str) -> bool:
    return os.path.lexists(home.run(run_id).imported)


def _changed_meanwhile(home: StoreHome, snapshot: Snapshot, cwd: Path) -> str | None:
    """Return what a run at work has read and would no longer find so; what it did itself in the workspace aside."""
    try:
        log = read_document(home.run(snapshot.run_id).reads, ReadsSoFar, snapshot.run_id).reads
    except Unreadable:
        return None
    changed = {*log.changed, *log.meanwhile}
    files = tuple(one for one in log.files if one.path not in changed)
    checked_log = log.model_copy(update={"files": files, "left": (), "names": () if changed else log.names})
    return _differs(cwd, checked_log, snapshot.name, here=True)


def _differs(
    cwd: Path,
    reads: ReadLog,
    name: str,
    is_replaced: Callable[[str, str | None], bool] = lambda _path, _now: False,
    *,
    here: bool,
) -> str | None:
    """Return what is not as the run of this name saw or left it, or that this can't be told in good time.

    The patterns are a model's and the files as large as they may be; who launches waits for this. An artifact is kept
    with its run, so in the workspace a later run of ours may have replaced it. A run that was not made `here` saw the
    variables of another machine, which are not compared.
    """
    allowance = Allowance(seconds=_COMPARE_S)
    environ = comparable_environ(os.environ) if reads.variables else {}
    for variable in reads.variables if here else ():
        if variable_sha256(environ.get(variable.name)) != variable.sha256:
            return f"the variable {variable.name} changed since {name}"
    try:
        for one in (*reads.files, *reads.left):
            now = file_sha256(cwd, one.path, allowance=allowance)
            if now != one.sha256 and not (one in reads.left and is_replaced(one.path, now)):
                what = "is there" if one.sha256 is None else "is gone" if now is None else "changed"
                return f"{one.path} {what} since {name}"
        folders = memory_folders(cwd) if reads.memory else {}
        for file in reads.memory:
            if memory_sha256(Path(folders[file.scope].path), file.path) != file.sha256:
                return f"the memory {file.path} of the {file.scope} changed since {name}"
        own = own_names(reads.own)
        for seen in reads.names:
            names = names_below(cwd, seen.path, seen.pattern, seen.include, sizes=seen.sizes, allowance=allowance)
            if names_sha256(names, own) != seen.sha256:
                where = "the workspace" if seen.path == "." else seen.path
                what = "names or sizes" if seen.sizes else "names"
                return f"the {what} in {where} changed since {name}"
        if reads.git is not None:
            from subagents_nb.store.git.asked_state import git_state

            if git_state(cwd, reads.git.without) != reads.git.sha256:
                return f"what git says of the workspace changed since {name}"
    except TooLong as error:
        return f"nobody knows in good time whether what {name} read is still so ({error})"
    except Unsettled as error:
        return f"{error}, since {name}"
    return None
