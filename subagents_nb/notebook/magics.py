"""The magics that come to a Run: launch, resume, launch again, attach. Arguments in, one call down."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Sequence
from typing import Any

import traitlets
from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, line_magic, magics_class, no_var_expand

from subagents_nb.notebook.cells import CellMagics, Faults, amount, explain, number, origin, patience, raise_failure
from subagents_nb.notebook.experiment_flags import about_run, scorers_of
from subagents_nb.notebook.experiment_magics import launch_sweep
from subagents_nb.notebook.options import FOREVER, split_text
from subagents_nb.notebook.parsers import PARSERS
from subagents_nb.notebook.work_flags import defaults_of, limits_of, terms_of, work_of


@magics_class
class SubagentMagics(CellMagics):
    """Delegate work to subagents that outlive the kernel. Each default below is a flag's default."""

    default_agent = traitlets.Unicode("", help="The agent when a cell names none.").tag(config=True)
    default_model = traitlets.Unicode("", help="The model when neither cell nor agent names one.").tag(config=True)
    thinking = traitlets.Unicode("", help="The thinking level when a cell names none.").tag(config=True)
    timeout = traitlets.Unicode("", help="The deadline when a cell names none, such as 30m.").tag(config=True)
    tool_timeout = traitlets.Unicode("", help="The limit of one tool call when a cell names none.").tag(config=True)
    max_requests = traitlets.Int(0, min=0, help="How often a step may ask its model; 0: as the agent says.").tag(
        config=True
    )
    tool_budget = traitlets.Unicode("", help="How many tool calls a step may make.").tag(config=True)
    usage_budget = traitlets.Unicode("", help="What a run may use, such as 200k or $2.").tag(config=True)
    worktree = traitlets.Bool(False, help="Let each %%subagent work in a git worktree of its own.").tag(config=True)
    gate = traitlets.Unicode("", help="A command that must succeed when a %%subagent is done.").tag(config=True)
    acceptance = traitlets.Unicode("", help="When a %%subagent counts as done.").tag(config=True)
    output_mode = traitlets.Enum(("", "inline", "file-only"), "", help="What comes back of an answer in a file.").tag(
        config=True
    )
    progress = traitlets.Bool(False, help="Let each %%subagent keep a progress file.").tag(config=True)
    cwd = traitlets.Unicode("", help="Where agents work when a cell does not say.").tag(config=True)
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
    notices = traitlets.Bool(True, help="Tell with the next cell which runs ended unseen.").tag(config=True)
    on_end = traitlets.Callable(
        None,
        allow_none=True,
        help="A function of yours: given the Run, on a thread of its own, when one that was launched here has ended.",
    ).tag(config=True)

    @traitlets.observe("display")
    def _set_display(self, change: Any) -> None:
        from subagents_nb.notebook.show import set_display_mode

        set_display_mode(change.new)

    on_attention = traitlets.Callable(
        None,
        allow_none=True,
        help="Likewise a function of yours, when a live run asks you something or may need a look.",
    ).tag(config=True)

    @traitlets.observe("notices", "on_end", "on_attention")
    def _set_notices(self, _change: Any) -> None:
        module = sys.modules.get("subagents_nb.notebook.notices")
        if module is not None:  # otherwise the first launch does it
            self._tell_by(module.NOTICES)

    def _tell_by(self, notices: Any) -> None:
        notices.enabled, notices.hook, notices.attention_hook = self.notices, self.on_end, self.on_attention

    @no_var_expand
    @line_cell_magic
    def subagent(self, line: str, cell: str | None = None) -> Any:
        if cell is None:
            line, cell = split_text(line)
        faults = Faults()
        options = self._read("subagent", line, faults)
        if options is None:
            return None
        if cell is None:
            raise UsageError("%subagent: there is no task; write it in a %%subagent cell, or behind -- on the line.")
        from subagents_nb import launching
        from subagents_nb.notebook.namespace import fill_template, lookup

        variables, parser = self._variables(), PARSERS["subagent"]()
        how_long = faults.tried(lambda: self._check(options, "subagent"))
        if options.template if options.template is not None else self.template:
            text = cell
            cell = faults.tried(lambda: fill_template(text, variables), text)
        schema = faults.tried(lambda: lookup(options.schema, variables, "--schema")) if options.schema else None
        asked = {
            "agent": options.agent or self.default_agent or None,
            "task": cell,
            "schema": schema,
            "schema_name": options.schema if schema is not None else None,
            **self._launching(options, parser, faults),
            **work_of(options, self, parser, faults),
        }
        if options.sweep:
            faults.refuse()
            return launch_sweep(None, asked, options, variables, "subagent", how_long)
        scorers = faults.tried(lambda: scorers_of(options, variables, parser), [])
        faults.refuse(lambda: launching.preflight(**asked).reasons)
        if options.dry_run:
            return launching.preflight(**asked)
        run = launching.launch(**asked, queue=self.queue and not options.no_queue)
        return self._begun(run, options, how_long, scorers)

    @no_var_expand
    @line_cell_magic
    def subagent_chain(self, line: str, cell: str | None = None) -> Any:
        faults = Faults()
        options = self._read("subagent_chain", line, faults)
        if options is None:
            return None
        if cell is None:
            raise UsageError("%subagent_chain: there are no steps; write them in YAML in a %%subagent_chain cell.")
        from subagents_nb import launching
        from subagents_nb.notebook.chain_cell import parse

        variables, parser = self._variables(), PARSERS["subagent_chain"]()
        how_long = faults.tried(lambda: self._check(options, "subagent_chain"))
        asked = {
            **self._launching(options, parser, faults),
            "max_children": faults.tried(lambda: number(parser, "--max-children", options.max_children)),
            **terms_of(options, parser, faults),
            **limits_of(options, parser, faults),
        }
        if asked["timeout"] is None and self.timeout:
            asked["timeout"] = self.timeout  # of the chain as a whole, of which no agent says anything
        scorers = faults.tried(lambda: scorers_of(options, variables, parser), [])
        fill = self._filler(options.template)
        agent = self.default_agent or None
        parsed: Any = faults.tried(lambda: parse(cell, variables, agent=agent, fill=fill, lenient=True))
        if parsed is None or parsed.faults or faults:
            if parsed is not None:
                faults.tried(lambda: parsed.refuse(lambda flow: launching.preflight(flow, **asked).reasons))
            faults.refuse()
        if options.dry_run and not options.sweep:
            found = launching.preflight(parsed.chain, **asked)
            return dataclasses.replace(found, reasons=tuple(parsed.located(found.reasons)))
        with parsed.locating():
            if options.sweep:
                return launch_sweep(parsed.chain, asked, options, variables, "subagent_chain", how_long)
            run = launching.launch(parsed.chain, **asked, queue=self.queue and not options.no_queue)
        return self._begun(run, options, how_long, scorers)

    def _launching(self, options: Any, parser: Any, faults: Faults) -> dict[str, Any]:
        """Return what both cells that launch may say, as arguments of `launch`."""
        return {
            "model": options.model,
            "thinking": options.thinking,
            "cwd": options.cwd or self.cwd or None,
            "name": options.name,
            "timeout": options.timeout,
            "tool_timeout": options.tool_timeout,
            **faults.tried(lambda: self._inputs(options, parser), {}),
            "tags": tuple(options.tag),
            "reuse": options.reuse or self.reuse or None,
            "fresh": options.fresh,
            "origin": origin(self.shell),
            **defaults_of(self, parser, faults),
            **faults.tried(lambda: about_run(options, parser), {}),
        }

    @no_var_expand
    @line_cell_magic
    def subagent_resume(self, line: str, cell: str | None = None) -> Any:
        options, text = self._read_text("subagent_resume", line, cell)
        if options is None:
            return None
        how_long = self._check(options, "subagent_resume")
        run = self._typed(self._run(options.run)).resume(
            text,
            step=number(PARSERS["subagent_resume"](), "--step", options.step, least=0),
            name=options.name,
            timeout=options.timeout,
            max_requests=number(PARSERS["subagent_resume"](), "--max-requests", options.max_requests),
            usage_budget=options.usage_budget,
            origin=origin(self.shell),
        )
        return self._begun(run, options, how_long)

    @no_var_expand
    @line_magic
    def subagent_again(self, line: str) -> Any:
        options = self._read("subagent_again", line)
        if options is None:
            return None
        how_long = self._check(options, "subagent_again")
        run = self._typed(self._run(options.run)).launch_again(origin=origin(self.shell))
        return self._begun(run, options, how_long)

    @no_var_expand
    @line_magic
    def subagent_attach(self, line: str) -> Any:
        options = self._read("subagent_attach", line)
        if options is None:
            return None
        from subagents_nb import launching
        from subagents_nb.notebook.namespace import check_bindable, lookup

        variables = self._variables()
        if options.bind is not None:
            check_bindable(options.bind, variables, force=options.force)
        run = self._run(options.run)
        if options.schema:
            run = launching.attach(run.id, schema=lookup(options.schema, variables, "--schema"))
        else:
            run = self._typed(run)
        if options.bind is not None:
            variables[options.bind] = run
        return run

    def _check(self, options: Any, magic: str) -> str | float | None:
        """Check what only matters once the run has begun, and return how long to wait for it."""
        from subagents_nb.notebook.namespace import check_bindable

        if options.bind is not None:
            check_bindable(options.bind, self._variables(), force=options.force)
        return patience(PARSERS[magic](), options.wait or self.wait or None)

    def _inputs(self, options: Any, parser: Any) -> dict[str, Any]:
        """Return the variables that go into the run. Names only: nothing is evaluated."""
        if options.inputs is None:
            return {}
        from subagents_nb.notebook.namespace import lookup

        variables = self._variables()
        names = [name.strip() for name in options.inputs.split(",") if name.strip()]
        faults = Faults()
        limit = faults.tried(lambda: amount(parser, "--max-input-mb", options.max_input_mb))
        values = {}
        for name in names:
            values[name] = faults.tried(functools.partial(lookup, name, variables, "--inputs"))
        faults.refuse()
        return {"inputs": values, "max_input_mb": limit}

    def _begun(self, run: Any, options: Any, how_long: str | float | None, scorers: Sequence[Any] = ()) -> Any:
        """Bind the new run, see to it that its end is told, wait for it if asked to; return it to be shown once."""
        from subagents_nb.notebook.notices import NOTICES
        from subagents_nb.notebook.show import show_run

        self._tell_by(NOTICES)
        if not (run.reused and run.status.ended):
            NOTICES.expect(run)
        if scorers:
            run.judge_with(scorers)
        if options.bind is not None:
            self._variables()[options.bind] = run
        quiet = options.quiet if options.quiet is not None else self.quiet
        if how_long is None:
            return None if quiet else run
        shows_its_end = quiet or show_run(run)
        if run.wait(None if how_long == FOREVER else float(how_long)):
            NOTICES.asked_for(run.id)
            raise_failure(run)
            if not shows_its_end:
                run.display()
        return None

    def _typed(self, run: Any) -> Any:
        """Return the run with the user's type that it was launched with, if one of that name still has that schema."""
        from subagents_nb import launching
        from subagents_nb.errors import RequestError, StoreError
        from subagents_nb.launching.schemas import output_type

        try:
            if run.plan.is_flow:
                return self._typed_chain(run)
            step = run.plan.steps[-1]
            candidate = self._variables().get(step.schema_name or "")
            if candidate is not None and output_type(candidate).schema_ == step.output_schema:
                return launching.attach(run.id, schema=candidate)
        except (RequestError, StoreError):
            return run
        return run

    def _typed_chain(self, run: Any) -> Any:
        """Do the same for the outputs of a chain, by the numbers and the names of its steps."""
        from subagents_nb import launching
        from subagents_nb.launching.schemas import OutputType, output_type

        types: dict[str | int, OutputType] = {}
        for step in run.plan.steps:
            candidate = self._variables().get(step.schema_name or "")
            if candidate is not None and output_type(candidate).schema_ == step.output_schema:
                types[step.index] = output_type(candidate)
                if step.output_name:
                    types[step.output_name] = types[step.index]
        return launching.Run(run.home, run.id, output_types=types)


explain(SubagentMagics)
