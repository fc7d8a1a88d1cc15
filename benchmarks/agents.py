"""What a launch costs where many agents lie, of which none is read twice; and how soon a child is at work."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from pathlib import Path

import subagents_nb
from benchmarks.figures import Figure
from benchmarks.places import Model

_HEAD = "---\nname: agent-{number}\ndescription: Agent {number}.\ntools: Read, Grep, Glob\nmodel: inherit\n---\n"
_SKILL = "---\nname: skill-{number}\ndescription: Skill {number}.\n---\n"


def preflight_among(agents: int, skills: int, times: int) -> list[Figure]:
    """Plan a launch in a project with so many agent files and skill folders."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for number in range(agents):
            _write(project / ".claude/agents" / f"agent-{number}.md", _HEAD.format(number=number) + "You work.\n" * 40)
        for number in range(skills):
            place = project / (".claude/skills" if number % 2 else ".agents/skills")
            _write(place / f"skill-{number}" / "SKILL.md", _SKILL.format(number=number) + "Do it.\n" * 40)
        os.chdir(project)
        try:
            samples = [_timed() for _ in range(times + 1)]
        finally:
            os.chdir(before)
    among = f"among {agents} agents and {skills} skills"
    return [
        Figure(f"preflight {among}, the first", "ms", None, tuple(samples[:1])),
        Figure(f"preflight {among}, warm", "ms", 20.0, tuple(samples[1:])),
    ]


def delegation(model: Model, times: int) -> list[Figure]:
    """Have a run delegate, and follow its call to the first request of its child."""
    head = "---\nname: {0}\ndescription: {0}\ntools: read\nmodel: {1}\n{2}---\nWork.\n"
    folder = model.root / ".subagents" / "agents"
    _write(folder / "kid.md", head.format("kid", "loop:m", ""))
    _write(folder / "lead.md", head.format("lead", "scripted:lead", "agents: kid\n"))
    samples = []
    for _ in range(times + 1):
        task = f"hold=0.01 {secrets.token_hex(6)}"
        model.script("lead", [{"delegate": [{"agent": "kid", "task": task}]}])
        run = subagents_nb.launch("lead", task)
        run.wait(30)
        asked = run.home.run(run.id).child_ask("d1").stat().st_mtime  # written as the first thing of the call
        samples.append((model.notes()[task]["came"] - asked) * 1000)
    return [Figure("delegate call → child's first model request, warm", "ms", 60.0, tuple(samples[1:]))]


def _timed() -> float:
    begin = time.perf_counter()
    assert subagents_nb.preflight("agent-7", "Look.", model="scripted:echo").ok
    return (time.perf_counter() - begin) * 1000


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
