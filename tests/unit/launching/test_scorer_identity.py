"""Whether a scorer is still the one that judged: the same in another process, another one when it was changed."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from subagents_nb.launching.judging.scorer_identity import OURS, scorer_hash

SOURCE = """
import functools
WORDS = {"a", "b", "c"}
def helper(run, least=LEAST):
    return len(run) > least
def judge(run, *, scale=1.0):
    inner = lambda text: text in {"x", "y", "z"}
    return {"right": helper(run), "other": inner(run)}
def wraps(limit):
    def judge(run):
        return len(run) > limit
    return judge
"""


def made(least: int = 1) -> ModuleType:
    module = ModuleType("cells")
    module.__dict__["__name__"] = "cells"
    exec(SOURCE.replace("LEAST", str(least)), module.__dict__)
    return module


@dataclass
class Judge:
    least: int
    words: list[str]

    def __call__(self, run: str) -> bool:
        return len(run) > self.least


class Counting:
    def __init__(self, least: int) -> None:
        self.least = least
        self.cache: dict[str, int] = {}

    def __call__(self, run: str) -> bool:
        return self.cache.setdefault(run, len(run)) > self.least

    def method(self, run: str) -> bool:
        return len(run) > self.least


def test_the_hash_is_the_same_in_a_fresh_process_whatever_its_hash_seed(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(SOURCE.replace("LEAST", "1"))
    code = (
        "import cells; from subagents_nb.launching.judging.scorer_identity import scorer_hash\n"
        "print(scorer_hash(cells.judge))"
    )
    found = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1 and found == {scorer_hash(made().judge)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (made().judge, made(least=2).judge),  # what it calls was changed
        (made().wraps(1), made().wraps(2)),
        (made().judge, made().helper),
        (functools.partial(made().judge, scale=1), functools.partial(made().judge, scale=2)),
        (Judge(1, ["a"]), Judge(2, ["a"])),
        (Judge(1, ["a"]), Judge(1, ["b"])),
        (Counting(1), Counting(2)),
        (Counting(1).method, Counting(2).method),
        (lambda run: 1, lambda run: 2),
        (lambda run: 1, lambda run: True),
    ],
)
def test_another_scorer_has_another_hash_and_its_twin_the_same(one: Callable[[Any], Any], other: Any) -> None:
    assert scorer_hash(one) != scorer_hash(other) and scorer_hash(one) == scorer_hash(one)


def test_what_a_scorer_fills_as_it_goes_does_not_make_it_another() -> None:
    calls: list[int] = []
    counting = Counting(1)

    def judge(run: str) -> int:
        calls.append(1)
        return len(calls)

    before = scorer_hash(judge), scorer_hash(counting)
    judge("x")
    counting("x")
    assert (scorer_hash(judge), scorer_hash(counting)) == before


def test_a_wrapper_of_ours_is_what_it_wraps_and_a_builtin_is_its_name() -> None:
    wrapper = Counting(7)
    setattr(wrapper, OURS, made().judge)

    assert scorer_hash(wrapper) == scorer_hash(made().judge) and scorer_hash(len) != scorer_hash(any)


def test_a_scorer_that_calls_itself_or_breaks_when_shown_has_a_hash_too() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ValueError

    @dataclass
    class Holds:
        what: Broken

        def __call__(self, run: str) -> int:
            return 1

    def loop(run: str) -> int:
        return loop(run[1:]) if run else 0

    assert len(scorer_hash(loop)) == len(scorer_hash(Holds(Broken()))) == 12
