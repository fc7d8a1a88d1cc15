"""The deterministic twin: what each script does, and which files are scripts."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter

from subagents_nb.domain.agents.scripts import BUILTIN_SCRIPTS, script_paths
from subagents_nb.domain.runs.events import (
    ModelAsked,
    StepFailed,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)
from subagents_nb.domain.runs.messages import parse_session
from subagents_nb.domain.runs.records import Usage
from subagents_nb.runner.engines.scripted.script import ScriptStep, parse_script
from subagents_nb.runner.engines.scripted.scripted import _BUILTIN, ScriptedEngine

ENGINE = ScriptedEngine()


def script(cwd: Path, name: str, content: Any) -> None:
    folder = cwd / ".subagents/scripts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))


def test_every_name_that_planning_accepts_is_played() -> None:
    assert set(_BUILTIN) == BUILTIN_SCRIPTS


def test_echo_says_the_task_back_word_by_word_and_counts_the_same_each_time(workshop: Any, plan: Any) -> None:
    step = plan("scripted:echo", task="Which rows  look wrong?\nAll of them.")

    first, second = workshop.run(ENGINE, step), workshop.run(ENGINE, step)

    assert first == second and first.text == step.task
    assert len(workshop.told(TextStreamed)) > 4
    assert first.usage == Usage(input_tokens=9, output_tokens=9, requests=1, cost_usd=0.0)
    assert workshop.told(UsageChanged)[-1].usage == first.usage
    assert [event.number for event in workshop.told(ModelAsked)] == [1, 1]


def test_echo_leaves_a_history_that_a_real_engine_could_read(workshop: Any, plan: Any) -> None:
    workshop.run(ENGINE, plan("scripted:echo"))

    messages = ModelMessagesTypeAdapter.validate_json((workshop.step_dir / "session.json").read_bytes())
    assert [message.parts[0].content for message in messages] == ["count the rows"] * 2


def test_echo_makes_up_a_value_for_a_schema(workshop: Any, plan: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}

    outcome = workshop.run(ENGINE, plan("scripted:echo", output_schema=schema))

    assert outcome.has_value and outcome.value == {"n": 3} and outcome.text == '{"n": 3}'


def test_a_schema_that_cannot_be_solved_asks_for_a_script(workshop: Any, plan: Any) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "string", "pattern": "^[0-9]{9}$"}}, "required": ["n"]}

    failure = workshop.fail(ENGINE, plan("scripted:echo", output_schema=schema))

    assert failure.reason == "setup" and "script" in failure.message


def test_tools_really_reads_the_first_small_text_file_that_is_no_secret(workshop: Any, plan: Any) -> None:
    (workshop.cwd / "a.pem").write_text("hidden")
    (workshop.cwd / "b.bin").write_bytes(b"\xff\xfe\x00")
    (workshop.cwd / "c.txt").write_text("one\ntwo\n")
    (workshop.cwd / "big.csv").write_text("x" * 10_000)

    outcome = workshop.run(ENGINE, plan("scripted:tools"))

    assert [(e.name, e.args) for e in workshop.told(ToolStarted)] == [("list", "."), ("read", "c.txt")]
    assert workshop.told(ToolEnded)[1].preview == "one two"
    assert "c.txt has 2 lines" in outcome.text and outcome.usage.tool_calls == 2


def test_refused_shows_one_refusal_and_answers(workshop: Any, plan: Any) -> None:
    outcome = workshop.run(ENGINE, plan("scripted:refused"))

    (ended,) = workshop.told(ToolEnded)
    assert ended.refused and not ended.ok and outcome.text


def test_fail_fails_with_what_it_used(workshop: Any, plan: Any) -> None:
    failure = workshop.fail(ENGINE, plan("scripted:fail"))

    assert failure.reason == "model" and failure.usage is not None and failure.usage.output_tokens > 0


@pytest.mark.parametrize("name", ["slow", "hang"])
def test_an_endless_script_stops_when_it_is_told_to(workshop: Any, plan: Any, name: str) -> None:
    workshop.stop_at(ENGINE, plan(f"scripted:{name}"), lambda event: isinstance(event, ModelAsked))

    assert (workshop.step_dir / "session.json").exists()


PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from subagents_nb.domain.agents.models import parse_model
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.runner.engines import engine_for
from subagents_nb.runner.engines.engine import StepContext

place, name = Path(sys.argv[1]), sys.argv[2]
step = StepPlan(agent="a", agent_source="builtin", agent_digest="", task="t",
                model=parse_model(f"scripted:{name}", origin="call", endpoints={}))

def report(event):
    print(event, flush=True)
    if "tick 1" in str(event):
        task.cancel()
    if "I was asked to stop" in str(event):
        os._exit(7)  # its half minute is not ours

async def main():
    global task
    desk = StepContext(report=report, cwd=place, step_dir=place, store_home=place, environ={})
    engine = engine_for(step)
    assert "pydantic_ai" not in sys.modules, "a scripted step imports no model library"
    task = asyncio.ensure_future(engine.run(step, desk))
    await task

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("name", "code", "said"), [("crash", -signal.SIGKILL, "The process dies now."), ("stubborn", 7, "go on")]
)
def test_the_scripts_that_misbehave_do_so_in_their_own_process(workshop: Any, name: str, code: int, said: str) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", PROGRAM, str(workshop.step_dir), name]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ)

    assert done.returncode == code, done.stderr
    assert said in done.stdout


def test_a_script_of_the_workspace_is_played_in_its_order(workshop: Any, plan: Any) -> None:
    script(
        workshop.cwd,
        "demo",
        [
            {"think": "hm"},
            {"tool": "read", "args": {"path": "a.csv"}, "result": "x"},
            {"tool": "bash", "args": {"command": "rm x"}, "refused": "not allowed"},
            {"sleep": 0},
            {"usage": {"input_tokens": 100}},
            {"text": "done"},
            {"value": {"ok": True}},
        ],
    )

    outcome = workshop.run(ENGINE, plan("scripted:demo", output_schema={"type": "object", "required": ["ok"]}))

    kinds = [type(event) for event in workshop.events if not isinstance(event, UsageChanged)]
    assert kinds[2:] == [ThoughtStreamed, ToolStarted, ToolEnded, ToolStarted, ToolEnded, TextStreamed]
    assert [event.refused for event in workshop.told(ToolEnded)] == [None, "not allowed"]
    assert outcome.value == {"ok": True}
    assert outcome.usage.input_tokens == 103 and outcome.usage.tool_calls == 2


def test_the_history_has_thoughts_calls_and_results_in_their_turns(workshop: Any, plan: Any) -> None:
    script(
        workshop.cwd,
        "demo",
        [
            {"think": "hm, "},
            {"think": "so"},
            {"text": "I look."},
            {"tool": "read", "args": {"path": "a.csv"}, "result": "x"},
            {"tool": "bash", "args": {"command": "rm x"}, "refused": "no such tool"},
            {"text": "do"},
            {"text": "ne"},
        ],
    )

    workshop.run(ENGINE, plan("scripted:demo"))

    said = parse_session((workshop.step_dir / "session.json").read_bytes())
    assert [(one.role, one.turn, one.text, one.tool, one.call_id, one.ok) for one in said.messages] == [
        ("user", 0, "count the rows", "", "", True),
        ("thought", 1, "hm, so", "", "", True),
        ("answer", 1, "I look.", "", "", True),
        ("call", 1, '{"path": "a.csv"}', "read", "call-1", True),
        ("result", 2, "x", "read", "call-1", True),
        ("call", 3, '{"command": "rm x"}', "bash", "call-2", True),
        ("result", 4, "Not allowed: no such tool", "bash", "call-2", False),
        ("answer", 5, "done", "", "", True),
    ]
    assert [event.call_id for event in workshop.told(ToolStarted)] == ["call-1", "call-2"]
    assert [message.kind for message in workshop.messages] == ["request", "response"] * 3


def test_a_script_may_fail_as_it_likes(workshop: Any, plan: Any) -> None:
    script(workshop.cwd, "bad", [{"text": "a"}, {"fail": {"reason": "rate-limit", "message": "too fast"}}])

    failure = workshop.fail(ENGINE, plan("scripted:bad"))

    assert (failure.reason, failure.message) == ("rate-limit", "too fast")


def test_a_script_whose_value_does_not_fit_is_a_schema_failure(workshop: Any, plan: Any) -> None:
    script(workshop.cwd, "odd", [{"value": {"ok": 1}}])
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}

    failure = workshop.fail(ENGINE, plan("scripted:odd", output_schema=schema))

    assert failure.reason == "schema" and "ok: " in failure.message


def test_a_path_names_a_script_inside_the_workspace(workshop: Any, plan: Any) -> None:
    (workshop.cwd / "scripts").mkdir()
    (workshop.cwd / "scripts/mine.json").write_text('[{"text": "hi"}]')

    assert workshop.run(ENGINE, plan("scripted:scripts/mine.json")).text == "hi"


@pytest.mark.parametrize("name", ["../outside.json", "/etc/hostname.json", "link.json"])
def test_a_script_outside_the_workspace_is_not_played(workshop: Any, plan: Any, name: str) -> None:
    (workshop.cwd.parent / "outside.json").write_text('[{"text": "hi"}]')
    (workshop.cwd / "link.json").symlink_to(workshop.cwd.parent / "outside.json")

    failure = workshop.fail(ENGINE, plan(f"scripted:{name}"))

    assert failure.reason == "setup" and "outside" in failure.message


def test_a_script_that_had_to_be_allowed_is_played_as_it_was_then(workshop: Any, plan: Any) -> None:
    script(workshop.cwd, "mine", [{"text": "as allowed"}])
    path = ".subagents/scripts/mine.json"
    sha = hashlib.sha256((workshop.cwd / path).read_bytes()).hexdigest()
    step = plan("scripted:mine", script={path: sha})
    assert workshop.run(ENGINE, step).text == "as allowed"
    script(workshop.cwd, "mine", [{"text": "otherwise"}])
    failed = workshop.fail(ENGINE, step)
    assert failed.message.startswith(f"The script {path} was not played: it is another than the one that was allowed")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("not json", "it is no JSON"),
        ('{"text": "a"}', "must be a list"),
        ('[{"text": "a", "think": "b"}]', "exactly one"),
        ("[{}]", "exactly one"),
        ('[{"txet": "a"}]', "steps[0].txet is unknown; did you mean text?"),
        ('[{"text": "a", "args": {}}]', "belongs to tool or call steps"),
        ('[{"sleep": -1}]', "must be 0 or more"),
    ],
)
def test_a_bad_script_is_refused_in_words(workshop: Any, plan: Any, content: str, words: str) -> None:
    script(workshop.cwd, "bad", content)

    failure = workshop.fail(ENGINE, plan("scripted:bad"))

    assert failure.reason == "setup" and words in failure.message and "bad.json" in failure.message


def test_an_unknown_script_says_where_it_was_looked_for(workshop: Any, plan: Any) -> None:
    failure = workshop.fail(ENGINE, plan("scripted:nope"))

    assert isinstance(failure, StepFailed) and script_paths("nope")[0] in failure.message and "echo" in failure.message


def test_a_script_without_an_answer_is_no_answer(workshop: Any, plan: Any) -> None:
    script(workshop.cwd, "mute", [{"think": "hm"}])

    assert workshop.fail(ENGINE, plan("scripted:mute")).reason == "no-answer"


def test_all_that_a_script_may_say_is_told_in_the_docs() -> None:
    told = (Path(__file__).parents[4] / "docs/models.md").read_text().partition("## Scripts")[2]
    example = "\n".join(row for row in told.splitlines() if row.startswith("    "))
    assert [step.verb for step in parse_script(example.encode(), "docs")] == ["text", "call", "ask", "sleep", "value"]
    for name in (*BUILTIN_SCRIPTS, *ScriptStep.model_fields):
        assert f"`{name}`" in told or f'"{name}"' in told, name
