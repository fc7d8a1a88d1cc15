"""The magics: arguments in, one call down. They never print results and never wait unless asked to."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import traitlets
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand

from subagents_nb.notebook.options import FOREVER, PARSERS, HelpShown, MagicParser

_SESSION = secrets.token_hex(8)
_ASKED_BY = "a cell"


@magics_class
class SubagentMagics(Magics):
    """Delegate work to subagents that outlive the kernel. Each default below is a flag's default."""

    default_agent = traitlets.Unicode("", help="The agent when a cell names none.").tag(config=True)
    default_model = traitlets.Unicode("", help="The model when neither cell nor agent names one.").tag(config=True)
    thinking = traitlets.Unicode("", help="The thinking level when a cell names none.").tag(config=True)
    timeout = traitlets.Unicode("", help="The deadline when a cell names none, such as 30m.").tag(config=True)
    cwd = traitlets.Unicode("", help="Where agents work when a cell does not say.").tag(config=True)
    wait = traitlets.Unicode("", help="`forever` or a time: every launch waits so long.").tag(config=True)
    quiet = traitlets.Bool(False, help="Show nothing at a launch.").tag(config=True)
    template = traitlets.Bool(False, help="Fill {{ name }} in every task.").tag(config=True)
    display = traitlets.Enum(
        ("auto", "widget", "html", "text"),
        "auto",
        help="How runs are shown. auto: a live widget on a page, a card elsewhere.",
    ).tag(config=True)

    @traitlets.observe("display")
    def _set_display(self, change: Any) -> None:
        from subagents_nb.notebook.show import set_display_mode

        set_display_mode(change.new)

    @no_var_expand
    @line_cell_magic
    def subagent(self, line: str, cell: str | None = None) -> Any:
        parser = PARSERS["subagent"]()
        if cell is None:
            line, cell = _split_line(line)
        try:
            options = parser.read(line)
        except HelpShown:
            return None
        if cell is None:
            raise UsageError("%subagent: there is no task; write it in a %%subagent cell, or behind -- on the line.")
        return self._launch(parser, options, cell)

    def _launch(self, parser: MagicParser, options: Any, task: str) -> Any:
        from subagents_nb import launching
        from subagents_nb.notebook.namespace import check_bindable, fill_template, lookup
        from subagents_nb.notebook.show import show_run

        variables = self._variables()
        if options.bind is not None:
            check_bindable(options.bind, variables, force=options.force)
        if options.template if options.template is not None else self.template:
            task = fill_template(task, variables)
        patience = _patience(parser, options.wait or self.wait or None)
        asked = {
            "agent": options.agent or self.default_agent or None,
            "task": task,
            "model": options.model or self.default_model or None,
            "thinking": options.thinking or self.thinking or None,
            "schema": lookup(options.schema, variables, "--schema") if options.schema else None,
            "schema_name": options.schema,
            "cwd": options.cwd or self.cwd or None,
            "name": options.name,
            "timeout": options.timeout or self.timeout or None,
            "tags": tuple(options.tag),
            "origin": _origin(self.shell),
        }
        if options.dry_run:
            return launching.preflight(**asked)
        run = launching.launch(**asked)
        if options.bind is not None:
            variables[options.bind] = run
        quiet = options.quiet if options.quiet is not None else self.quiet
        if patience is None:
            return None if quiet else run
        shows_its_end = quiet or show_run(run)
        ended = run.wait(None if patience == FOREVER else float(patience))
        _raise_failure(run)
        if ended and not shows_its_end:
            run.display()
        return None

    @no_var_expand
    @line_magic
    def subagent_status(self, line: str) -> Any:
        parser = PARSERS["subagent_status"]()
        options = self._read(parser, line)
        if options is None:
            return None
        from subagents_nb import launching

        if options.run is not None:
            return self._run(options.run)
        limit = options.number or "20"
        if not limit.isdigit():
            parser.error(f"{limit!r} is no number of runs")
        return launching.runs(state=options.state, limit=int(limit))

    @no_var_expand
    @line_magic
    def subagent_wait(self, line: str) -> Any:
        options = self._read(PARSERS["subagent_wait"](), line)
        if options is None:
            return None
        from subagents_nb import launching

        return launching.wait_for([self._run(named).id for named in options.run], timeout=options.timeout)

    @no_var_expand
    @line_magic
    def subagent_stop(self, line: str) -> Any:
        options = self._read(PARSERS["subagent_stop"](), line)
        if options is None:
            return None
        run = self._run(options.run)
        run.stop(options.reason or "", asked_by=_ASKED_BY)
        run.wait(5.0)
        return run

    @no_var_expand
    @line_magic
    def subagent_attach(self, line: str) -> Any:
        options = self._read(PARSERS["subagent_attach"](), line)
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
        elif (schema := _same_schema(run, variables)) is not None:
            run = launching.attach(run.id, schema=schema)
        if options.bind is not None:
            variables[options.bind] = run
        return run

    @no_var_expand
    @line_magic
    def subagent_agents(self, line: str) -> Any:
        if self._read(PARSERS["subagent_agents"](), line) is None:
            return None
        from subagents_nb import launching

        return launching.agents()

    @no_var_expand
    @line_magic
    def subagent_doctor(self, line: str) -> Any:
        if self._read(PARSERS["subagent_doctor"](), line) is None:
            return None
        from subagents_nb.launching.doctor import examine

        return examine()

    def _run(self, named: str) -> Any:
        """Return the run that a word means: a variable of the user's that holds one, else an id or name."""
        from subagents_nb import launching

        held = self._variables().get(named)
        return held if isinstance(held, launching.Run) else launching.attach(named)

    def _variables(self) -> dict[str, Any]:
        """Return the user's variables themselves: what is put in is bound."""
        shell: Any = self.shell
        return shell.user_ns  # type: ignore[no-any-return]

    @staticmethod
    def _read(parser: MagicParser, line: str) -> Any:
        try:
            return parser.read(line)
        except HelpShown:
            return None


