"""No score is stale: cheap scorers judge anew, dear ones when anything that they read was changed."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import make_plan, make_recovery, make_result, run_id

from subagents_nb.experiments.comparing import compare
from subagents_nb.experiments.frames import frame
from subagents_nb.experiments.rescoring import score
from subagents_nb.launching import Run
from subagents_nb.launching.judging.scorer_reads import what_it_reads
from subagents_nb.store import create_run, open_home
from subagents_nb.store.files.codec import encode
from subagents_nb.store.runs.score_files import read_scores

SOURCE = """
import re
import metrics
from pathlib import Path
ANSWERS = {"a": 1}
LIMIT = 3
PATTERN = re.compile("a")
CALLS = []
class Rule:
    least = 1
    def holds(self, run):
        return LIMIT > self.least
class Judge:
    def __call__(self, run):
        CALLS.append(1)
        return self.inner(run)
    def inner(self, run):
        return 1
def wraps(items):
    def judge(run):
        CALLS.append(1)
        return len(items)
    return judge
inside = wraps([1])
def judge(run):
    CALLS.append(1)
    return {"right": ANSWERS["a"] == 1, "limit": LIMIT, "hits": bool(PATTERN.match("a")), "rule": Rule().holds(run),
            "metric": metrics.count(run), "read": len(Path("answers.txt").read_text())}
