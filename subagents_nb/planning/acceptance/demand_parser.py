"""The parts of an acceptance as people write them: criteria, evidence, commands, a reviewer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from subagents_nb.domain.acceptance.reports import criterion_id
from subagents_nb.domain.plans.acceptance import EVIDENCE, Criterion, Evidence, Review, Verify
from subagents_nb.domain.values.faults import nearest, shown, snake
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.words import one_line, parse_duration

MAX_CRITERIA = 50
MAX_COMMANDS = 20
_MAX_CHARS = 10_000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class AcceptanceParser:
    """One acceptance as it is read. A fault is noted and reading goes on, so that all are told at once."""

    def __init__(self, path: str, reasons: Reasons) -> None:
        self.path = path
        self._reasons = reasons
        self.well = True

    def commands(self, given: Any) -> tuple[Verify, ...]:
        """Return the commands that the runner is to run."""
        if given is None or given is False:
            return ()
        path = f"{self.path}.verify"
        entries = given if isinstance(given, list | tuple) else [given]
        if len(entries) > MAX_COMMANDS:
            self.refuse(path, f"it has {len(entries)} commands; at most {MAX_COMMANDS} are run")
            return ()
        found = [self._command(f"{path}[{number}]", number, entry) for number, entry in enumerate(entries)]
        self._unique(path, [one.id for one in found if one is not None])
        return tuple(one for one in found if one is not None)

    def _command(self, path: str, number: int, given: Any) -> Verify | None:
        if isinstance(given, Verify):
            return given
        if isinstance(given, str):
            given = {"command": given}
        if not isinstance(given, Mapping):
            self.refuse(path, f"it is a command, or a mapping with command, not {shown(given)}")
            return None
        part = self.keys(path, given, ("id", "command", "timeout", "timeout_ms", "cwd", "env", "allow_failure"))
        command = self.text(f"{path}.command", part.get("command"))
        name = self._id(f"{path}.id", part.get("id"), f"verify-{number + 1}")
        seconds, env = self._seconds(path, part), self._env(f"{path}.env", part.get("env"))
        folder = self._folder(f"{path}.cwd", part.get("cwd"))
        lenient = self._flag(f"{path}.allow_failure", part.get("allow_failure"), default=False)
        if not self.well:
            return None
        made = Verify(id=name, command=command, cwd=folder, env=env, allow_failure=lenient)
        return made if seconds is None else made.model_copy(update={"timeout_s": seconds})

    def _seconds(self, path: str, part: Mapping[str, Any]) -> float | None:
        given, milliseconds = part.get("timeout"), part.get("timeout_ms")
        if given is not None and milliseconds is not None:
            self.refuse(f"{path}.timeout_ms", "timeout says it already: keep one")
            return None
        if milliseconds is not None:
            if isinstance(milliseconds, bool) or not isinstance(milliseconds, int) or milliseconds < 1:
                self.refuse(f"{path}.timeout_ms", f"it is a whole number of milliseconds, not {shown(milliseconds)}")
                return None
            given = milliseconds / 1000 if milliseconds < 10**12 else math.inf
        if given is None:
            return None
        try:
            return parse_duration(given)
        except (ValueError, TypeError) as error:
            self.refuse(f"{path}.timeout", str(error))
            return None

    def _env(self, path: str, given: Any) -> dict[str, str]:
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            self.refuse(path, f"it is a mapping of variables, not {shown(given)}")
            return {}
        for name, value in given.items():
            if not isinstance(name, str) or not _VARIABLE.match(name):
                self.refuse(path, f"{shown(name)} can't name a variable")
            elif not isinstance(value, str) or "\0" in value:
                self.refuse(f"{path}.{name}", f"it is a text (put it in quotes), not {shown(value)}")
        return dict(given) if self.well else {}

    def _folder(self, path: str, given: Any) -> str | None:
        if given is None:
            return None
        folder = self.text(path, given)
        if folder.startswith(("/", "~")) or "\\" in folder or ".." in PurePosixPath(folder).parts:
            self.refuse(path, f"it is a folder below the working directory, not {shown(given)}")
        return folder

    def criteria(self, given: Any) -> tuple[Criterion, ...]:
        """Return what must hold."""
        path = f"{self.path}.criteria"
        if given is None:
            return ()
        entries = given if isinstance(given, list | tuple) else [given]
        if len(entries) > MAX_CRITERIA:
            self.refuse(path, f"it has {len(entries)} criteria; at most {MAX_CRITERIA} are judged")
            return ()
        found = [self._one_criterion(f"{path}[{number}]", number, entry) for number, entry in enumerate(entries)]
        self._unique(path, [one.id for one in found if one is not None])
        return tuple(one for one in found if one is not None)

    def _one_criterion(self, path: str, number: int, given: Any) -> Criterion | None:
        if isinstance(given, Criterion):
            return given
        if isinstance(given, str):
            given = {"must": given}
        if not isinstance(given, Mapping):
            self.refuse(path, f"it is a text, or a mapping with must, not {shown(given)}")
            return None
        part = self.keys(path, given, ("id", "must", "evidence", "severity"))
        must = self.text(f"{path}.must", part.get("must"))
        name = self._id(f"{path}.id", part.get("id"), f"criterion-{number + 1}")
        evidence = self.evidence(f"{path}.evidence", part.get("evidence"))
        severity = part.get("severity")
        if severity not in (None, "required", "recommended"):
            self.refuse(f"{path}.severity", f"it is required or recommended, not {shown(severity)}")
        if not self.well:
            return None
        return Criterion(id=name, must=must, evidence=evidence or (), severity=severity or "required")

    def evidence(self, path: str, given: Any) -> tuple[Evidence, ...] | None:
        """Return which evidence is asked for; None when nothing is said."""
        if given is None:
            return None
        found: dict[Evidence, None] = {}
        for entry in given if isinstance(given, list | tuple) else [given]:
            word = entry.strip().lower().replace("_", "-") if isinstance(entry, str) else ""
            kind = next((kind for kind in EVIDENCE if kind == word), None)
            if kind is None:
                near = nearest(word, EVIDENCE)
                hint = f"; did you mean {near}?" if near else f"; there are {', '.join(EVIDENCE)}"
                self.refuse(path, f"there is no evidence {shown(entry)}{hint}")
            else:
                found[kind] = None
        return tuple(found)

    def review(self, given: Any) -> Review | None:
        """Return who is to review the work."""
        path = f"{self.path}.review"
        if given is None or given is False:
            return None
        if isinstance(given, Review):
            return given
        if given is True:
            return Review()
        if not isinstance(given, Mapping):
            self.refuse(path, f"it is false, or a mapping with agent, focus, required, not {shown(given)}")
            return None
        part = self.keys(path, given, ("agent", "focus", "required"))
        agent = self.text(f"{path}.agent", part["agent"]) if part.get("agent") is not None else "reviewer"
        focus = self.text(f"{path}.focus", part["focus"]) if part.get("focus") is not None else None
        required = self._flag(f"{path}.required", part.get("required"), default=True)
        return Review(agent=agent, focus=focus, required=required) if self.well else None

    # --- the small parts ---

    def refuse(self, path: str, what: str) -> None:
        """Note a fault."""
        self.well = False
        self._reasons.append(f"{path}: {what}")

    def keys(self, path: str, given: Mapping[Any, Any], known: tuple[str, ...]) -> dict[str, Any]:
        """Return a mapping by its keys in snake_case; unknown and doubled ones are faults."""
        found: dict[str, Any] = {}
        for key, value in given.items():
            name = snake(key) if isinstance(key, str) else ""
            if name not in known:
                near = nearest(name, known)
                hint = f"did you mean {near}?" if near else f"the keys are {', '.join(known)}"
                self.refuse(f"{path}.{one_line(str(key), 60)}", f"unknown key; {hint}")
            elif name in found:
                self.refuse(f"{path}.{key}", "it is given twice")
            else:
                found[name] = value
        return found

    def text(self, path: str, given: Any) -> str:
        """Return a text that says something."""
        if not isinstance(given, str) or not given.strip():
            self.refuse(
                path, "it is missing" if given is None else f"it is a text that says something, not {shown(given)}"
            )
            return ""
        if "\0" in given or any("\ud800" <= char <= "\udfff" for char in given):
            self.refuse(path, "it holds a character that no command or model can be given")
        if len(given) > _MAX_CHARS:
            self.refuse(path, f"it has {len(given):,} characters, more than {_MAX_CHARS:,}")
        return given.strip()

    def texts(self, path: str, given: Any) -> tuple[str, ...]:
        """Return a list of texts."""
        if given is None:
            return ()
        entries = given if isinstance(given, list | tuple) else [given]
        return tuple(self.text(f"{path}[{number}]", entry) for number, entry in enumerate(entries[:MAX_CRITERIA]))

    def _flag(self, path: str, given: Any, *, default: bool) -> bool:
        if given is None or isinstance(given, bool):
            return default if given is None else given
        self.refuse(path, f"it is true or false, not {shown(given)}")
        return default

    def _id(self, path: str, given: Any, default: str) -> str:
        if given is None:
            return default
        name = criterion_id(given if isinstance(given, str) else str(given) if isinstance(given, int) else "")
        if not name:
            self.refuse(path, f"an id needs a letter or digit, and {shown(given)} has none")
        return name

    def _unique(self, path: str, ids: list[str]) -> None:
        for name in dict.fromkeys(name for name in ids if ids.count(name) > 1):
            self.refuse(path, f"the id {name!r} is there more than once")
