"""Say a made-up option in every way an option can be said; print as JSON what became of each."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subagents_nb import agents, launch, preflight, settings, step
from subagents_nb.cli import main
from subagents_nb.errors import SubagentsError
from subagents_nb.notebook.magics.magics import magics_of

ECHO = "--model scripted:echo"
STEP = "- scout: Look around\n"


def reasons(call: Callable[[], Any]) -> list[str]:
    try:
        return list(call().reasons)
    except SubagentsError as error:
        return list(getattr(error, "reasons", [str(error)]))


def in_terminal(*words: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        main(words)
    return said.getvalue()


def by_default(value: str) -> list[str]:
    magics.quiet_time = value
    try:
        return reasons(lambda: magics.subagent(f"scout {ECHO} --dry-run", "x"))
    finally:
        magics.quiet_time = ""


magics: Any = magics_of()()
body = Path("chain.yaml")
body.write_text(STEP, encoding="utf-8")
found: dict[str, Any] = {
    "python": reasons(lambda: preflight("scout", "x", model="scripted:echo", quiet_time="never")),
    "step": step("scout", "x", quiet_time="2m").model_dump()["quiet_time"],
    "signatures": all("quiet_time" in inspect.signature(one).parameters for one in (launch, step)),
    "cell": reasons(lambda: magics.subagent(f"scout {ECHO} --quiet-time never --dry-run", "x")),
    "chain": reasons(lambda: magics.subagent_chain(f"{ECHO} --quiet-time never --dry-run", STEP)),
    "key": reasons(lambda: magics.subagent_chain(f"{ECHO} --dry-run", f"{STEP}  quietTime: never\n")),
    "sweep": reasons(lambda: magics.subagent(f"scout {ECHO} --sweep quiet_time=never --dry-run", "x")),
    "terminal": in_terminal("chain", str(body), "--model", "scripted:echo", "--quiet-time", "never"),
    "help": "how long it may say nothing" in magics.subagent.getdoc(),
    "default": by_default("never"),
}
folder = Path(".subagents/agents")
folder.mkdir(parents=True)
for name, line in {"a": "quietTimeMs: 1500", "b": "quiet_time: 2m"}.items():
    (folder / f"{name}.md").write_text(f"---\nname: {name}\ndescription: d\n{line}\n---\n", encoding="utf-8")
found["files"] = {one.name: one.model_dump().get("quiet_time_s") for one in agents().agents if one.name in "ab"}
(folder.parent / "settings.toml").write_text('quiet = "3m"\n', encoding="utf-8")
found["settings"] = settings().model_dump()["quiet_s"]
asked: list[dict[str, Any]] = [{"agent": "scout", "quiet_time": "2m"}, {"agent": "a"}, {"agent": "scout"}]
plans = [preflight(task="x", model="scripted:echo", **one).plan for one in asked]
found["plans"] = [plan and plan.steps[0].model_dump()["quiet_time_s"] for plan in plans]
os.environ["SUBAGENTS_NB_QUIET_TIME"] = "4m"
found["environment"] = settings().model_dump()["quiet_s"]
print(json.dumps(found))
