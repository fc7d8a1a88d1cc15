"""A tool call in the plain words by which it is judged: paths where they really are, shell lines taken apart."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subagents_nb.domain.agents.skills import SKILLS_VARIABLE
from subagents_nb.domain.policy.policy_rules import PATH_TOOLS
from subagents_nb.domain.policy.tool_call import CallPath, ToolCall
from subagents_nb.domain.policy.tool_names import DELEGATE, REPLY, SKILL, tool_called
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.tools.shell_parser import parse_line

_NUMBER = re.compile(r"-\d+\Z")
_LOOKS_BELOW = ("find", "grep")
_NAMES = {DELEGATE: ("agent", "name"), SKILL: ("id", "name", "skill")}


@dataclass(frozen=True, slots=True)
class CallRoots:
    """Where the paths of a step's calls may lie."""

    cwd: Path
    own: Path | None = None  # the run's own folder
    given: tuple[tuple[str, Path], ...] = ()  # what the plan gave: inputs and skills, by what the file tools call them

    @classmethod
    def of(cls, context: StepContext) -> CallRoots:
        """Return the places of a step."""
        roots = [(one.folder, one.root) for one in (context.inputs, context.skills) if one is not None]
        if context.skills is not None:
            named = (f"${SKILLS_VARIABLE}", f"${{{SKILLS_VARIABLE}}}")
            roots += [(name, context.skills.root) for name in named]
        return cls(context.cwd, context.files, tuple(roots))

    def at(self, written: str) -> CallPath:
        """Return where a path of a call really lies: links followed, as far as there is something to follow."""
        root = os.path.realpath(self.cwd)
        first, _, inner = os.path.normpath(written).partition("/")
        folder = dict(self.given).get(first)
        real = os.path.realpath(os.path.join(root, written) if folder is None else folder / inner)
        relative = _below(real, root) if folder is None else os.path.normpath(written)
        ours = [folder for _, folder in self.given] + ([] if self.own is None else [self.own])
        is_given = any(_below(real, os.path.realpath(one)) is not None for one in ours)
        as_written = os.path.normpath(os.path.join(self.cwd, written))
        also = [_below(as_written, os.path.normpath(self.cwd)), os.path.normpath(written)]
        home = _below(real, os.path.realpath(os.path.expanduser("~")))
        return CallPath(
            written=written,
            relative=relative,
            absolute=real,
            home=None if home is None else f"~/{home}",
            also=tuple(dict.fromkeys(one for one in also if one and not one.startswith(("/", "..")))),
            given=is_given,
        )


def _below(path: str, folder: str) -> str | None:
    inner = os.path.relpath(path, folder)
    return None if inner.split("/", 1)[0] == ".." else inner


def judged_call(name: str, args: Mapping[str, Any], own: Collection[str], places: CallRoots) -> ToolCall:
    """Return what is judged of a call; `own` are the names of our tools that the step has."""
    if name == REPLY and name in own:  # to a run that was delegated: `leaf`, `leaf-2`
        return ToolCall(DELEGATE, name=_NUMBER.sub("", str(args.get("child", "")).rpartition("/")[2]))
    tool = tool_called(name, own)
    if tool in PATH_TOOLS:
        path = args.get("path", ".")
        # A pattern that climbs looks at more than its folder.
        climbs = tool == "find" and ".." in str(args.get("pattern", "")).split("/")
        written = "." if climbs or not isinstance(path, str) or "\0" in path else path
        return ToolCall(tool, path=places.at(written), below=tool in _LOOKS_BELOW, widened=written != path)
    if tool == "bash":
        return ToolCall(tool, line=parse_line(str(args.get("command", ""))))
    named = next((str(args[key]) for key in _NAMES.get(tool, ()) if isinstance(args.get(key), str)), "")
    return ToolCall(tool, name=named)
