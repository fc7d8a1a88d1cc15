"""What a sweep was asked to do, checked: which cells there are, and how the run of each is launched."""

from __future__ import annotations

import functools
import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from subagents_nb.domain.agents.settings import ReusePolicy
from subagents_nb.domain.plans.budgets import SharedBudget, UsageBudget
from subagents_nb.domain.plans.experiments import Case, Cell, ExperimentPart, FailedAs, Lineage
from subagents_nb.domain.plans.flow import Chain
from subagents_nb.domain.plans.grid import (
    CASE,
    Axis,
    Combination,
    axes_of,
    case_axis,
    case_fields,
    combinations,
    fields_of,
    filled,
    filled_text,
    sweep_digest,
    too_many,
)
from subagents_nb.domain.plans.plan import Draft, Origin
from subagents_nb.domain.values.ids import is_run_name
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.experiments.cases.case_list import Cases
from subagents_nb.experiments.rescoring import as_scorers
from subagents_nb.launching import Preflight, Run, launch, preflight, settings
from subagents_nb.launching.composing.flows import FlowLike, as_chain, types_of
from subagents_nb.launching.composing.parsed_launch import somewhere
from subagents_nb.launching.controlling.step_handles import Types
from subagents_nb.launching.gathering.experiment import current_experiment, lineage_of
from subagents_nb.launching.gathering.lineage import origin_here
from subagents_nb.launching.gathering.output_types import OutputType, output_type
from subagents_nb.launching.gathering.prices import price_problems
from subagents_nb.launching.inputs.input_values import gather
from subagents_nb.launching.judging.scoring import Scorer
from subagents_nb.launching.starting.reuse_search import policy_of
from subagents_nb.planning.budget_parser import plan_usage_budget

