"""Compare runs: the parameters in which they differ, what was judged, and the paired difference to a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from subagents_nb.above import above
from subagents_nb.blocks import to_text
from subagents_nb.errors import RequestError
from subagents_nb.experiments.comparison.changes import INPUTS, Changes, is_named_here, name_changes
from subagents_nb.experiments.comparison.grouping import (
    BY_NAME,
    CASE,
    DONE,
    FIGURES,
    LIVE,
    Group,
    differing,
    fits,
    group,
    params_of,
    place_of,
    same,
)
from subagents_nb.experiments.comparison.inference import Inference
from subagents_nb.experiments.comparison.older_names import OlderNames
from subagents_nb.experiments.frames import Frame
from subagents_nb.experiments.plan_parts import TASK
from subagents_nb.experiments.rescoring import settle
from subagents_nb.experiments.rows import RunRow, read_rows
from subagents_nb.experiments.statistics.estimates import Estimate
from subagents_nb.experiments.statistics.reducers import reducer
from subagents_nb.launching import Run, Runs
from subagents_nb.launching.stored.selecting import ids_of
from subagents_nb.plain_text import plain
from subagents_nb.store import FileRuns, StoreHome, open_home


class Case(NamedTuple):
    """One judgement, with what the baseline got for the same."""

    metric: str
    unit: str
    group: Group
    value: float
    baseline: float | None
    loss: float  # how much worse than the baseline, or than the best; NaN is the worst


class Comparison(OlderNames, Sequence[Group]):
    """Groups of runs, one for each combination of the parameters in which they differ."""

    def __init__(
        self,
        groups: Sequence[Group],
        *,
        by: Sequence[str],
        metrics: Sequence[str],
        lower: Sequence[str] = (),
        baseline: Group | None = None,
        same: Mapping[str, Any] | None = None,
        home: StoreHome | None = None,
        changes: Changes | None = None,
    ) -> None:
        self.groups = tuple(groups)
        self.by = tuple(by)
        self.metrics = tuple(metrics)
        self.lower = frozenset(lower) | frozenset(FIGURES)
        self.baseline = baseline
        self.same = dict(same or {})
        self.changes = changes or Changes()
        self._home = home
        self._inferences: dict[str, Inference] = {}  # by metric

    def __getitem__(self, index: Any) -> Any:
        """Return one group, or some."""
        return self.groups[index]

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def runs(self) -> Runs:
        """Return the runs that are compared, group by group."""
        home = self._home if self._home is not None else open_home(create=False)
        reader = FileRuns(home)
        return Runs(home, [reader.snapshot(row.run_id) for one in self.groups for row in one.rows])

    def units(self, metric: str) -> list[str]:
        """Return everything that was judged under a metric in any group."""
        return list(dict.fromkeys(unit for one in self.groups for unit in one.units.get(metric, {})))

    def estimate(self, one: Group, metric: str) -> Estimate:
        """Return what a group came to."""
        return self.inference(metric).estimate(self._place(one))

    def inference(self, metric: str) -> Inference:
        """Return what is known of a metric in all groups."""
        if metric not in self._inferences:
            base = None if self.baseline is None else self._place(self.baseline)
            self._inferences[metric] = Inference(self.groups, metric, lower=metric in self.lower, baseline=base)
        return self._inferences[metric]

    def missing(self, one: Group, metric: str) -> int:
        """Return how many judgements other groups have and this one lacks. They are no zeros."""
        if metric in FIGURES:
            return 0
        return len(self.units(metric)) - len(one.units.get(metric, {}))

    def difference(self, one: Group, metric: str) -> Estimate | None:
        """Return the difference to the baseline over what both have, case by case; None without one, and for itself."""
        if self.baseline is None or one is self.baseline:
            return None
        return self.inference(metric).difference(self._place(one), self._place(self.baseline))

    def compares(self, metric: str) -> bool:
        """Say whether differences to a baseline are shown: of scores. Those of time and money are in the records."""
        return self.baseline is not None and metric not in FIGURES

    def verdict(self, one: Group, metric: str) -> str:
        """Say how the difference to the baseline stands: better, worse, or unclear where it may be none."""
        return self.inference(metric).verdict(self._place(one))

    def best(self, metric: str) -> list[Group]:
        """Return the group that is better than each other one; none where that may be chance.

        A group of which every run failed is not the best by failing fast.
        """
        return [self.groups[at] for at in self.inference(metric).best()]

    def worst(self, metric: str | None = None, number: int = 10) -> list[Case]:
        """Return single judgements, the worst first: against the baseline, else by their values."""
        judged = [metric] if metric is not None else [name for name in self.metrics if name not in FIGURES]
        cases = [case for name in judged for case in self._cases(name)]
        cases.sort(key=lambda case: (not math.isnan(case.loss), -case.loss if not math.isnan(case.loss) else 0.0))
        return cases[:number]

    def _cases(self, metric: str) -> Iterator[Case]:
        sign = 1 if metric in self.lower else -1
        reached = [value for one in self.groups for value in one.units.get(metric, {}).values() if math.isfinite(value)]
        top = (min(reached) if metric in self.lower else max(reached)) if reached else math.nan
        base = self.baseline.units.get(metric, {}) if self.baseline is not None else {}
        for one in self.groups:
            if self.baseline is not None and one is self.baseline:
                continue
            for unit, value in one.units.get(metric, {}).items():
                before = base.get(unit)
                if self.baseline is not None and before is None:
                    continue
                loss = sign * (value - (top if before is None else before))
                if loss > 0 or math.isnan(loss):
                    yield Case(metric, unit, one, value, before, loss)

    def records(self) -> list[dict[str, Any]]:
        """Return one row for each group, with mean, spread, number, interval and difference of each metric."""
        return [dict(self._record(one)) for one in self.groups]

    def _record(self, one: Group) -> Iterator[tuple[str, Any]]:
        for name, value in one.params.items():
            yield f"params.{name}", value
        yield "runs", len(one.rows)
        yield "failed", len(one.rows) - one.count(DONE) - one.count(LIVE)
        for metric in self.metrics:
            estimate, apart = self.estimate(one, metric), self.difference(one, metric)
            head = f"metrics.{metric}"
            yield head, estimate.mean
            for name in ("sd", "n", "low", "high", "method", "nonfinite"):
                yield f"{head}.{name}", getattr(estimate, name)
            yield f"{head}.missing", self.missing(one, metric)
            yield f"{head}.best", one in self.best(metric)
            if self.baseline is not None:
                for name in ("mean", "low", "high", "n", "method", "p", "test"):
                    yield f"{head}.difference.{name}", getattr(apart, name, None)
                yield (
                    f"{head}.difference.p_adjusted",
                    self.inference(metric).chance(self._place(one)) if apart else None,
                )
                yield f"{head}.verdict", self.verdict(one, metric) or None

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame with a row for each group. Raises RequestError without pandas."""
        return Frame("groups", self.records()).to_pandas()

    @property
    def text(self) -> str:
        """Return the comparison as a table of text."""
        from subagents_nb.experiments.comparison.comparison_words import (
            design_text,
            groups_table,
            remarks,
            worst_table,
        )

        below = "\n".join(remarks(self))
        return to_text(design_text(self), groups_table(self), worst_table(self), f"\n{below}" if below else None)

    def chart(self, metric: str | None = None) -> Any:
        """Return an Altair chart of a score against the cost.

        Raises:
            RequestError: Altair is not installed, or nothing was judged.
        """
        from subagents_nb.experiments.comparison.charts import score_against_cost

        return score_against_cost(self, metric)

    def __repr__(self) -> str:
        return plain(self.text)

    def _ipython_display_(self) -> None:
        above("show_comparison")(self)

    def _repr_html_(self) -> str:
        return str(above("comparison_html")(self))

    def _place(self, one: Group) -> int:
        return place_of(one, self.groups)


