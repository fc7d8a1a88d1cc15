"""What may judge the runs of a sweep."""

from __future__ import annotations

from typing import Any

import pydantic_evals.evaluators as evals
import pytest

from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.experiments.rescoring import as_scorer, as_scorers
from subagents_nb.experiments.sweeps.sweep_spec import plan_sweep
from subagents_nb.launching.judging.scoring import name_of


def test_evaluators_of_one_kind_get_names_of_their_own_and_functions_keep_theirs() -> None:
    def judge(run: Any) -> float:
        return 1.0

    named = evals.Contains("c", evaluation_name="has c")
    found = as_scorers([evals.Contains("a"), judge, evals.Contains("b"), named, evals.Contains("d")])

    assert [name_of(one) for one in found] == ["Contains", "judge", "Contains_2", "has c", "Contains_3"]
    assert found[1] is judge and as_scorers(found)[2] is found[2]


def test_what_judges_nothing_is_refused_with_what_to_do() -> None:
    with pytest.raises(RequestError, match=r"give one, as in IsInstance\(\.\.\.\)"):
        as_scorer(evals.IsInstance)
    with pytest.raises(RequestError, match="a function that takes a run"):
        as_scorer(3)


def test_a_schema_that_is_none_is_refused_before_anything_is_planned() -> None:
    with pytest.raises(LaunchRefused) as refused:
        plan_sweep("scout", "x", grid={"schema": {"good": {"type": "object"}, "bad": 3}})
    assert [reason.partition(" schema: ")[0] for reason in refused.value.reasons] == ["schema=bad: int is no object"]
    with pytest.raises(LaunchRefused, match="int is no object schema"):
        plan_sweep("scout", "x {{word}}", grid={"word": ["a"]}, schema=3)
