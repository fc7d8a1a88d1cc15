"""What differs beside parameters is a parameter itself: parts of plans, and the model that answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import make_plan, make_recovery, make_result, run_id

from subagents_nb.domain.agents.skills import SkillRecord
from subagents_nb.domain.plans.experiments import Cell, ExperimentPart
from subagents_nb.domain.plans.inputs import InputRecord
from subagents_nb.experiments.comparing import Comparison, compare_rows
from subagents_nb.experiments.frames import frame
from subagents_nb.experiments.rows import RunRow, read_rows
from subagents_nb.store import StoreHome, create_run, open_home
from subagents_nb.store.files.codec import encode

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreHome:
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "store"))
    return open_home()


def stored(
    home: StoreHome, number: int, *, params: Any = None, swept: bool = True, run: Any = None, **step: Any
) -> str:
    plan = make_plan(number)
    cell = Cell(sweep="s" * 64, place=number) if swept else None
    changed = {
        "steps": (plan.steps[0].model_copy(update={"task": "one", **step}),),
        "experiment": ExperimentPart(params=params or {}, cell=cell),
    }
    create_run(home, plan.model_copy(update=changed | (run or {})), make_recovery(number))
    (home.run(run_id(number)).root / "result.json").write_bytes(encode(make_result(number)))
    return str(run_id(number))


def compared(home: StoreHome, **options: Any) -> Comparison:
    ids = sorted(entry.name for entry in home.runs.iterdir())
    return compare_rows(read_rows(home, ids), metrics=["seconds"], **options)


def skill(digest: str) -> tuple[SkillRecord, ...]:
    return (
        SkillRecord(name="cite", description="d", sha256=digest * 64, files=1, bytes=1, source="project", where="x"),
    )


def given(text: str) -> dict[str, Any]:
    about = {"name": "df", "kind": "table", "file": "df.csv", "type": "DataFrame", "media_type": "text/csv", "bytes": 1}
    return {"inputs": (InputRecord(**about, sha256=text * 64, description=f"{text} rows"),)}


@pytest.mark.parametrize(
    ("name", "before", "after", "line"),
    [
        ("agent_file", {"agent_digest": "a" * 64}, {"agent_digest": "b" * 64}, "in nothing that the plan holds"),
        (
            "agent_file",
            {"agent_digest": "a" * 64, "system_prompt": "Be kind.\nBe brief."},
            {"agent_digest": "b" * 64, "system_prompt": f"Be kind.\n{EVIL}"},
            f"system_prompt, line 2: “Be brief.” → “{EVIL}”",
        ),
        ("system_prompt", {"system_prompt": "a\nb"}, {"system_prompt": "a\nb\nc"}, "line 3: “” → “c”"),
        ("tools", {"tools": ("read",)}, {"tools": ("bash", "read")}, "line 1: “read” → “bash”"),
        ("skills", {"skills": skill("a")}, {"skills": skill("b")}, f"line 2: “sha256: {'a' * 52}…”"),
        (
            "schema",
            {"output_schema": {"type": "object", "required": ["a"]}},
            {"output_schema": {"type": "object", "required": ["b"]}},
            "line 2: “required: a” → “required: b”",
        ),
        ("settings", {"cwd": "a"}, {"cwd": "b"}, "line 2: “cwd: a” → “cwd: b”"),
        ("inputs", {"run": given("a")}, {"run": given("b")}, "line 1: “description: a rows” → “description: b rows”"),
    ],
)  # fmt: skip
def test_each_part_that_differs_is_a_parameter_with_its_first_line(
    home: StoreHome, name: str, before: dict[str, Any], after: dict[str, Any], line: str
) -> None:
    for number in range(4):
        stored(home, number + 1, **(before if number < 2 else after))
    found = compared(home)

    assert found.by == (name,) and [len(one.rows) for one in found] == [2, 2], "two prompts are never one number"
    values = [str(one.params[name]) for one in found]
    digests = [row[f"{name}_sha256".replace("agent_file_sha256", "agent_digest")] for row in frame()]
    assert len(set(digests)) == 2 and [value[:3] for value in values] == ["v1 ", "v2 "]
    assert {value[3:] for value in values} <= {digest[:6] for digest in digests}
    assert f"{name}: {values[1]} differs from {values[0]} first in {line}" in found.text
    assert compared(home, baseline=f"{name}=v1").baseline is found[0] or found[0].params == found[0].params
    assert EVIL not in found._repr_html_()


def test_what_follows_from_a_parameter_is_none_of_its_own_and_is_said(home: StoreHome) -> None:
    for number, agent in enumerate(("scout", "worker", "scout", "worker")):
        stored(home, number + 1, agent=agent, agent_digest=agent[0] * 64, system_prompt=f"You are {agent}.")
    found = compared(home)

    assert found.by == ("agent",) and "With agent differs as well: system_prompt." in found.text


def test_models_differ_by_nothing_but_their_names(home: StoreHome) -> None:
    model = make_plan().steps[0].model
    for number, name in enumerate(("echo", "fail")):
        stored(home, number + 1, model=model.model_copy(update={"name": name}))

    assert compared(home).by == ("model",) and "differs" not in compared(home).text


def test_where_other_groups_are_asked_for_each_prompt_counts_by_itself(home: StoreHome) -> None:
    for number in range(8):
        params = {"item": number % 2, "tone": "dry" if number % 4 < 2 else "warm"}
        stored(home, number + 1, params=params, system_prompt="old" if number < 4 else "new")
    found = compared(home, by=["tone"])

    assert found.estimate(found[0], "seconds").n == 4, "2 items by 2 prompts, averaged over none"
    assert "A setting had several values of system_prompt" in found.text and 'by="system_prompt"' in found.text


def test_a_name_that_a_person_gave_keeps_its_meaning(home: StoreHome) -> None:
    for number in range(4):
        stored(home, number + 1, params={"tools": "mine"}, tools=("read",) if number < 2 else ("bash",))

    assert compared(home).by == ("tools of the plan",)


def test_a_loop_that_names_its_prompts_needs_no_second_name(home: StoreHome) -> None:
    for number in range(4):
        word = "v1" if number < 2 else "v2"
        stored(home, number + 1, params={"prompt": word, "item": number % 2}, swept=False, system_prompt=word)
    found = compared(home, by=["prompt"])

    assert "With prompt differs as well: system_prompt." in found.text and not found.changes.own


def answered(number: int, model: str, by: str | None, state: str = "complete") -> RunRow:
    params: dict[str, Any] = {"model": model}
    return RunRow(f"r-{number}", state=state, sweep="s", model=model, resolved=params, answered=by, seconds=1.0)


def test_a_model_behind_an_alias_that_moved_is_two() -> None:
    moved = [answered(1, "lab:latest", "may"), answered(2, "lab:latest", "june"), answered(3, "lab:latest", "june")]
    found = compare_rows(moved)
    assert found.by == ("model_answered",) and [one.params["model_answered"] for one in found] == ["may", "june"]

    steady = [answered(1, "lab:a", "a-1"), answered(2, "lab:b", None), answered(3, "lab:a", None, "failed")]
    assert compare_rows(steady).by == ("model",), "each answered by its own, and what failed is with its model"


def test_versions_that_wrote_no_such_field_and_limits_that_bind_nothing_do_not_differ(home: StoreHome) -> None:
    stored(home, 1, timeout_s=5.0, max_output=None)
    stored(home, 2, timeout_s=9.0, progress=False, output_retries=7)

    assert compared(home).by == ("name",) and not compared(home).changes.own


def test_a_table_has_the_contract_its_parts_and_how_they_begin(home: StoreHome) -> None:
    stored(home, 1, system_prompt="Be brief.\n" + "x" * 500, tools=("read", "bash"))
    (record,) = frame()

    assert len(record["digest"]) == len(record["settings_sha256"]) == 64 and record["agent_digest"]
    assert (record["task"], record["tools"]) == ("one", "bash read") and record["system_prompt"].startswith(
        "Be brief. x"
    )
    assert len(record["system_prompt"]) <= 200 and "skills_sha256" not in record


def test_a_comparison_still_says_what_is_a_share(home: StoreHome) -> None:
    stored(home, 1)
    assert compared(home).is_share("seconds") is False
