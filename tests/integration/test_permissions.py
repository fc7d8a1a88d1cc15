"""A permission from end to end: a call that waits in a run of its own, answered from here, and made or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import until

import subagents_nb
from subagents_nb.cli import main
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import StoreHome

pytestmark = [pytest.mark.usefixtures("shared_home")]


LONG = "\n".join(f"line {number} of what is to be written" for number in range(200))


def test_a_call_waits_for_a_yes_and_the_next_for_none(
    shared_home: StoreHome, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [
        {"call": "write", "args": {"path": "a.txt", "content": LONG}, "say": True},
        {"call": "write", "args": {"path": "b.txt", "content": "x"}, "say": True},
        {"call": "write", "args": {"path": "src/c.txt", "content": "x"}},
    ]
    place = tmp_path / ".subagents/scripts/gated.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(script))
    agent = tmp_path / ".subagents/agents/clerk.md"
    agent.parent.mkdir()
    head = "name: clerk\ndescription: Writes.\ntools: write\npermissions: {allow: 'write(src/**)'}"
    agent.write_text(f"---\n{head}\n---\nWrite.")

    run = subagents_nb.launch("clerk", "write", model="scripted:gated", cwd=tmp_path)
    (asked,) = until(lambda: run.questions, 60)
    assert asked.permission is not None and asked.permission.tool == "write"
    assert asked.permission.reason == "no rule (.subagents/agents/clerk.md) allows it"
    main(["status", run.id])
    shown = capsys.readouterr().out
    assert "asks you: “May it write this file? a.txt”" in shown
    assert "\n+ ".join(LONG.splitlines()) in shown, "nobody says yes to what is not shown"
    assert "Asked because no rule (.subagents/agents/clerk.md) allows it." in shown
    assert f"Answer it: subagents-nb answer {run.id} --question {asked.question_id} -- …" in shown
    main(["answer", run.id, "--question", asked.question_id, "--", "once"])
    assert capsys.readouterr().out == f"{run.name}: answered: May it write this file? a.txt\n"
    (second,) = until(lambda: [one for one in run.questions if one.question_id != asked.question_id], 60)
    run.answer("no, one is enough", question=second.question_id)

    assert run.wait(60) and run.state is RunState.COMPLETE
    assert "Not allowed: the person said no: one is enough" in run.text
    assert [(tmp_path / name).exists() for name in ("a.txt", "b.txt", "src/c.txt")] == [True, False, True]
