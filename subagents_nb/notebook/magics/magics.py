"""The magics: one for each verb of the table, their defaults, and how a cell launches."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import traitlets
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from subagents_nb.domain.plans.options import OPTIONS, Option
from subagents_nb.notebook.magics.cells import CellCall, Faults, carry_out, raise_failure
from subagents_nb.notebook.magics.experiment_flags import about_run, cases_of, grid_of, scorers_of
from subagents_nb.notebook.magics.line_parser import amount, number
from subagents_nb.notebook.magics.parsers import magic_parser
from subagents_nb.notebook.magics.work_flags import defaults_of, launch_options
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.notebook.verbs.verb import FOREVER, Verb
from subagents_nb.terminal import say

if TYPE_CHECKING:
    from subagents_nb.experiments.sweeps.sweep_spec import SweepSpec


class SubagentMagics(Magics):
    """Delegate work to subagents that outlive the kernel. What can be configured is a flag's default, or for all."""

    default_agent = traitlets.Unicode("", help="The agent when a cell names none.").tag(config=True)
    wait = traitlets.Unicode("", help="`forever` or a time: every launch waits so long.").tag(config=True)
    queue = traitlets.Bool(True, help="Wait for a place when none is free; else refuse.").tag(config=True)
    quiet = traitlets.Bool(False, help="Show nothing at a launch.").tag(config=True)
    reuse = traitlets.Enum(
        ("", "tracked", "complete", "never"), "", help="Which runs like it may stand in for a new one."
    ).tag(config=True)
    template = traitlets.Bool(False, help="Fill {{ name }} in every task.").tag(config=True)
    display = traitlets.Enum(
        ("auto", "widget", "html", "text"),
        "auto",
        help="How runs are shown. auto: a live widget on a page, a card elsewhere.",
    ).tag(config=True)
    prewarm = traitlets.Bool(
        True,
        help="Behind the first cell, load what a launch needs and start the supervisor, so that it begins at once.",
    ).tag(config=True)
    notices = traitlets.Bool(True, help="Tell with the next cell which runs ended unseen.").tag(config=True)
    on_end = traitlets.Callable(
        None,
        allow_none=True,
        help="A function of yours: given the Run, on a thread of its own, when one that was launched here has ended.",
    ).tag(config=True)

    @traitlets.observe("display")
    def _set_display(self, change: Any) -> None:
        from subagents_nb.notebook.views.show import set_display_mode

        set_display_mode(change.new)

    on_attention = traitlets.Callable(
        None,
        allow_none=True,
        help="Likewise a function of yours, when a live run asks you something or may need a look.",
    ).tag(config=True)

    @traitlets.observe("notices", "on_end", "on_attention")
    def _set_notices(self, _change: Any) -> None:
        module = sys.modules.get("subagents_nb.notebook.views.notices")
        if module is not None:  # otherwise the first launch does it
            self._tell_by(module.NOTICES)

    def _tell_by(self, notices: Any) -> None:
        notices.enabled, notices.hook, notices.attention_hook = self.notices, self.on_end, self.on_attention

    def launch(self, call: CellCall) -> Any:
        """Launch one agent, or a sweep of it."""
        from subagents_nb import launching
        from subagents_nb.notebook.bodies.namespace import lookup

        options, variables, parser, faults = call.options, call.variables, call.parser, call.faults
        fill = call.filler()
        schema = faults.tried(lambda: lookup(options.schema, variables, "--schema")) if options.schema else None
        asked = {
            "agent": options.agent or self.default_agent or None,
            "task": call.text if fill is None else faults.tried(lambda: fill(call.text), call.text),
            "schema": schema,
            "schema_name": options.schema if schema is not None else None,
            **self._launching(call),
        }
        if isinstance(held := variables.get(options.fork or ""), launching.Run):
            asked["fork"] = held
        if options.sweep or options.cases:
            faults.refuse()
            return launch_sweep(None, asked, call)
        scorers = faults.tried(lambda: scorers_of(options, variables, parser), [])
        faults.refuse(lambda: launching.preflight(**asked).reasons)
        if options.dry_run:
            return launching.preflight(**asked)
        run = launching.launch(**asked, queue=self.queue and not options.no_queue)
        return self.begun(call, run, scorers)

    def launch_chain(self, call: CellCall) -> Any:
        """Launch a chain, or a sweep of it."""
        from subagents_nb import launching

        options, variables, parser, faults = call.options, call.variables, call.parser, call.faults
        asked = self._launching(call, chain=True)
        scorers = faults.tried(lambda: scorers_of(options, variables, parser), [])
        parsed: Any = faults.tried(lambda: call.read_chain(lenient=True))
        if parsed is None or parsed.faults or faults:
            if parsed is not None:
                faults.tried(lambda: parsed.refuse(lambda flow: launching.preflight(flow, **asked).reasons))
            faults.refuse()
        if options.dry_run and not (options.sweep or options.cases):
            checked = launching.preflight(parsed.chain, **asked)
            return dataclasses.replace(checked, reasons=tuple(parsed.located(checked.reasons)))
        with parsed.locating():
            if options.sweep or options.cases:
                return launch_sweep(parsed.chain, asked, call)
            run = launching.launch(parsed.chain, **asked, queue=self.queue and not options.no_queue)
        return self.begun(call, run, scorers)

    def _launching(self, call: CellCall, *, chain: bool = False) -> dict[str, Any]:
        """Return what both cells that launch may say, as arguments of `launch`."""
        options, parser, faults = call.options, call.parser, call.faults
        return {
            **launch_options(options, parser, faults, self, chain=chain),
            **faults.tried(lambda: _inputs(call), {}),
            "tags": tuple(options.tag),
            "reuse": options.reuse or self.reuse or None,
            "fresh": options.fresh,
            "origin": call.origin,
            **defaults_of(self, parser, faults),
            **faults.tried(lambda: about_run(options, parser), {}),
        }

    def begun(self, call: CellCall, run: Any, scorers: Sequence[Any] = ()) -> Any:
        """Bind the new run, see to it that its end is told, wait for it if asked to; return it to be shown once."""
        from subagents_nb.notebook.views.notices import NOTICES
        from subagents_nb.notebook.views.show import show_run

        options, how_long = call.options, call.how_long
        self._tell_by(NOTICES)
        if not (run.reused and run.status.ended):
            NOTICES.expect(run)
        if scorers:
            run.judge_with(scorers)
        if options.bind is not None:
            call.variables[options.bind] = run
        quiet = options.quiet if options.quiet is not None else self.quiet
        if how_long is None:
            return None if quiet else run
        from subagents_nb.notebook.views.waiting_line import waiting_line

        shows_its_end = quiet or show_run(run)
        with contextlib.nullcontext() if quiet else waiting_line(lambda: [run.status]):
            has_ended = run.wait(None if how_long == FOREVER else float(how_long))
        if has_ended:
            NOTICES.known_to_person(run.id)
            raise_failure(run)
            if not shows_its_end:
                run.display()
        return None


