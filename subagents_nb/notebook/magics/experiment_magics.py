"""The sweeps of the cells that launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subagents_nb.notebook.magics.experiment_flags import grid_of, scorers_of
from subagents_nb.notebook.magics.line_parser import number
from subagents_nb.notebook.verbs.verb import FOREVER
from subagents_nb.terminal import say

if TYPE_CHECKING:
    from subagents_nb.experiments.sweeps.sweep_spec import SweepSpec
    from subagents_nb.notebook.magics.cells import CellCall


def launch_sweep(what: Any, asked: dict[str, Any], call: CellCall) -> Any:
    """Launch the sweep that a cell asks for, bind it, wait for it if asked to; return it to be shown once."""
    from subagents_nb.experiments.sweeps.sweep import sweep
    from subagents_nb.experiments.sweeps.sweep_spec import plan_sweep, swept_options
    from subagents_nb.notebook.comparing.sweep_show import show_sweep

    options, variables, parser, how_long = call.options, call.variables, call.parser, call.how_long
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


def _there(order: SweepSpec, *, fresh: bool) -> int:
    """Return how many runs the sweep would find; one that can't be planned finds none, and its plan says why."""
    from subagents_nb.errors import RequestError, StoreError
    from subagents_nb.experiments.sweeps.sweep import Sweep
    from subagents_nb.store import open_home

    try:
        return Sweep(open_home(create=False), order, fresh=fresh).foresee()
    except (RequestError, StoreError):
        return 0
