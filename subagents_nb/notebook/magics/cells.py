"""What every magic does with its cell: read the line, keep the text apart, call the verb, say what is wrong."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from IPython.core.error import UsageError

from subagents_nb.errors import LaunchRefused, RequestError, unchanged
from subagents_nb.notebook.magics.line_parser import HelpShown, MagicParser, split_text
from subagents_nb.notebook.magics.parsers import magic_parser
from subagents_nb.notebook.verbs.call import Call
from subagents_nb.notebook.verbs.verb import FOREVER, Verb

if TYPE_CHECKING:
    from subagents_nb.launching import Run
    from subagents_nb.notebook.bodies.chain_cell import Parsed
    from subagents_nb.notebook.magics.magics import SubagentMagics

T = TypeVar("T")


@unchanged()
def carry_out(verb: Verb, magics: SubagentMagics, line: str, cell: str | None) -> Any:
    """Carry out a verb as a magic, and return what the cell shows.

    Raises:
        UsageError: the line can't be understood, or there is no text.
        SubagentsError: as the verb does.
    """
    if cell is None and verb.text:
        line, cell = split_text(line)
    parser, faults = magic_parser(verb), Faults()
    try:
        form = verb.other_form(has_body=cell is not None)
        options = parser.read(line, faults.note if verb.launches else None, beside_help=form)
    except HelpShown:
        return None
    if cell is None and verb.without_body:
        parser.error(verb.without_body)
    if form and (cell or "").strip():
        parser.error(form)  # it would be dropped without a word
    call = CellCall(options, cell or "", magics, parser, faults)
    if wrong := parser.read_values(options):
        if verb.runs == "one":
            faults.tried(lambda: call.run)  # that there is no such run may be the reason: it is told as well
        parser.error("; ".join([*wrong, *faults.reasons]))
    call.how_long = faults.tried(call.check) if verb.launches else call.check()
    done = verb.call(call)
    return done if verb.in_cell is None else verb.in_cell(call, done)


class CellCall(Call):
    """A use of a verb in a cell."""

    asked_by = "a cell"
    effect_s = 5.0

    def __init__(
        self, options: argparse.Namespace, text: str, magics: SubagentMagics, parser: MagicParser, faults: Faults
    ) -> None:
        # The user's variables themselves: what is put in is bound.
        super().__init__(options, text, magics.shell.user_ns if magics.shell is not None else {})
        self.magics = magics
        self.parser = parser
        self.faults = faults  # of a launch, which tells all of them at once
        self.how_long: str | float | None = None  # what is waited for the end of a new run

    def check(self) -> str | float | None:
        """Check what only matters once a run has begun, and return how long to wait for it."""
        from subagents_nb.notebook.bodies.namespace import check_bindable

        if getattr(self.options, "bind", None) is not None:
            check_bindable(self.options.bind, self.variables, force=self.options.force)
        return (
            wait_limit(self.parser, self.options.wait or self.magics.wait or None) if "wait" in self.options else None
        )

    @property
    def origin(self) -> Any:
        """Where a launch is asked for."""
        return origin(self.magics.shell)

    @property
    def typed_run(self) -> Run:
        """The run with the user's types that it was launched with, where those of that name still have that schema."""
        from subagents_nb.notebook.bodies.namespace import typed

        return typed(self.run, self.variables)

    def refuse(self, why: str) -> NoReturn:
        """Refuse what the flags say together."""
        self.parser.error(why)

    def read_chain(self, *, lenient: bool = False) -> Parsed:
        """Read the body as a chain; what an item leaves open is as at a launch."""
        from subagents_nb.notebook.bodies.chain_cell import parse

        agent = self.magics.default_agent or None
        return parse(self.text, self.variables, agent=agent, fill=self.filler(), lenient=lenient)

    def filler(self) -> Callable[[str], str] | None:
        """Return what fills the templates of a body in, or None if nobody asked for it."""
        wanted = self.options.template
        if not (wanted if wanted is not None else self.magics.template):
            return None
        from subagents_nb.notebook.bodies.namespace import fill_template

        return lambda text: fill_template(text, self.variables)

    def launch_chain(self) -> Any:
        """Launch the chain of the body."""
        return self.magics.launch_chain(self)

    def begun(self, run: Run) -> Any:
        """Bind the new run, wait for it if asked to; return it to be shown once."""
        return self.magics.begun(self, run)

    def file_path(self, name: str) -> str | None:
        """Return where a file of this name is written: beside the notebook."""
        return name

    def saw_end(self, run_id: str) -> None:
        """Note that the end of a run is seen here, so that it need not be told."""
        from subagents_nb.notebook.views.notices import NOTICES

        NOTICES.known_to_person(run_id)

    def expect_end(self, run: Run) -> None:
        """Note that the end of a run is to be told here."""
        from subagents_nb.notebook.views.notices import NOTICES

        NOTICES.expect(run)


class Faults:
    """What is wrong with a cell, gathered: all of it is told at once, with what planning has against the rest."""

    def __init__(self) -> None:
        self._found: list[Exception] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def reasons(self) -> list[str]:
        """What was found, in words."""
        return [reason for error in self._found for reason in _reasons(error)]

    def note(self, error: Exception) -> None:
        """Keep what was found elsewhere."""
        self._found.append(error)

    def tried(self, make: Callable[[], T], instead: Any = None) -> Any:
        """Return what was made; something else once its fault was noted."""
        try:
            return make()
        except (UsageError, RequestError) as error:
            self._found.append(error)
            return instead

    def refuse(self, others: Callable[[], Iterable[str]] = tuple) -> None:
        """Refuse if anything was found, and then say too what `others` finds.

        Raises:
            UsageError: the one fault there is.
            LaunchRefused: all of them.
        """
        if not self._found:
            return
        reasons = self.reasons
        reasons += [reason for reason in others() if reason not in reasons]
        if len(reasons) == 1:
            raise self._found[0]
        raise LaunchRefused(reasons)


def _reasons(error: Exception) -> Iterable[str]:
    reasons = getattr(error, "reasons", None)
    if isinstance(reasons, tuple):
        return reasons
    return [getattr(error, "problem", None) or str(error).removesuffix(".")]


def wait_limit(parser: MagicParser, wait: str | None) -> str | float | None:
    """Return how long to wait: seconds, for ever, or not at all.

    Raises:
        UsageError: it is no length of time.
    """
    if wait is None or wait == FOREVER:
        return wait
    from subagents_nb.domain.values.words import parse_duration

    try:
        return parse_duration(wait)
    except ValueError as error:
        parser.error(f"--wait: {error}")


def raise_failure(run: Any) -> None:
    """Let a failed run fail the cell that waited for it, so that Run All stops there."""
    from subagents_nb.launching.results.outcome import failure

    snapshot = run.status
    if snapshot.ended and snapshot.state not in ("complete", "partial", "paused"):
        raise failure(snapshot)


def origin(shell: Any) -> Any:
    """Return where a launch is asked for."""
    from subagents_nb.launching.gathering.lineage import origin_here

    return origin_here("magic", shell)
