"""The magics about many runs: name an experiment, compare, launch again what failed. And the sweeps of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.core.magic import line_magic, magics_class, no_var_expand

from subagents_nb.notebook.cells import CellMagics, explain, number
from subagents_nb.notebook.experiment_flags import grid_of, scorers_of
from subagents_nb.notebook.options import FOREVER
from subagents_nb.notebook.parsers import PARSERS
from subagents_nb.terminal import say

if TYPE_CHECKING:
    from subagents_nb.experiments.orders import Order


@magics_class
class ExperimentMagics(CellMagics):
    """Look at many runs beside one another."""

    @no_var_expand
    @line_magic
    def subagent_experiment(self, line: str) -> Any:
        options = self._read("subagent_experiment", line)
        if options is None:
            return None
        from subagents_nb.launching.experiment import current_experiment, set_experiment
        from subagents_nb.notebook.receipts import Said

        if options.off:
            set_experiment(None)
            return Said.about("experiment", "off", "later launches belong to none")
        if options.name is not None:
            set_experiment(options.name)
            return Said.about(options.name, "experiment", "later launches of this kernel belong to it")
        current = current_experiment()
        said = "later launches belong to it" if current else "name one: %subagent_experiment NAME"
        return Said.about(current or "experiment", "current" if current else "none", said)

    @no_var_expand
    @line_magic
    def subagent_compare(self, line: str) -> Any:
        options = self._read("subagent_compare", line)
        if options is None:
            return None
        from subagents_nb import launching
        from subagents_nb.experiments import compare, current_experiment

        named = options.experiment or (None if options.run else current_experiment())
        chosen: list[Any] = self._all_meant(options.run)
        if named is not None:
            chosen.append(launching.runs(experiment=named))
        if not chosen:
            PARSERS["subagent_compare"]().error("say which runs: a sweep, runs, or --experiment NAME")
        return compare(
            chosen if len(chosen) > 1 else chosen[0],
            baseline=options.baseline,
            by=options.by or None,
            metrics=options.metric or None,
            lower=options.lower,
        )

    @no_var_expand
    @line_magic
    def subagent_retry(self, line: str) -> Any:
        options = self._read("subagent_retry", line)
        if options is None:
            return None
        from subagents_nb.experiments import retry
        from subagents_nb.notebook.notices import NOTICES

        chosen = self._all_meant(options.run)
        fresh = retry(chosen if len(chosen) > 1 else chosen[0])
        for run in fresh:
            NOTICES.expect(run)
        return fresh


def launch_sweep(
    what: Any, asked: dict[str, Any], options: Any, variables: dict[str, Any], magic: str, how_long: str | float | None
) -> Any:
    """Launch the sweep that a cell asks for, bind it, wait for it if asked to; return it to be shown once."""
    from subagents_nb.experiments.orders import swept_options
    from subagents_nb.experiments.sweeps import plan_sweep, sweep
    from subagents_nb.notebook.sweep_show import show_sweep

    parser = PARSERS[magic]()
    known = swept_options()
    grid = grid_of(options, variables, parser, known)
    given = {name: value for name, value in asked.items() if name in known and value is not None and name not in grid}
    if "schema" not in given:
        given.pop("schema_name", None)
    agent = given.pop("agent", None) if what is None else what
    how: dict[str, Any] = {
        "grid": grid,
        "repeat": number(parser, "--repeat", options.repeat) or 1,
        "name": options.name,
        "experiment": options.experiment,
        "max_parallel": number(parser, "--max-parallel", options.max_parallel),
        "usage_budget": options.sweep_budget,
        "score": scorers_of(options, variables, parser),
        "notes": options.note or "",
        "tags": tuple(options.tag),
        "reuse": asked["reuse"],
        "origin": asked["origin"],
        **given,
    }
    if options.dry_run:
        order = plan_sweep(agent, asked.get("task"), **how)
        there = _there(order, fresh=bool(options.fresh))
        found = f", of which {there:,} are there" if there else ""
        say(f"A sweep of {len(order.cells):,} runs{found}. The plan of the first:")
        return order.preflight(order.cells[0], fresh=bool(options.fresh))
    swept = sweep(agent, asked.get("task"), **how, fresh=bool(options.fresh))
    if options.bind is not None:
        variables[options.bind] = swept
    if how_long is None:
        return None if options.quiet else swept
    shows_its_end = options.quiet or show_sweep(swept)
    swept.wait(None if how_long == FOREVER else float(how_long))
    return None if shows_its_end else swept


def _there(order: Order, *, fresh: bool) -> int:
    """Return how many runs the sweep would find; one that can't be planned finds none, and its plan says why."""
    from subagents_nb.errors import RequestError, StoreError
    from subagents_nb.experiments.sweeps import Sweep
    from subagents_nb.store import open_home

    try:
        return Sweep(open_home(create=False), order, fresh=fresh).foresee()
    except (RequestError, StoreError):
        return 0


explain(ExperimentMagics)