MAX_REPEAT = 1000
_OURS = frozenset({
    "task", "name", "tags", "experiment", "params", "notes", "max_live", "queue", "wait", "origin", "reuse", "fresh",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSpec:
    """What a sweep was asked to do."""

    what: str | Chain | None
    task: str | None
    axes: tuple[Axis, ...]
    cells: tuple[Combination, ...]
    digest: str
    earlier_digest: str  # of the same sweep, as versions before made it
    cwd: str | None  # where all its runs work; None: where they work varies
    name: str | None
    experiment: str | None
    notes: str
    tags: tuple[str, ...]
    max_parallel: int | None
    budget: UsageBudget | None
    reuse: ReusePolicy
    scorers: tuple[Callable[[Any], Any], ...]
    origin: Origin
    lineage: Lineage
    failed: FailedAs | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_case(self) -> bool:
        """Whether it asks cases."""
        return any(isinstance(value, Case) for axis in self.axes[-1:] for _, value in axis.values[:1])

    def launch(self, cell: Combination, shares: SharedBudget | None = None) -> Run:
        """Launch the run of one cell, which shares a budget with others."""
        what, task, options = self._launch_options(cell)
        about = self._about(cell, shares)
        return launch(what, task, **options, **about, max_live=self.max_parallel, fresh=True)

    def preflight(self, cell: Combination, *, fresh: bool = False) -> Preflight:
        """Say what the launch of one cell would do, without doing it."""
        what, task, options = self._launch_options(cell)
        found = preflight(what, task, **options, **self._about(cell), reuse=self.reuse, fresh=fresh)
        unpriced = price_problems(found.plan, self.budget) if found.plan is not None and found.reuses is None else ()
        return Preflight(None, unpriced, contracts=found.contracts) if unpriced else found

    def _about(self, cell: Combination, shares: SharedBudget | None = None) -> dict[str, Any]:
        part = ExperimentPart(
            name=self.experiment,
            params=cell.params,
            notes=self.notes,
            lineage=self.lineage,
            cell=Cell(sweep=self.digest, place=cell.place, repeat=cell.repeat, of=len(self.cells)),
            case=cell.given.get(CASE) if self.by_case else None,
            failed=self.failed,
            shares=shares,
        )
        return {"name": self._name(cell), "experiment": part, "tags": self.tags, "origin": self.origin}

    def planned(self, cell: Combination) -> tuple[tuple[Draft, ...], tuple[str, ...]]:
        """Return the plans that a run of a cell may have, and the reasons for which none could begin now.

        Raises:
            LaunchRefused: it can't be planned, here or elsewhere.
        """
        what, task, options = self._launch_options(cell)
        checked = preflight(what, task, **options, reuse="never")
        shown = ", ".join(f"{name}={one_line(str(value), 60)}" for name, value in cell.params.items())
        # A budget of the whole sweep is none of its runs', so their own plans don't tell.
        unpriced = price_problems(checked.plan, self.budget) if checked.plan is not None else ()
        reasons = tuple(f"{shown}: {reason}" for reason in (*checked.reasons, *unpriced))
        if not checked.contracts:
            raise LaunchRefused(reasons)
        return checked.drafts, reasons

    def task_of(self, cell: Combination) -> str | None:
        """Return the task of a cell; None for a chain, which has several."""
        return self._launch_options(cell)[1]

    def kind_of(self, cell: Combination) -> str:
        """Return what cells have in common that differ in the words of their tasks alone."""
        known = swept_options()
        return repr([(name, word) for name, word in cell.params.items() if name in known])

    def types(self, cell: Combination) -> tuple[OutputType | None, Types]:
        """Return the types in which the outputs of a cell's run come back: of the whole run, and of a chain's steps."""
        what, _, options = self._launch_options(cell)
        schema = options.get("schema")
        kind = None if schema is None else output_type(schema, name=options.get("schema_name"))
        return kind, types_of(what) if isinstance(what, Chain) else {}

    def _launch_options(self, cell: Combination) -> tuple[str | Chain | None, str | None, dict[str, Any]]:
        known = swept_options()
        options = {**self.options, **{name: value for name, value in cell.given.items() if name in known}}
        # An option stands in a text by its word: a schema is no text. Any other name stands by what it stands for.
        words = {name: cell.params[name] if name in known else value for name, value in cell.given.items()}
        task = None if self.task is None else filled_text(self.task, words)
        if isinstance(self.what, Chain):
            return filled(self.what, words), task, options
        return options.pop("agent", self.what), task, options

    def _name(self, cell: Combination) -> str | None:
        if self.name is None:
            return None
        again = f".{cell.repeat + 1}" if any(other.repeat for other in self.cells) else ""
        return f"{self.name}-{cell.place + 1}{again}"


@functools.cache
def swept_options() -> frozenset[str]:
    """Return the options of a launch that may vary in a grid."""
    return frozenset(inspect.signature(launch).parameters) - _OURS


def plan_sweep(
    agent: str | FlowLike | None = None,
    task: str | None = None,
    *,
    grid: Mapping[str, Any] | None = None,
    cases: Any = None,
    failed: str | None = None,
    repeat: int = 1,
    name: str | None = None,
    experiment: str | None = None,
    max_parallel: int | None = None,
    usage_budget: Any = None,
    score: Scorer | Sequence[Scorer] = (),
    notes: str = "",
    tags: Sequence[str] = (),
    reuse: str | None = None,
    origin: Origin | None = None,
    **options: Any,
) -> SweepSpec:
    """Return what `sweep` with the same arguments would launch; nothing is started.

    Raises:
        LaunchRefused: with every reason found.
    """
    scorers = as_scorers(score if isinstance(score, list | tuple) else [score])
    reasons = Reasons()
    what = agent if agent is None or isinstance(agent, str) else as_chain(agent, task)
    axes = () if grid is None and cases is not None else axes_of(grid or {}, reasons)
    known, fields = swept_options(), fields_of(what) if isinstance(what, Chain) else frozenset()
    fields |= fields_of(task or "")
    if failed not in (None, "missing", "wrong"):
        reasons.append(f"failed is missing or wrong, not {one_line(repr(failed), 40)}")
    for axis in axes:
        if axis.name not in known and axis.name not in fields:
            reasons.append(f"{axis.name} is no option of launch, and {{{{{axis.name}}}}} does not stand in the task")
        elif axis.name in options and axis.name in known:
            reasons.append(f"{axis.name} is given twice: in the grid and for all runs")
        elif axis.name == "agent" and agent is not None:
            reasons.append("the agent is given twice: in the grid and for all runs")
    reasons.extend(f"there is no option {one_line(option, 60)}" for option in options if option not in known)
    axes, options = _with_each_once(axes, options, reasons)
    if cases is not None:
        axes = (*axes, *_cases_axis(cases, axes, case_fields(what if isinstance(what, Chain) else task or ""), reasons))
    if isinstance(repeat, bool) or not isinstance(repeat, int) or not 1 <= repeat <= MAX_REPEAT:
        reasons.append(f"repeat is a number from 1 to {MAX_REPEAT}, not {repeat!r}")
    if name is not None and (not is_run_name(name) or len(name) > 64):
        reasons.append(f"{name!r} can't name a sweep: use 1 to 64 letters, digits, spaces and _ . -")
    if not all(callable(scorer) for scorer in scorers):
        reasons.append("score is a function of yours, or several")
    spend = plan_usage_budget(usage_budget, reasons, single=False)
    cwd = Path(options.get("cwd") or Path.cwd()).absolute()
    policy = _policy(reuse, cwd, reasons)
    if not reasons:
        _check_outputs(combinations(axes, repeat), options, reasons)
    if reasons:
        raise LaunchRefused(reasons)
    where = origin or origin_here()
    return SweepSpec(
        what=what,
        task=task if isinstance(what, str) or what is None else None,
        axes=axes,
        cells=tuple(combinations(axes, repeat)),
        digest=sweep_digest(what, task, axes),
        earlier_digest=sweep_digest(what, task, axes, str(cwd)),
        cwd=None if any(axis.name == "cwd" for axis in axes) else os.path.normpath(cwd),
        name=name,
        experiment=experiment or current_experiment() or name,
        notes=notes,
        tags=tuple(tags),
        max_parallel=max_parallel,
        budget=spend,
        reuse=policy,
        scorers=scorers,
        origin=where,
        lineage=lineage_of(where, cwd),
        failed=cast("FailedAs | None", failed),
        options=options,
    )


def _cases_axis(cases: Any, axes: Sequence[Axis], asked: frozenset[str], reasons: Reasons) -> Iterator[Axis]:
    """Yield the axis of cases, the fastest, if each of them has what the task asks for."""
    try:
        read = cases if isinstance(cases, Cases) else Cases(cases)
    except RequestError as error:
        reasons.append(f"cases: {error}")
        return
    if any(axis.name == CASE for axis in axes):
        reasons.append("case stands in the grid, and there are cases besides")
    if not asked:
        has = next((name for case in read for name in case.inputs), "x")
        reasons.append(f"the task asks for nothing of its cases: write {{case.{has}}} where it belongs")
    for name in sorted(asked):
        lack = [case.id for case in read if name not in case.inputs]
        if lack:
            more = f" and {len(lack) - 1} more" if len(lack) > 1 else ""
            reasons.append(f"{{case.{name}}}: case {one_line(lack[0], 60)}{more} has no input {name}")
    axis = case_axis(read)
    reasons.extend(too_many([*axes, axis]))
    yield axis


def _check_outputs(cells: Iterable[Combination], options: Mapping[str, Any], reasons: Reasons) -> None:
    """Refuse a file that several runs would write, for each would take the other's answer for its own."""
    count: Counter[str] = Counter()
    for cell in cells:
        asked = {**options, **cell.given}
        output = asked.get("output")
        if isinstance(output, str) and output.lower() not in ("true", "false") and not asked.get("worktree"):
            count[output] += 1
    reasons.extend(
        f"output: {runs} runs would write {one_line(path, 80)!r}, and a file belongs to one run at a time; give each a "
        "name of its own in the grid, or leave output away and take run.text"
        for path, runs in count.items()
        if runs > 1
    )


def _policy(asked: str | None, cwd: Path, reasons: Reasons) -> ReusePolicy:
    try:
        return policy_of(asked, settings(cwd if cwd.is_dir() else somewhere()).reuse, fresh=False)
    except RequestError as error:
        reasons.extend(getattr(error, "reasons", (str(error),)))
        return "never"


def _with_each_once(
    axes: Sequence[Axis], options: Mapping[str, Any], reasons: Reasons
) -> tuple[tuple[Axis, ...], dict[str, Any]]:
    """Read each schema, and make the files of the inputs, once: a sweep asks for them with every run."""
    limit = options.get("max_input_mb")

    def files(inputs: Any, where: str) -> Any:
        try:
            return None if inputs is None else gather(inputs, limit)
        except LaunchRefused as refused:
            reasons.extend(f"{where}{reason}" for reason in refused.reasons)
            return None

    def kind(schema: Any, where: str) -> Any:
        try:
            return None if schema is None else output_type(schema)
        except RequestError as error:
            reasons.append(f"{where}{error}")
            return None

    once = {"schema": kind} if any(axis.name == "max_input_mb" for axis in axes) else {"schema": kind, "inputs": files}
    kept = {name: once[name](value, "") if name in once else value for name, value in options.items()}
    unique_axes = []
    for axis in axes:
        if axis.name in once:
            values = tuple((word, once[axis.name](value, f"{axis.name}={word}: ")) for word, value in axis.values)
            unique_axes.append(Axis.model_construct(name=axis.name, values=values))
        else:
            unique_axes.append(axis)
    return tuple(unique_axes), kept
