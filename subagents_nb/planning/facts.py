"""What planning needs to know of the world, looked up by somebody else and handed in."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.base import Value


class Facts(Value):
    """The world at the moment of a launch; every question planning may ask is answered here."""

    cwd: str  # absolute
    cwd_problem: str | None = None
    environ_names: frozenset[str] = frozenset()  # variables that are set and not empty
    local_problem: str | None = None  # why the embedded model can't serve; None: it can
    missing_extras: frozenset[str] = frozenset()  # extras whose client is not installed
    scripts: frozenset[str] = frozenset()  # names that `scripted:` may take, files of the workspace included
    project_context: str = ""
    attached_schema: dict[str, Any] | None = None  # of the answer of a run that a chain begins with
