"""Where things lie. Every path of a run is built here, and only from an id that matched the pattern."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from subagents_nb.domain.values.ids import is_run_id
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.errors import StoreError, UnknownRun
from subagents_nb.store.files.disk import PRIVATE_DIR

HOME_VARIABLE = "SUBAGENTS_NB_HOME"


class _Below:
    """A path below the root of its owner."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __get__(self, owner: RunPaths | StoreHome, kind: type) -> Path:
        return owner.root / self._place


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The files of one run."""

    root: Path

    plan = _Below("plan.json")
    status = _Below("status.json")
    events = _Below("events.jsonl")
    result = _Below("result.json")
    reads = _Below("reads.json")  # what a run at work has read so far
    imported = _Below("imported.json")  # says that the run came in an archive
    process = _Below("process.json")
    candidate = _Below("candidate.json")
    children = _Below("children.jsonl")  # the processes that the runner started and has not seen end
    verdict = _Below("verdict.json")
    recovery = _Below("recovery.json")
    appended = _Below("appended.json")  # what was appended to a chain
    applied = _Below("applied")  # its time says when the work of worktrees was last put into the repository
    control = _Below("control")
    answers = _Below("control/answers")
    questions = _Below("questions")
    scores = _Below("scores")
    launches = _Below("launches")  # what it delegates, and the answers
    lock = _Below("lock")
    launching = _Below(".launching")  # the launcher's lock: from before there is a plan until there is a status
    due = _Below(".due")  # its time says when the runner should have ended, by the monotonic clock; 0: there is none
    seen = _Below(".seen")  # is there when the person has looked at how the run ended
    out = _Below("runner.out")
    err = _Below("runner.err")

    def reply(self, question_id: str) -> Path:
        return self.questions / f"{question_id}.reply.json"

    def child_ask(self, ask_id: str) -> Path:
        return self.launches / f"{ask_id}.json"

    def child_answer(self, ask_id: str) -> Path:
        return self.launches / f"{ask_id}.answer.json"

    def session(self, sha256: str) -> Path:
        """The copy of a conversation of another run that a step goes on from."""
        return self.root / "sessions" / f"{sha256}.json"

    def step(self, index: int) -> Path:
        return self.root / "steps" / str(index)


@dataclass(frozen=True, slots=True)
class StoreHome:
    """The root of everything kept on disk for one user."""

    root: Path

    runs = _Below("runs")
    capacity = _Below("capacity")
    supervisor = _Below("supervisor")
    sweeps = _Below("sweeps")

    def run(self, run_id: str) -> RunPaths:
        """Return the paths of a run.

        Raises:
            UnknownRun: the text is no run id; it never becomes a path.
        """
        return RunPaths(Path(self.run_folder(run_id)))

    def run_folder(self, run_id: str) -> str:
        """Return a run's directory as text: listing thousands of runs can't afford path objects.

        Raises:
            UnknownRun: the text is no run id.
        """
        if not is_run_id(run_id):
            raise UnknownRun(f"{run_id!r} is no run id")
        return f"{self.root}{os.sep}runs{os.sep}{run_id}"


def default_home() -> Path:
    """Return the store's root: SUBAGENTS_NB_HOME, else the user's data directory."""
    named = os.environ.get(HOME_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    return Path(platformdirs.user_data_dir("subagents-nb", appauthor=False))


def open_home(path: Path | None = None, *, create: bool = True) -> StoreHome:
    """Return the store's home, made private if it is new and checked if it is not.

    Raises:
        StoreError: it is a link, belongs to somebody else, or others can write to it.
    """
    home = StoreHome(path or default_home())
    for directory in (home.root, home.runs, home.supervisor):
        _check_private(directory, create=create)
    return home


def _check_private(directory: Path, *, create: bool) -> None:
    try:
        info = directory.lstat()
    except FileNotFoundError:
        if create:
            _make(directory)
        return
    except OSError as error:
        raise StoreError(f"The run store {directory} can't be used: {error.strerror}. {_other_home_hint()}") from error
    if stat.S_ISLNK(info.st_mode):
        raise StoreError(f"The run store {directory} is a symbolic link, which could be turned. {_other_home_hint()}")
    if not stat.S_ISDIR(info.st_mode):
        raise StoreError(f"The run store {directory} is not a directory. {_other_home_hint()}")
    if os.name == "nt":
        return
    if info.st_uid != os.getuid():
        raise StoreError(f"The run store {directory} belongs to another user. {_other_home_hint()}")
    if info.st_mode & 0o022:
        close = f"chmod 700 {directory}"
        raise StoreError(Reason(f"Others can write to the run store {directory}. Run: {close}", advice=close))
    if info.st_mode & 0o055:
        directory.chmod(PRIVATE_DIR)


def _make(directory: Path) -> None:
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=PRIVATE_DIR, exist_ok=True)
    except OSError as error:
        raise StoreError(f"The run store {directory} can't be made: {error.strerror}. {_other_home_hint()}") from error


def _other_home_hint() -> str:
    return f"Set {HOME_VARIABLE} to a directory of your own."
