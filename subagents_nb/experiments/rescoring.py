"""Judge many runs, stored ones too: no model is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError
from subagents_nb.experiments.evaluators import Evaluated, is_evaluator
from subagents_nb.launching import Run
from subagents_nb.launching.judging.scoring import JUDGED, Scorer, apply, name_of, waits_for
from subagents_nb.launching.stored.selecting import runs_of
from subagents_nb.store import StoreHome


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
            where it has nothing to say. An evaluator of pydantic-evals does as well: it gets the task as `inputs`, the
            run's `output` in its type, its params as `metadata`, and its requests and tool calls as `span_tree`.

    Raises:
        ScoringFailed: it could not judge some of them.
        RequestError: it is no scorer.
    """
    call = as_scorer(scorer)
    failed: dict[str, str] = {}
    kept = 0
    for run in runs_of(runs):
        if run.state not in JUDGED:
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


def as_scorer(scorer: Any) -> Scorer:
    """Return what judges a run: a function as it is, an evaluator of pydantic-evals as one.

    Raises:
        RequestError: it is neither.
    """
    if is_evaluator(scorer):
        if isinstance(scorer, type):
            raise RequestError(f"{scorer.__name__} is a kind of evaluators; give one, as in {scorer.__name__}(...).")
        return Evaluated(scorer)
    if callable(scorer):
        return scorer  # type: ignore[no-any-return]
    raise RequestError(f"A scorer is a function that takes a run, not {one_line(repr(scorer), 80)}.")


def as_scorers(scorers: Iterable[Any]) -> tuple[Scorer, ...]:
    """Return what judges each run of a sweep. Of evaluators with the same name, the later ones are numbered.

    Raises:
        RequestError: one is no scorer.
    """
    found: list[Scorer] = []
    names: set[str] = set()
    for scorer in map(as_scorer, scorers):
        name = head = name_of(scorer)
        number = 2
        while isinstance(scorer, Evaluated) and name in names:
            name, number = f"{head}_{number}", number + 1
        names.add(name)
        found.append(scorer.named(name) if isinstance(scorer, Evaluated) and name != head else scorer)
    return tuple(found)