def magics_of(verbs: Iterable[Verb] = VERBS) -> type[SubagentMagics]:
    """Return the class with a magic for each verb that makes sense in a cell, and the defaults of options."""
    methods = {verb.magic: _magic(verb) for verb in verbs if not verb.not_in_cell}
    defaults = {one.trait: _default(one).tag(config=True) for one in OPTIONS if one.trait}
    # Its name is what %config knows; the module would be that of the metaclass.
    cls = type("SubagentMagics", (SubagentMagics,), {"__module__": __name__, **methods, **defaults})
    return magics_class(cls)


def _default(option: Option) -> traitlets.TraitType[Any, Any]:
    who = "neither cell nor agent says it" if option.behind else "a cell does not say it"
    about = f"{option.help}: when {who}"
    if option.choices:
        return traitlets.Enum(("", *option.choices), "", help=about)
    if option.kind == "count":
        return traitlets.Int(0, min=0, help=about)
    return traitlets.Bool(False, help=about) if option.kind == "flag" else traitlets.Unicode("", help=about)


def _magic(verb: Verb) -> Callable[..., Any]:
    def magic(self: SubagentMagics, line: str, cell: str | None = None) -> Any:
        return carry_out(verb, self, line, cell)

    magic.__name__ = verb.magic
    magic.__doc__ = verb.described
    # What `%%subagent?` shows is what -h shows, made when it is asked for: IPython calls `getdoc` where there is one.
    magic.getdoc = lambda: magic_parser(verb).format_help()  # type: ignore[attr-defined]
    # Help is found in either form, whichever the person tried; `carry_out` refuses a form that makes no sense.
    return no_var_expand(line_cell_magic(magic))


