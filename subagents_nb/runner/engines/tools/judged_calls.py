"""A tool call in the plain words by which it is judged: paths where they really are, shell lines taken apart."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subagents_nb.domain.policy.policy_rules import PATH_TOOLS
from subagents_nb.domain.policy.tool_call import CallPath, ToolCall
from subagents_nb.domain.policy.tool_names import DELEGATE, SKILL, tool_called
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.tools.shell_parser import parse_line

_LOOKS_BELOW = ("find", "grep")
_NAMES = {DELEGATE: ("agent", "name"), SKILL: ("id", "name", "skill")}


@dataclass(frozen=True, slots=True)
class Places:
    """Where the paths of a step's calls may lie."""

    cwd: Path
    own: Path | None = None  # the run's own folder
    inputs: Path | None = None
    inputs_name: str = ""

    @classmethod
    def of(cls, context: StepContext) -> Places:
        """Return the places of a step."""
        given = context.inputs
        return cls(context.cwd, context.files, given.root if given else None, given.folder if given else "")

    def at(self, written: str) -> CallPath:
        """Return where a path of a call really lies: links followed, as far as there is something to follow."""
        root = os.path.realpath(self.cwd)
        first, _, inner = os.path.normpath(written).partition("/")
        if self.inputs is not None and first == self.inputs_name:
            real = os.path.realpath(self.inputs / inner)
            given = _below(real, os.path.realpath(self.inputs)) is not None
            relative: str | None = os.path.normpath(written)
        else:
            real = os.path.realpath(os.path.join(root, written))
            given = self.own is not None and _below(real, os.path.realpath(self.own)) is not None
            relative = _below(real, root)
        as_written = os.path.normpath(os.path.join(self.cwd, written))
        also = [_below(as_written, os.path.normpath(self.cwd)), os.path.normpath(written)]
        home = _below(real, os.path.realpath(os.path.expanduser("~")))
        return CallPath(
            written=written,
            relative=relative,
            absolute=real,
            home=None if home is None else f"~/{home}",
            also=tuple(dict.fromkeys(one for one in also if one and not one.startswith(("/", "..")))),
            given=given,
        )


def _below(path: str, folder: str) -> str | None:
    inner = os.path.relpath(path, folder)
    return None if inner.split("/", 1)[0] == ".." else inner


def judged_call(name: str, args: Mapping[str, Any], own: Collection[str], places: Places) -> ToolCall:
    """Return what is judged of a call; `own` are the names of our tools that the step has."""
    tool = tool_called(name, own)
    if tool in PATH_TOOLS:
        path = args.get("path", ".")
        # A pattern that climbs looks at more than its folder.
        climbs = tool == "find" and ".." in str(args.get("pattern", "")).split("/")
        written = "." if climbs or not isinstance(path, str) or "\0" in path else path
        return ToolCall(tool, path=places.at(written), below=tool in _LOOKS_BELOW)
    if tool == "bash":
        return ToolCall(tool, line=parse_line(str(args.get("command", ""))))
    named = next((str(args[key]) for key in _NAMES.get(tool, ()) if isinstance(args.get(key), str)), "")
    return ToolCall(tool, name=named)