"""
METRICS = "def count(run):\n    return helper(run)\ndef helper(run):\n    return 1\n"


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "metrics.py").write_text(METRICS)
    (tmp_path / "answers.txt").write_text("one")
    monkeypatch.delitem(sys.modules, "metrics", raising=False)
    module = ModuleType("cells")
    exec(SOURCE, module.__dict__)
    return module


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "store"))
    home = open_home()
    create_run(home, make_plan(), make_recovery())
    (home.run(run_id()).root / "result.json").write_bytes(encode(make_result()))
    return Run(home, run_id())


def judged(run: Run, *scorers: Any) -> dict[str, float]:
    """Do what a sweep does that is asked for again."""
    run.judge_with(scorers)
    return dict(run.scores)


def _answers(cells: ModuleType) -> None:
    cells.ANSWERS["a"] = 2


def _limit(cells: ModuleType) -> None:
    cells.LIMIT = 4


def _pattern(cells: ModuleType) -> None:
    cells.PATTERN = re.compile("b")


def _rule(cells: ModuleType) -> None:
    cells.Rule.least = 9


def _method(cells: ModuleType) -> None:
    cells.Rule.holds = lambda self, run: 7


def _metrics(cells: ModuleType) -> None:
    cells.metrics.helper = lambda run: 5


def _file(cells: ModuleType) -> None:
    Path("answers.txt").write_text("longer")


CHANGES = [_answers, _limit, _pattern, _rule, _method, _metrics, _file]


@pytest.mark.parametrize("dear", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_scorer_reads_its_scores_follow(
    cells: ModuleType, run: Run, change: Callable[[ModuleType], None], dear: bool
) -> None:
    cells.judge.expensive = dear
    before = judged(run, cells.judge)
    assert judged(run, cells.judge) == before and len(cells.CALLS) == (1 if dear else 2)
    change(cells)
    after = judged(run, cells.judge)

    assert after != before and len(cells.CALLS) == (2 if dear else 3)
    assert judged(run, cells.judge) == after and len(cells.CALLS) == (2 if dear else 4)


def test_lists_that_are_closed_over_and_methods_of_a_judge_count(cells: ModuleType, run: Run) -> None:
    inside, instance = cells.wraps([1]), cells.Judge()
    inside.expensive = instance.expensive = True
    assert judged(run, inside, instance) == {"judge": 1.0, "Judge": 1.0}
    other = cells.wraps([1, 2])
    other.expensive = True
    cells.Judge.inner = lambda self, run: 4
    assert judged(run, other, instance) == {"judge": 2.0, "Judge": 4.0} and len(cells.CALLS) == 4


def test_what_is_the_same_is_written_once_and_a_person_has_the_last_word(cells: ModuleType, run: Run) -> None:
    judged(run, cells.judge)
    written = len(read_scores(run.home, run.id))
    run.score("right", 0.25, comment="by hand")
    assert judged(run, cells.judge)["right"] == 0.25 and len(read_scores(run.home, run.id)) == written + 1


def test_what_a_scorer_gives_no_more_is_no_score_any_more(run: Run) -> None:
    def make(**given: float) -> Any:
        def judge(run: Run) -> dict[str, float]:
            return given

        return judge

    run.score("mine", 1)
    assert judged(run, make(a=1, b=2)) == {"mine": 1.0, "a": 1.0, "b": 2.0}
    assert judged(run, make(a=1)) == {"mine": 1.0, "a": 1.0}
    assert "b" not in compare([run.id]).metrics and "metrics.b" not in frame([run.id])[0]
    assert judged(run, make(b=2), make(c=3)) == {"mine": 1.0, "b": 2.0, "c": 3.0}, (
        "two of one name take back no other's"
    )


def test_a_dear_scorer_that_goes_back_to_what_it_was_judges_anew(run: Run) -> None:
    calls: list[int] = []

    def make(number: int) -> Any:
        async def judge(run: Run) -> int:
            calls.append(number)
            return number

        return judge

    assert [judged(run, make(n))["judge"] for n in (1, 2, 2, 1)] == [1, 2, 2, 1] and calls == [1, 2, 1]


def test_what_can_not_be_compared_is_said_and_a_cache_is_no_change(run: Run) -> None:
    client = object()
    cache: dict[str, bool] = {}
    calls: list[int] = []

    async def judge(run: Run) -> float:
        calls.append(1)
        cache["x"] = client is not None
        return 1.0

    assert judged(run, judge) == judged(run, judge) == {"judge": 1.0} and calls == [1]
    cache.clear()
    assert judged(run, judge) and calls == [1], "as in a fresh kernel"
    assert (
        "Not checked, if it changed since it was judged: cache of judge, calls of judge, client (object) of judge."
        in (compare([run.id]).text)
    )


def test_files_that_nobody_can_name_are_said_and_those_that_a_person_names_are_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "answers.txt"
    path.write_text("one")

    def judge(run: Run) -> int:
        return len((path.parent / ("answers" + chr(46) + "txt")).read_text())

    def opens(run: Run) -> int:
        return len(open("".join(["x"])).read())

    assert what_it_reads(opens).unchecked == {"the files that it opens"}
    judge.expensive, judge.reads = True, [str(path)]  # type: ignore[attr-defined]
    assert judged(run, judge) == {"judge": 3.0}
    path.write_text("three")
    assert judged(run, judge) == {"judge": 5.0} and not any(one.unchecked for one in run.scores.all)


def test_one_that_has_nothing_to_say_is_asked_once(run: Run) -> None:
    calls: list[int] = []

    async def judge(run: Run) -> None:
        calls.append(1)

    assert judged(run, judge) == judged(run, judge) == {} and calls == [1]


def test_tokens_and_money_of_judges_are_counted(run: Run) -> None:
    def judge(run: Run) -> dict[str, Any]:
        return {"right": 1, "usage": {"prompt_tokens": 90, "completion_tokens": 10, "cost_usd": 0.5}}

    judged(run, judge)
    score([run], judge)
    record = frame([run.id])[0]
    assert record["metrics.judge_input_tokens"] == 180 and record["metrics.judge_cost_usd"] == 1.0
    assert run.scores.usage["output_tokens"] == 20 and dict(run.scores) == {"right": 1.0}
    assert "Judges used 200 tokens and $1, which is in no cost above." in compare([run.id]).text
    score([run], lambda run: {"more": 1, "usage": {"input_tokens": 1}})
    assert "201 tokens and an unknown sum" in compare([run.id]).text


def test_an_agent_that_a_scorer_asks_is_counted_by_itself(run: Run) -> None:
    pydantic_ai = importlib.import_module("pydantic_ai")
    model = importlib.import_module("pydantic_ai.models.test").TestModel(custom_output_text="1")
    agent = pydantic_ai.Agent(model)

    async def judge(run: Run) -> float:
        return float((await agent.run("How good is it?")).output)

    assert judged(run, judge) == {"judge": 1.0} and run.scores.usage["input_tokens"] > 0


def test_what_is_read_has_one_hash_in_every_process(cells: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(SOURCE + "\nWORDS = {'a', 'b', 'c'}\n")
    code = "import cells\nfrom subagents_nb.launching.judging.scorer_reads import what_it_reads\n"
    code += "print(what_it_reads(cells.judge).digest())"
    env = {"PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == what_it_reads(cells.judge).digest()
