"""Where this process launches from: which notebook, which cell, which kernel. Magics and Python launches say the same.

IPython is never imported for it: where it is at work it stands in `sys.modules`, and its shell knows the cell.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from subagents_nb.catalog import project_root
from subagents_nb.domain.plans.plan import Origin
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.store import FileRuns, StoreHome, find_run
from subagents_nb.store.runs.lookup import ELSEWHERE, HERE, IMPORTED, IN_PROJECT
from subagents_nb.store.runs.raw_reader import read_raw

# One process, one value: of a kernel, who is told when its runs end.
SESSION = secrets.token_hex(8)
_NONINTERACTIVE = "SUBAGENTS_NB_NONINTERACTIVE"  # of `notebook/views/notifications.py`, which loads without this
_EXECUTED_ASKS_S = 60.0
_LOOKED_BACK = 200  # runs, for those of the kernel before


def origin_here(surface: Literal["magic", "python"] = "python", shell: Any = None) -> Origin:
    """Return where a launch is asked for; in a plain program only the process is known."""
    shell = current_shell() if shell is None else shell
    parent = parent_of(shell)
    return Origin(
        surface=surface,
        session=SESSION,
        notebook=notebook_of(shell) if shell is not None else None,
        cell_id=_without_path(cell_of(parent)),
        source_sha256=_source(parent),
        ask_timeout_s=asks_for(parent),
    )


def asks_for(parent: dict[str, Any]) -> float | None:
    """Return how long a permission may be waited for here. Who only executes notebooks may answer in a later cell."""
    if os.environ.get(_NONINTERACTIVE) == "1":
        return 0.0
    content = parent.get("content")
    takes_input = bool(content.get("allow_stdin", True)) if isinstance(content, dict) else True
    return None if takes_input else _EXECUTED_ASKS_S


def current_shell() -> Any:
    """Return IPython's shell, if this process has one."""
    module = sys.modules.get("IPython")
    getter: Any = getattr(module, "get_ipython", None)
    with contextlib.suppress(Exception):  # IPython may be half imported, or not be what we know
        return getter() if getter is not None else None
    return None


def notebook_here() -> str | None:
    """Return the notebook that this process is the kernel of, as `notebook_of`; None if it is none's, or unknown."""
    shell = current_shell()
    return notebook_of(shell) if shell is not None else None


def notebook_of(shell: Any) -> str | None:
    """Return the notebook's path relative to the current directory, or its bare name; never an absolute path.

    Jupyter's server gives it to the kernel's environment, Visual Studio Code to the namespace.
    """
    named = os.environ.get("JPY_SESSION_NAME") or getattr(shell, "user_ns", {}).get("__vsc_ipynb_file__")
    if not isinstance(named, str) or not named.endswith(".ipynb"):
        return None
    path = Path(named)
    try:
        return str(path.resolve().relative_to(Path.cwd())) if path.is_absolute() else str(path)
    except (ValueError, OSError):
        return path.name


def cell_of(parent: dict[str, Any]) -> str | None:
    """Return the id of the cell that is being run; None if the front end does not tell."""
    metadata = parent.get("metadata")
    cell_id = metadata.get("cellId") if isinstance(metadata, dict) else None
    return cell_id if isinstance(cell_id, str) else None


def meant_run(home: StoreHome, text: str) -> str:
    """Return the id of the run that a person means here by an id, a name or the beginning of an id.

    Raises:
        UnknownRun: nothing fits.
        AmbiguousRun: several fit.
    """
    return find_run(text, FileRuns(home), nearness=nearness(home))


def nearness(home: StoreHome) -> Callable[[str], int]:
    """Return what tells how near a run was launched: by this kernel or notebook, in this project, or elsewhere."""
    project, notebook = functools.cache(_project), notebook_here()

    def near(run_id: str) -> int:
        plan = read_raw(home, run_id, ("plan.json",))["plan.json"] or {}
        origin, cwd = plan.get("origin"), plan.get("cwd")
        origin = origin if isinstance(origin, dict) else {}
        imported = os.path.lexists(home.run(run_id).imported)
        if origin.get("session") == SESSION and not imported:
            return HERE
        if not isinstance(cwd, str) or project(cwd) != project(_here()):
            return ELSEWHERE
        if imported:
            return IMPORTED
        return HERE if notebook is not None and origin.get("notebook") == notebook else IN_PROJECT

    return near


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _project(cwd: str) -> str:
    try:
        return str(project_root(Path(cwd))) if cwd else ""
    except (OSError, ValueError, RuntimeError):
        return cwd


def parent_of(shell: Any) -> dict[str, Any]:
    """Return the message that the kernel answers just now; empty where there is none."""
    try:
        parent: Any = shell.get_parent() if hasattr(shell, "get_parent") else None
    except Exception:  # noqa: BLE001 - a host's own shell; where a launch came from must not keep it from beginning
        return {}
    return parent if isinstance(parent, dict) else {}


def _source(parent: dict[str, Any]) -> str | None:
    content = parent.get("content")
    code = content.get("code") if isinstance(content, dict) else None
    return sha256_text(code) if isinstance(code, str) else None


def _without_path(cell: str | None) -> str | None:
    """Return a cell's id; of Visual Studio Code's, which is a URI with the notebook's whole path, what follows it."""
    return cell.rpartition("#")[2] if cell is not None and "/" in cell else cell


def left_by_the_kernel_before(home: StoreHome, notebook: str) -> list[Snapshot]:
    """Return the runs that the last kernel of this notebook before ours launched, newest first."""
    project, snapshots, before = functools.cache(_project), list[Snapshot](), ""
    for run_id in FileRuns(home).ids()[:_LOOKED_BACK]:
        plan = read_raw(home, run_id, ("plan.json",), having=notebook.rpartition("/")[2].encode())["plan.json"] or {}
        origin, cwd = plan.get("origin"), plan.get("cwd")
        if not isinstance(origin, dict) or origin.get("notebook") != notebook or not isinstance(cwd, str):
            continue
        session = origin.get("session")
        if session in (SESSION, "") or (before and session != before) or project(cwd) != project(_here()):
            continue
        before = str(session)
        snapshots.append(FileRuns(home).snapshot(run_id))
    return snapshots