def _split_line(line: str) -> tuple[str, str | None]:
    """Split a line magic at ` -- `: what stands behind it is the task, verbatim."""
    head, found, task = f" {line} ".partition(" -- ")
    return (head.strip(), task.strip()) if found else (line, None)


def _patience(parser: MagicParser, wait: str | None) -> str | float | None:
    if wait is None or wait == FOREVER:
        return wait
    from subagents_nb.domain.words import parse_duration

    try:
        return parse_duration(wait)
    except ValueError as error:
        parser.error(f"--wait: {error}")


def _raise_failure(run: Any) -> None:
    """Let a failed run fail the cell that waited for it, so that Run All stops there."""
    from subagents_nb.launching.outcome import failure

    snapshot = run.status
    if snapshot.ended and snapshot.state not in ("complete", "partial", "paused"):
        raise failure(snapshot)


def _origin(shell: Any) -> Any:
    from subagents_nb.domain.plan import Origin
    from subagents_nb.notebook.show import cell_id

    return Origin(surface="magic", session=_SESSION, notebook=_notebook(), cell_id=cell_id(shell))


def _notebook() -> str | None:
    """Return the notebook's path relative to the current directory, or its bare name; never an absolute path."""
    named = os.environ.get("JPY_SESSION_NAME")
    if not named or not named.endswith(".ipynb"):
        return None
    path = Path(named)
    try:
        return str(path.resolve().relative_to(Path.cwd())) if path.is_absolute() else str(path)
    except ValueError:
        return path.name


def _same_schema(run: Any, variables: dict[str, Any]) -> Any:
    """Return the user's type that the run was launched with, if one of the same name still has the same schema."""
    from subagents_nb.errors import RequestError, StoreError
    from subagents_nb.launching.schemas import output_type

    try:
        step = run.plan.steps[-1]
        candidate = variables.get(step.schema_name or "")
        if candidate is not None and output_type(candidate).schema_ == step.output_schema:
            return candidate
    except (RequestError, StoreError):
        return None
    return None


# What `%%subagent?` shows is the parser's own help, so that it can't differ from what -h shows.
for _name, _make in PARSERS.items():
    getattr(SubagentMagics, _name).__doc__ = _make().format_help()