def compare(
    runs: Any,
    *,
    baseline: Any = None,
    metrics: Sequence[str] | None = None,
    by: Sequence[str] | str | None = None,
    lower: Sequence[str] | str = (),
    cluster: str | None = None,
    failed: str | None = None,
    reduce: str = "mean",
) -> Comparison:
    """Compare runs by the parameters in which they differ.

    Args:
        runs: a sweep, what `runs()` gives, several runs, or their ids.
        baseline: what the others are held against: parameters such as {"model": "a"}, `model=a`, or one of the runs.
        metrics: the scores and figures to show; all scores, and cost, tokens and seconds, if None.
        by: the parameters that make the groups; if None, those that differ, or those of a baseline that names only some
            of them. Those that differ besides tell the cases apart.
        lower: the scores of which less is better. Of cost, tokens and seconds it is.
        cluster: the parameter, or what is said about cases, that those have in common which belong together, such as a
            document: they are not independent.
        failed: what a failed run is where others were judged right or wrong: `missing` or `wrong`; else as its
            sweep said.
        reduce: what the repeats of a case come to: `mean`, `median`, `mode` (the majority), `max`, `at_least_1` (right
            at least so often), `pass_at_3` (the chance that one of three is right).

    Raises:
        RequestError: there are no runs, or no such baseline, parameter or metric.
    """
    home, ids = ids_of(runs)
    settle(home, ids)
    rows = read_rows(home, ids)
    if not rows:
        raise RequestError("There is nothing to compare: no run was given.")
    return compare_rows(
        rows,
        baseline={"run": baseline.id} if isinstance(baseline, Run) else baseline,
        metrics=metrics,
        by=[by] if isinstance(by, str) else by,
        lower=[lower] if isinstance(lower, str) else lower,
        cluster=cluster,
        failed=failed,
        reduce=reduce,
        home=home,
    )


