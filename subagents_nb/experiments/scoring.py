"""Judge many runs, stored ones too: no model is asked."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from subagents_nb.domain.states import RunState
from subagents_nb.domain.words import one_line
from subagents_nb.errors import RequestError
from subagents_nb.experiments.selecting import runs_of
from subagents_nb.launching import Run
from subagents_nb.launching.scoring import apply, name_of, waits_for
from subagents_nb.store import StoreHome

_JUDGED = (RunState.COMPLETE, RunState.PARTIAL)


class ScoringFailed(RequestError):
    """A scorer could not judge some runs; the scores of the others are kept. `failed` names them, with the reasons."""

    def __init__(self, message: str, *, failed: dict[str, str]) -> None:
        super().__init__(message)
        self.failed = failed


def score(runs: Any, scorer: Any) -> int:
    """Judge each run that ended with something to show, keep the scores, and say how many there are.

    Args:
        runs: a Run, several, a sweep, or what `runs()` gives.
        scorer: a function that takes the Run and returns a number, true or false, or a mapping of names to these; None
            where it has nothing to say. An evaluator of pydantic-evals does as well, where that is installed: it gets
            the task as `inputs` and the run's output.

    Raises:
        ScoringFailed: it could not judge some of them.
        RequestError: it is no scorer.
    """
    call = as_scorer(scorer)
    failed: dict[str, str] = {}
    kept = 0
    for run in runs_of(runs):
        if run.state not in _JUDGED:
            continue
        try:
            kept += len(apply(call, run))
        except Exception as error:  # noqa: BLE001 - somebody else's function
            failed[run.id] = one_line(f"{type(error).__name__}: {error}", 300)
    if failed:
        first = next(iter(failed.items()))
        more = f" and {len(failed) - 1} more runs" if len(failed) > 1 else ""
        raise ScoringFailed(
            f"{name_of(call)} could not judge {first[0]}{more} ({first[1]}); {kept} scores of the others are kept.",
            failed=failed,
        )
    return kept


def settle(home: StoreHome, ids: Iterable[str]) -> None:
    """Let the scorers of launches say what they have to say about those of the runs that have ended."""
    for run_id in ids:
        if waits_for(run_id):
            Run(home, run_id)._judge()


def as_scorer(scorer: Any) -> Callable[[Any], Any]:
    """Return what judges a run: a function as it is, an evaluator of pydantic-evals as one.

    Raises:
        RequestError: it is neither.
    """
    if hasattr(scorer, "evaluate_sync") and hasattr(scorer, "get_default_evaluation_name"):
        return _Evaluated(scorer)
    if callable(scorer):
        return scorer  # type: ignore[no-any-return]
    raise RequestError(f"A scorer is a function that takes a run, not {one_line(repr(scorer), 80)}.")


class _Evaluated:
    """An evaluator of pydantic-evals as a scorer."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator
        self.__name__ = str(evaluator.get_default_evaluation_name())

    def __call__(self, run: Run) -> Any:
        evals = importlib.import_module("pydantic_evals.evaluators")
        tree = importlib.import_module("pydantic_evals.otel.span_tree")
        context = evals.EvaluatorContext(
            name=run.name,
            inputs=run.plan.task or run.plan.steps[0].task,
            metadata=dict(run.plan.experiment.params),
            expected_output=None,
            output=run.output,
            duration=run.status.elapsed_s,
            _span_tree=tree.SpanTree(),
            attributes={},
            metrics={},
        )
        given = self._evaluator.evaluate_sync(context)
        if hasattr(given, "value"):  # an EvaluationReason
            given = given.value
        if isinstance(given, dict):
            plain = {name: getattr(one, "value", one) for name, one in given.items()}
            return {name: value for name, value in plain.items() if not isinstance(value, str)}
        return None if isinstance(given, str) else given  # a label is no score
