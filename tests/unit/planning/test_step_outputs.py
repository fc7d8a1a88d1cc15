"""Which files a step has: what it asks for, what its agent's file says, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.bounds import OutputPlan
from subagents_nb.domain.plans.flow import Step
from subagents_nb.planning import LaunchEnvironment
from subagents_nb.planning.steps.step_outputs import plan_output, plan_progress, plan_reads

ENVIRONMENT = LaunchEnvironment(cwd="/w/project")
WRITER = ("read", "write")


def agent(**more: Any) -> AgentDefinition:
    return AgentDefinition.model_validate({"name": "scout", "description": "d", "tools": WRITER, **more})


def output(asked: Any = None, *, namespace: str | None = None, mode: Any = None, **of_agent: Any) -> Any:
    """Return the output that is planned, or the reasons why none is."""
    reasons: list[str] = []
    step = Step(output=asked, output_mode=mode)
    plan = plan_output(step, agent(**of_agent), ENVIRONMENT, reasons, namespace=namespace)
    assert plan is None or not reasons
    return reasons or plan


def refused(asked: Any = None, **more: Any) -> str:
    reasons = output(asked, **more)
    assert isinstance(reasons, list) and len(reasons) == 1, reasons
    return str(reasons[0])


# --- who decides ------------------------------------------------------------------------------------------------


def test_the_step_wins_over_the_agent_and_the_agent_over_nothing() -> None:
    assert output() is None
    assert output(output="own.md") == OutputPlan(path="own.md", explicit=False)
    assert output("asked.md", output="own.md") == OutputPlan(path="asked.md", explicit=True)


@pytest.mark.parametrize("off", [False, "false", " False "])
def test_false_switches_the_agents_file_off(off: Any) -> None:
    assert output(off, output="own.md") is None
    assert output(off, output="own.md", output_mode="file-only") is None


@pytest.mark.parametrize("on", [True, "true"])
def test_true_is_the_agents_own_file(on: Any) -> None:
    assert output(on, output="own.md") == OutputPlan(path="own.md", explicit=False)
    assert refused(on) == "output asks for the agent's own file, and agent scout names none; give a path"


def test_the_mode_is_the_steps_else_the_agents_else_inline() -> None:
    assert output("a.md").mode == "inline"
    assert output("a.md", output_mode="file-only").mode == "file-only"
    assert output("a.md", output_mode="file-only", mode="inline").mode == "inline"
    assert output(output="a.md", mode="file-only").mode == "file-only"


def test_an_answer_by_file_only_needs_a_file() -> None:
    told = "output_mode is file-only, and there is no output file; name one with output"
    assert refused(mode="file-only") == told
    assert refused(False, mode="file-only", output="own.md") == told
    assert refused(output_mode="file-only") == told


# --- paths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("a.md", "a.md"),
        ("./a//b/../c.md", "a/c.md"),
        ("/w/project/out/a.md", "out/a.md"),
        ("/w/project/../project/a.md", "a.md"),
        ("new folder/Ergebnis für alle.md", "new folder/Ergebnis für alle.md"),
        ("..a/b", "..a/b"),
    ],
)
def test_paths_are_put_relative_to_the_runs_directory_in_their_shortest_form(given: str, path: str) -> None:
    assert output(given).path == path


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("../a.md", "lies outside the run's directory (/w/project)"),
        ("a/../../b.md", "lies outside the run's directory"),
        ("/w/other/a.md", "lies outside the run's directory"),
        ("/w/project2/a.md", "lies outside the run's directory"),
        ("/etc/passwd", "lies outside the run's directory"),
        ("", "is empty; name a file"),
        ("  ", "is empty; name a file"),
        ("a\0b", "holds characters that no file name should"),
        ("a\nWrite elsewhere", "holds characters that no file name should"),
        ("a\ud800", "holds characters that no file name should"),
        ("out/", "names a directory"),
        ("out/..", "names a directory"),
        (".", "names a directory"),
        ("/w/project", "is the run's directory itself"),
        ("~/a.md", "begins with ~"),
        ("a" * 256, "is too long"),
        ("a/" * 1200 + "b", "is too long"),
        (".env", "is a file that no agent may write"),
        ("x/.git/hooks/post-commit", "is a file that no agent may write"),
        (".subagents/agents/scout.md", "is a file that no agent may write"),
        ("sub/../.subagents/settings.json", "is a file that no agent may write"),
        ("keys/server.pem", "is a file that no agent may write"),
    ],
)
def test_a_path_that_can_not_be_an_output_is_refused_in_words(given: str, told: str) -> None:
    assert told in refused(given) and refused(given).startswith("output: ")
    assert told in refused(output=given) or not given
    assert refused(output=given or "..").startswith("output of agent scout: ")


def test_a_refused_file_of_the_agent_can_be_overruled() -> None:
    assert output("a.md", output="../a.md").path == "a.md"
    assert output(False, output="../a.md") is None


def test_an_agents_own_file_gets_a_folder_in_a_group_and_a_file_that_was_asked_for_does_not() -> None:
    assert output(output="own.md", namespace="parallel-2/1-scout").path == "parallel-2/1-scout/own.md"
    assert output(True, output="own.md", namespace="parallel-2/1-scout").path == "parallel-2/1-scout/own.md"
    assert output("asked.md", output="own.md", namespace="parallel-2/1-scout").path == "asked.md"
    assert output(output="/w/project/own.md", namespace="parallel-2/1-scout").path == "own.md"


# --- reads ------------------------------------------------------------------------------------------------------


def reads(asked: Any = None, **of_agent: Any) -> Any:
    reasons: list[str] = []
    found = plan_reads(Step(reads=asked), agent(**of_agent), ENVIRONMENT, reasons)
    return reasons or found


def test_reads_are_the_steps_else_the_agents_each_once() -> None:
    assert reads() == ()
    assert reads(reads=("a.md",)) == ("a.md",)
    assert reads(("b.md", "./b.md", "/w/project/c/d.md"), reads=("a.md",)) == ("b.md", "c/d.md")
    assert reads(False, reads=("a.md",)) == ()
    assert reads((), reads=("a.md",)) == ()


def test_reads_outside_the_workspace_and_of_secrets_are_refused_all_at_once() -> None:
    told = reads(("../a.md", ".env", "fine.md", ""))
    assert len(told) == 3
    assert "lies outside" in told[0] and "secrets" in told[1] and "is empty" in told[2]
    assert reads(reads=("/etc/passwd",))[0].startswith("reads of agent scout: '/etc/passwd' lies outside")


def test_an_agent_without_eyes_is_not_told_to_read() -> None:
    assert "has no tool to read them with" in reads(("a.md",), tools=())[0]
    assert reads(reads=("a.md",), tools=("write",)) == ()


# --- progress ---------------------------------------------------------------------------------------------------


def progress(asked: bool | None = None, **of_agent: Any) -> Any:
    reasons: list[str] = []
    kept = plan_progress(Step(progress=asked), agent(**of_agent), reasons)
    return reasons or kept


def test_progress_is_the_steps_word_else_the_agents() -> None:
    assert progress() is False
    assert progress(progress=True) is True
    assert progress(True) is True
    assert progress(False, progress=True) is False


def test_an_agent_that_can_not_write_keeps_no_progress_file() -> None:
    assert progress(progress=True, tools=("read",)) is False
    assert "has no tool to write it with (write, edit, bash, python)" in progress(True, tools=("read",))[0]


# --- where no agent writes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [".agents/delegate.md", "sub/.claude/agents/a.md", ".pi/agents/a.md", ".bashrc"])
def test_an_output_is_no_agent_and_nothing_that_a_program_begins_with(path: str) -> None:
    assert "no agent may write" in refused(path)
    assert "no agent may write" in refused(output=path)


def test_the_store_below_the_working_directory_is_neither_written_nor_read() -> None:
    facts = ENVIRONMENT.model_copy(update={"store": ".local/share/nb"})
    reasons: list[str] = []
    assert plan_output(Step(output=".local/share/NB/runs/r/result.json"), agent(), facts, reasons) is None
    facts = ENVIRONMENT.model_copy(update={"store": "data/store"})
    assert plan_output(Step(output="data/store/runs/r/result.json"), agent(), facts, reasons) is None
    assert plan_reads(Step(reads=("data/store/runs/r/plan.json", "data/store.md")), agent(), facts, reasons) == (
        "data/store.md",
    )
    assert len(reasons) == 3 and all("run store" in one for one in reasons[1:])
