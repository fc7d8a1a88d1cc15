"""The magics: arguments in, one call down. They never print results and never wait unless asked to."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

import traitlets
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand

from subagents_nb.notebook.options import FOREVER, HelpShown, MagicParser, run_parser, subagent_parser

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
        ("auto", "widget", "html", "text"), "auto", help="How runs are shown; auto suits the host."
    ).tag(config=True)

    @no_var_expand
    @line_cell_magic
    def subagent(self, line: str, cell: str | None = None) -> Any:
        """Start a detached run with the cell's body as its task."""
        parser = subagent_parser()
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
        from subagents_nb.notebook.show import set_display_mode

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
        set_display_mode(self.display)
        run = launching.launch(**asked)
        if options.bind is not None:
            variables[options.bind] = run
        quiet = options.quiet if options.quiet is not None else self.quiet
        if patience is not None:
            if not quiet:
                run.display()
            run.wait(None if patience == FOREVER else float(patience))
            _raise_failure(run)
            return None
        return None if quiet else run

    @no_var_expand
    @line_magic
    def subagent_status(self, line: str) -> Any:
        """List runs, newest first, or show one in full. -n NUMBER and --state STATE narrow the list."""
        parser = run_parser(
            "%subagent_status", "List runs, or show one.", optional=True,
            state=("STATE", "only runs in this state, or live"), n=("NUMBER", "at most so many ended runs (20)"),
        )  # fmt: skip
        options = self._read(parser, line)
        if options is None:
            return None
        from subagents_nb import launching

        if options.run is not None:
            return launching.attach(options.run)
        limit = options.n or "20"
        if not limit.isdigit():
            parser.error(f"--n {limit} is no number")
        return launching.runs(state=options.state, limit=int(limit))

    @no_var_expand
    @line_magic
    def subagent_wait(self, line: str) -> Any:
        """Wait for runs to end: the named ones, or all that are live. --timeout TIME gives up; runs go on."""
        parser = run_parser(
            "%subagent_wait", "Wait for runs to end; all live ones if none is named.", many=True,
            timeout=("TIME", "wait at most so long"),
        )  # fmt: skip
        options = self._read(parser, line)
        if options is None:
            return None
        from subagents_nb import launching

        return launching.wait_for(options.run, timeout=options.timeout)

    @no_var_expand
    @line_magic
    def subagent_stop(self, line: str) -> Any:
        """Stop a run. It takes effect within a second; what was written is kept."""
        parser = run_parser("%subagent_stop", "Stop a run.", reason=("TEXT", "why, for the record"))
        options = self._read(parser, line)
        if options is None:
            return None
        from subagents_nb import launching

        run = launching.attach(options.run)
        run.stop(options.reason or "", asked_by=_ASKED_BY)
        run.wait(5.0)
        return run

    @no_var_expand
    @line_magic
    def subagent_attach(self, line: str) -> Any:
        """Get a run's handle back, in any kernel: show it, and bind it with -o NAME."""
        parser = run_parser(
            "%subagent_attach", "Get a run back by id or name.",
            schema=("NAME", "the type of its result, if it is not found by its name"),
        )  # fmt: skip
        parser.add_argument("-o", "--output", dest="bind", metavar="NAME", help="bind the Run to this variable")
        parser.add_argument("--force", action="store_true", help="let -o replace a builtin or a module")
        options = self._read(parser, line)
        if options is None:
            return None
        from subagents_nb import launching
        from subagents_nb.notebook.namespace import check_bindable, lookup

        variables = self._variables()
        if options.bind is not None:
            check_bindable(options.bind, variables, force=options.force)
        if options.schema:
            run = launching.attach(options.run, schema=lookup(options.schema, variables, "--schema"))
        else:
            run = launching.attach(options.run)
            schema = _same_schema(run, variables)
            run = launching.attach(run.id, schema=schema) if schema is not None else run
        if options.bind is not None:
            variables[options.bind] = run
        return run

    @no_var_expand
    @line_magic
    def subagent_agents(self, line: str) -> Any:
        """List the agents that can be used from here, where each comes from, and which files could not be used."""
        options = self._read(MagicParser("%subagent_agents", "List the agents that can be used from here."), line)
        if options is None:
            return None
        from subagents_nb import launching

        return launching.agents()

    @no_var_expand
    @line_magic
    def subagent_doctor(self, line: str) -> Any:
        """Check the store, the supervisor, models and keys; say what to do about what is wrong."""
        options = self._read(MagicParser("%subagent_doctor", "Check that everything is in order."), line)
        if options is None:
            return None
        from subagents_nb.launching.doctor import examine

        return examine()

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
    from subagents_nb.launching.handle import failure

    snapshot = run.status
    if snapshot.ended and snapshot.state not in ("complete", "partial", "paused"):
        raise failure(snapshot)


def _origin(shell: Any) -> Any:
    from subagents_nb.domain.plan import Origin

    return Origin(surface="magic", session=_SESSION, notebook=_notebook(), cell_id=_cell_id(shell))


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


def _cell_id(shell: Any) -> str | None:
    parent: Any = shell.get_parent() if hasattr(shell, "get_parent") else None
    found = parent.get("metadata", {}).get("cellId") if isinstance(parent, dict) else None
    return found if isinstance(found, str) else None


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


# The help of `%%subagent?` is the parser's own, so that it can't differ from what -h shows.
SubagentMagics.subagent.__doc__ = subagent_parser().format_help()
