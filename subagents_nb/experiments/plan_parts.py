"""What a plan says beside its parameters, in parts: tasks, prompts, tools, inputs and so on, each with a digest.

Only what the launch contract binds: runs that stand in for one another differ in none of it. Read leniently from plain
data, as rows are, and fast: of the parts that thousands of runs have in common each is hashed and held once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic_core import to_json

from subagents_nb.domain.values.base import sha256_text, stable_json

TASK, AGENT_FILE = "task", "agent_file"
PARTS = (TASK, AGENT_FILE, "system_prompt", "tools", "skills", "schema", "inputs", "settings")
_MAX_HELD = 50_000  # characters of a text whose lines may be shown
_SETTINGS = (
    "prompt_mode", "max_output", "progress", "acceptance", "delegates", "depth", "asks_parent_s", "tool_budget", "cwd",
    "sandbox", "reads", "output_name",
)  # fmt: skip
_PARTLY = {  # of what only a part is bound
    "model": ("kind", "provider", "name", "endpoint"),
    "worktree": ("base_commit", "subdir", "setup_hook"),
    "memory": ("scope", "path", "writes"),
    "output": ("path", "mode"),
}
_VARYING = {"task", "label", "title", "goal", "description", "phase", "lane"}
_NOT_OF_CEILINGS = ("origin", "ask_timeout_s")
_OF_SERVER = ("name", "command", "args", "cwd", "url")


class PlanParts:
    """The parts of many plans. `texts` holds each of them by its digest, cut where it is very long."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._plans: dict[bytes, dict[str, str]] = {}  # all but the tasks, of what else plans say
        self._last: tuple[list[Any], dict[str, str]] = ([], {})  # repeats often follow one another

    def of(self, plan: dict[str, Any]) -> dict[str, str]:
        """Return the digests of a plan's parts by their names; a part that a plan has not is not there."""
        named = [plan.get(name) for name in ("steps", "items", "inputs", "task")]
        if named != self._last[0]:  # to compare costs an eighth of what writing and hashing them does
            self._last = named, self._of(plan, named[:3])
        return self._last[1]

    def _of(self, plan: dict[str, Any], named: list[Any]) -> dict[str, str]:
        key = to_json(named, exclude={0: {"__all__": _VARYING}})
        if key not in self._plans:
            self._plans[key] = self._all_but_task(plan)
        return {TASK: self._of_task(plan)} | self._plans[key]

    def _all_but_task(self, plan: dict[str, Any]) -> dict[str, str]:
        steps = list(_all_steps(plan))
        found = {
            AGENT_FILE: self._of_text("\0".join(_text(step.get("agent_digest")) for step in steps), itself=True),
            "system_prompt": self._of_text("\n".join(_text(step.get("system_prompt")) for step in steps)),
            "tools": self._of_value([_tools(step) for step in steps]),
            "skills": self._of_value([one for step in steps for one in _pick(step.get("skills"), ("name", "sha256"))]),
            "schema": self._of_value([schema for step in steps if (schema := step.get("output_schema"))]),
            "inputs": self._of_value(_pick(plan.get("inputs"), _OF_INPUT)),
            # What the first is asked with is a parameter of its own: its model.
            "settings": self._of_value(
                [one for at, step in enumerate(steps) if (one := _settings(step, first=not at))]
            ),
        }
        return {name: digest for name, digest in found.items() if digest}

    def _of_task(self, plan: dict[str, Any]) -> str:
        steps = _list(plan.get("steps"))
        if items := _list(plan.get("items")):
            steps = [*steps, *(item.get("template") for item in items if isinstance(item, dict))]
        tasks = [_text(plan.get("task")), *[_text(step.get("task")) for step in steps if isinstance(step, dict)]]
        digest = sha256_text("\0".join(tasks))
        if digest not in self.texts:
            self.texts[digest] = "\n".join(filter(None, tasks))[:_MAX_HELD]
        return digest

    def _of_text(self, text: str, *, itself: bool = False) -> str:
        """Return the digest of a text; of a single digest, that."""
        if not text.strip("\0\n"):
            return ""
        if itself and "\0" not in text:
            return text
        digest = sha256_text(text)
        self.texts[digest] = text[:_MAX_HELD]
        return digest

    def _of_value(self, value: list[Any]) -> str:
        if not any(value):
            return ""
        digest = sha256_text(stable_json([_bound(one) for one in value]))
        self.texts[digest] = "\n".join(_lines(value[0] if len(value) == 1 else value))[:_MAX_HELD]
        return digest


_OF_INPUT = ("description", "name", "kind", "content_sha256", "sha256")


def _bound(value: Any) -> Any:
    """Leave out of an input what is for people, and the bytes of a file where what they hold is known."""
    if not isinstance(value, dict) or "description" not in value:
        return value
    left_out = {"description", "sha256" if value.get("content_sha256") else ""}
    return {name: one for name, one in value.items() if name not in left_out}


def _all_steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    templates = [item.get("template") for item in _list(plan.get("items")) if isinstance(item, dict)]
    for step in (*_list(plan.get("steps")), *templates):
        yield from _with_others(step)


def _with_others(step: Any) -> Iterator[dict[str, Any]]:
    """Yield a step, its reviewer, and whom it may delegate to."""
    if isinstance(step, dict):
        yield step
        for other in (step.get("reviewer"), *_list(step.get("children"))):
            if other:
                yield from _with_others(other)


def _tools(step: dict[str, Any]) -> list[Any]:
    names: list[Any] = sorted(name for name in _list(step.get("tools")) if isinstance(name, str))
    servers = _list(step.get("mcp"))
    for bound, server in zip(_pick(servers, _OF_SERVER), servers, strict=False):
        names.append({**bound, **{key: sorted(named) for key in ("env", "headers") if (named := server.get(key))}})
    return names


def _settings(step: dict[str, Any], *, first: bool) -> dict[str, Any]:
    found = {name: value for name in _SETTINGS if (value := step.get(name))}
    for name, fields in _PARTLY.items():
        value = step.get(name)
        if isinstance(value, dict):
            kept = ("endpoint",) if name == "model" and first else fields
            found[name] = {field: one for field in kept if (one := value.get(field))}
    found = {name: value for name, value in found.items() if value}
    policy = step.get("policy")
    if isinstance(policy, dict):
        found["policy"] = [
            {key: one for key, one in ceiling.items() if one and key not in _NOT_OF_CEILINGS}
            for ceiling in _list(policy.get("ceilings"))
            if isinstance(ceiling, dict)
        ]
    return found


def _pick(values: Any, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {field: value for field in fields if (value := one.get(field))}
        for one in _list(values)
        if isinstance(one, dict)
    ]


def _lines(value: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each single value, so that the first that differs says what it is about."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from _lines(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for one in value:
            yield from _lines(one, path)
    else:
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        yield from (f"{path}: {line}" if path else line for line in said.splitlines() or [""])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