def _inputs(call: CellCall) -> dict[str, Any]:
    """Return the variables that go into the run. Names only: nothing is evaluated."""
    options, variables = call.options, call.variables
    if options.inputs is None:
        return {}
    from subagents_nb.notebook.bodies.namespace import lookup

    names = [name.strip() for name in options.inputs.split(",") if name.strip()]
    faults = Faults()
    limit = faults.tried(lambda: amount(call.parser, "--max-input-mb", options.max_input_mb))
    values = {}
    for name in names:
        values[name] = faults.tried(functools.partial(lookup, name, variables, "--inputs"))
    faults.refuse()
    return {"inputs": values, "max_input_mb": limit}


def launch_sweep(what: Any, asked: dict[str, Any], call: CellCall) -> Any:
    """Launch the sweep that a cell asks for, bind it, wait for it if asked to; return it to be shown once."""
    from subagents_nb.experiments.sweeps.sweep import sweep
    from subagents_nb.experiments.sweeps.sweep_spec import plan_sweep, swept_options
    from subagents_nb.notebook.comparing.sweep_show import show_sweep
    from subagents_nb.notebook.views.waiting_line import waiting_line

    options, variables, parser, how_long = call.options, call.variables, call.parser, call.how_long
    known = swept_options()
    grid, cases = grid_of(options, variables, parser, known), cases_of(options, variables, parser)
    given = {name: value for name, value in asked.items() if name in known and value is not None and name not in grid}
    if "schema" not in given:
        given.pop("schema_name", None)
    agent = given.pop("agent", None) if what is None else what
    how: dict[str, Any] = {
        "grid": grid if grid or cases is None else None,
        "cases": cases,
        "failed": options.failed,
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
        there, cost = _foreseen(order, fresh=bool(options.fresh))
        already_there = f", of which {there:,} are there" if there else ""
        say(f"A sweep of {len(order.cells):,} runs{already_there}.{cost} The plan of the first:")
        return order.preflight(order.cells[0], fresh=bool(options.fresh))
    swept = sweep(agent, asked.get("task"), **how, fresh=bool(options.fresh))
    if options.bind is not None:
        variables[options.bind] = swept
    if how_long is None:
        return None if options.quiet else swept
    shows_its_end = options.quiet or show_sweep(swept)
    with contextlib.nullcontext() if options.quiet else waiting_line(lambda: swept.runs.snapshots):
        swept.wait(None if how_long == FOREVER else float(how_long))
    return None if shows_its_end else swept


def _foreseen(order: SweepSpec, *, fresh: bool) -> tuple[int, str]:
    """Return how many runs the sweep would find, and what is to be said of the money that the others will cost.

    One that can't be planned finds none, and its plan says why.
    """
    from subagents_nb.errors import RequestError, StoreError
    from subagents_nb.experiments.comparison.digits import money
    from subagents_nb.experiments.sweeps.scheduler import SweepScheduler
    from subagents_nb.experiments.sweeps.sweep_outlook import cost_left
    from subagents_nb.store import open_home

    try:
        cells = SweepScheduler(open_home(create=False), order, fresh=fresh)
        there, cost = cells.count_reusable(), cost_left(cells.costs())
    except (RequestError, StoreError):
        return 0, ""
    if there == len(order.cells):
        return there, ""
    if cost is None:
        return there, " What it will cost is not known before one of its runs has ended."
    return there, f" What is missing will cost about {money(cost.likely)} ({money(cost.low)} to {money(cost.high)})."
