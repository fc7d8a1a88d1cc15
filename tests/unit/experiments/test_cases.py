"""Cases: from wherever they stand to the task, to the scorer and to the rows of a comparison."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest
from IPython.core.error import UsageError

from subagents_nb import Cases
from subagents_nb.domain.plans.experiments import Case
from subagents_nb.domain.plans.grid import filled_text
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.experiments.sweeps.sweep_spec import plan_sweep
from subagents_nb.notebook.magics.experiment_flags import add_experiment_flags, cases_of
from subagents_nb.notebook.magics.line_parser import MagicParser

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "2+2?", "expected": 4, "document": "d1"},
    {"id": "b", "question": "3+3?", "expected": 6, "document": "d1"},
]
EVIL = "<img src=x onerror=alert(1)>"


@dataclass
class EvalsCase:
    name: str | None
    inputs: Any
    expected_output: Any
    metadata: Any = None


@dataclass
class Sample:
    input: Any
    target: Any
    id: Any = None
    choices: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Dataset:
    cases: list[EvalsCase]


def test_the_same_rows_are_the_same_version_wherever_they_come_from(tmp_path: Path) -> None:
    lines, table = tmp_path / "c.jsonl", tmp_path / "c.json"
    lines.write_text("\n".join(map(json.dumps, ROWS)) + "\n")
    table.write_text(json.dumps(ROWS))
    given = [
        ROWS,
        lines,
        str(table),
        pandas.DataFrame(ROWS),
        polars.DataFrame(ROWS),
        Dataset([EvalsCase(r["id"], {"question": r["question"]}, r["expected"], {"document": "d1"}) for r in ROWS]),
    ]
    found = [Cases(one, **({} if isinstance(one, Dataset) else {"metadata": ["document"]})) for one in given]

    assert {cases.version for cases in found} == {found[0].version} and len(found[0].version) == 12
    assert found[0]["b"] == Case(id="b", inputs={"question": "3+3?"}, expected=6, metadata={"document": "d1"})
    assert Cases(ROWS[::-1], metadata="document").version == found[0].version, "the order is not what is asked"
    mended = Cases([{**ROWS[0], "expected": 5}, ROWS[1]], metadata="document")
    assert mended.version != found[0].version and mended[1].sha256 == found[0][1].sha256


def test_a_table_of_texts_and_samples_of_inspect(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text('\ufeffname,question,expected\nx,"1, or 2?",1\n', encoding="utf-8")
    assert Cases(path, id="name")[0] == Case(id="x", inputs={"question": "1, or 2?"}, expected="1")
    samples = Cases([Sample("2+2?", "4"), Sample("3+3?", ["6", "six"], choices=["6", "7"])])
    assert [case.id for case in samples] == ["1", "2"] and samples[1].expected == ["6", "six"]
    assert samples[1].inputs == {"input": "3+3?", "choices": ["6", "7"]}
    assert Cases(pandas.DataFrame([{"q": "x", "expected": math.nan}]))[0].expected is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "There are no cases"),
        (7, "Cases are a DataFrame, a path"),
        ([{"id": "a"}, {"id": "a"}], "Two cases are called 'a'"),
        ([{"id": "a\nb"}], "can't name a case"),
        ([{"q": object()}], "not a object"),
        ([{"q": math.inf}], "holds no inf"),
        ("nowhere.csv", "can't be read"),
        ("cases.xlsx", "can't be read"),
    ],
)
def test_what_is_no_cases_is_refused(source: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Cases(source)


def test_cases_are_shown_as_a_table_in_which_nothing_can_run() -> None:
    cases = Cases([{"id": str(n), "q": EVIL, "expected": n} for n in range(30)])

    assert "30 cases, version" in repr(cases) and "the first 20" in repr(cases)
    assert "<img" not in cases._repr_html_() and "expected" in cases._repr_html_()
    assert len(cases[:3]) == 3


def test_what_a_case_says_stands_in_the_task_and_is_not_read_again() -> None:
    case = Case(id="a", inputs={"q": "{case.other} {{n}}", "other": "no", "choices": ["x", 1]})
    values = {"case": case, "n": 3}

    assert filled_text("{{n}}: {case.q} of {case.choices}", values) == '3: {case.other} {{n}} of ["x", 1]'
    assert filled_text("{case.q}", {"n": 1}) == "{case.q}" and filled_text("{{case}}", values) == "a"


def test_a_sweep_has_a_cell_for_each_case_in_each_setting() -> None:
    spec = plan_sweep("scout", "{{tone}}: {case.question}", grid={"tone": ["dry", "warm"]}, cases=ROWS, repeat=2)

    assert [(cell.params["tone"], cell.params["case"], cell.repeat) for cell in spec.cells[:5]] == [
        ("dry", "a", 0), ("dry", "a", 1), ("dry", "b", 0), ("dry", "b", 1), ("warm", "a", 0),
    ]  # fmt: skip
    assert spec.by_case and len(spec.cells) == 8
    assert len(plan_sweep("scout", "{case.question}", cases=ROWS).cells) == 2


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("{case.answer}", {}, r"\{case.answer\}: case a and 1 more has no input answer"),
        ("Add up.", {}, r"asks for nothing of its cases: write \{case.question\}"),
        ("{case.question}", {"failed": "zero"}, "failed is missing or wrong, not 'zero'"),
        ("{case.question} {{case}}", {"grid": {"case": ["x"]}}, "case stands in the grid"),
        ("{case.question}", {"cases": []}, "cases: There are no cases"),
        ("{case.expected}", {}, "has no input expected"),
    ],
)
def test_a_sweep_says_what_is_wrong_with_its_cases(task: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchRefused, match=message):
        plan_sweep("scout", task, **({"cases": ROWS} | options))


def test_a_cell_names_cases_by_a_variable_or_a_file(tmp_path: Path) -> None:
    parser = MagicParser("%%subagent", "launches")
    add_experiment_flags(parser)
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))

    def named(line: str) -> Any:
        return cases_of(parser.parse_args(line.split()), {"rows": ROWS, "held": Cases(ROWS)}, parser)

    assert named("--cases rows").version == named(f"--cases {path}").version == named("--cases held").version
    assert named("--sweep n=1,2") is None
    with pytest.raises(UsageError, match="--cases"):
        named("--cases nothing")
    with pytest.raises(UsageError, match="can't be read"):
        named("--cases nowhere.csv")