def compare_rows(
    rows: Sequence[RunRow],
    *,
    baseline: Any = None,
    metrics: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
    lower: Sequence[str] = (),
    cluster: str | None = None,
    failed: str | None = None,
    reduce: str = "mean",
    home: StoreHome | None = None,
) -> Comparison:
    """Do the same with rows that were read; pure."""
    reducer(reduce)
    if failed not in (None, "missing", "wrong"):
        raise RequestError(f"failed is 'missing' or 'wrong', not {failed!r}.")
    changes = name_changes(rows)
    apart = differing(rows)
    known = {name for row in rows for name in params_of(row)}
    shared = known | {name for row in rows for name in row.about}
    unknown = [name for name in by or () if name not in known]
    if unknown := unknown or [name for name in [cluster] if name is not None and name not in shared]:
        raise RequestError(f"No run has a parameter {unknown[0]!r}; they have {', '.join(sorted(known))}.")
    # Items are no settings: cases, what they share, and tasks and inputs of runs that were launched one by one.
    loose = () if any(row.sweep for row in rows) else (TASK, INPUTS)
    items = {CASE, cluster, *(name for name in loose if all(is_named_here(row, name) for row in rows))}
    settings = tuple(name for name in apart if name not in items)
    chosen = tuple(by) if by else settings or (("agent",) if CASE in apart else BY_NAME)

    def groups_by(names: tuple[str, ...]) -> list[Group]:
        others = [name for name in apart if name not in names]
        return group(rows, names, others, cluster=cluster, failed=failed, reduce=reduce, lower=lower)

    groups = groups_by(chosen)
    if not by and len(_fitting(groups, baseline)) > 1:  # it leaves some open, which tell the cases apart then
        groups = groups_by(chosen := tuple(name for name in chosen if name in _wanted(baseline)))
    scores = list(dict.fromkeys(name for row in rows for name, _ in row.scores))
    every = [*(name for name in scores if name not in FIGURES), *FIGURES]
    if unknown := [name for name in metrics or () if name not in every]:
        raise RequestError(f"Nothing was judged as {unknown[0]!r}; there are {', '.join(every)}.")
    base = None if baseline is None else _baseline(groups, baseline)
    return Comparison(
        groups,
        by=chosen,
        metrics=metrics or every,
        lower=lower,
        baseline=base,
        same=same(rows, chosen),
        home=home,
        changes=Changes(tuple(one for one in changes.own if one.name not in items), changes.following),
    )


def _baseline(groups: Sequence[Group], given: Any) -> Group:
    wanted, found = _wanted(given), _fitting(groups, given)
    if not wanted:
        raise RequestError('The baseline is named by parameters, as in {"model": "a"}, or it is one of the runs.')
    if len(found) == 1:
        return found[0]
    listed = "; ".join(one.label for one in groups[:8])
    what = "No group is" if not found else f"{len(found)} groups are"
    more = "name more of its parameters; " if found else ""
    raise RequestError(f"{what} the baseline {wanted}; {more}there are: {listed}.")


def _fitting(groups: Sequence[Group], given: Any) -> list[Group]:
    """Return the groups that a baseline names."""
    wanted = _wanted(given)
    if set(wanted) == {"run"} and not any("run" in one.params for one in groups):
        return [one for one in groups if any(row.run_id == wanted["run"] for row in one.rows)]
    return [one for one in groups if fits(one, wanted)] if wanted else []


def _wanted(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        given = dict(part.split("=", 1) for part in given.split(",") if "=" in part)
    return {str(name).strip(): value for name, value in given.items()} if isinstance(given, Mapping) else {}
