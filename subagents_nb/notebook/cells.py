"""What every magic does with its cell: read the line, find the run that it names, keep the text apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from IPython.core.error import UsageError
from IPython.core.magic import Magics, magics_class

from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.notebook.options import FOREVER, HelpShown, MagicParser, MagicRefused, split_text
from subagents_nb.notebook.parsers import PARSERS

ASKED_BY = "a cell"
T = TypeVar("T")


@magics_class
class CellMagics(Magics):
    """A group of magics, and what they share."""

    def _run(self, named: str) -> Any:
        """Return the run that a word means: a variable of the user's that holds one, else an id or name."""
        from subagents_nb import launching

        held = self._variables().get(named)
        return held if isinstance(held, launching.Run) else launching.attach(named)

    def _meant(self, word: str) -> Any:
        """Return what a word means: a variable with a run, several, a sweep or a comparison, else an id or name."""
        from subagents_nb import launching
        from subagents_nb.experiments import Comparison, Sweep

        held = self._variables().get(word)
        kinds = (launching.Run, launching.Runs, Sweep, Comparison)
        several = isinstance(held, list | tuple) and held and all(isinstance(one, kinds) for one in held)
        return held if several or isinstance(held, kinds) else launching.attach(word)

    def _all_meant(self, words: Iterable[str]) -> list[Any]:
        """Return what each word means.

        Raises:
            RequestError: some mean nothing, or too much; all of them are told.
        """
        found, faults = [], []
        for word in words:
            try:
                found.append(self._meant(word))
            except RequestError as error:
                faults.append(error)
        if len(faults) > 1:
            raise RequestError("\n".join(map(str, faults)))
        if faults:
            raise faults[0]
        return found

    def _variables(self) -> dict[str, Any]:
        """Return the user's variables themselves: what is put in is bound."""
        shell: Any = self.shell
        return shell.user_ns  # type: ignore[no-any-return]

    def _filler(self, wanted: bool | None) -> Callable[[str], str] | None:
        """Return what fills the templates of a body in, or None if nobody asked for it."""
        if not (wanted if wanted is not None else getattr(self, "template", False)):
            return None
        from subagents_nb.notebook.namespace import fill_template

        variables = self._variables()
        return lambda text: fill_template(text, variables)

    @staticmethod
    def _read(magic: str, line: str, faults: Faults | None = None) -> Any:
        """Read the line of a magic; None if help was asked for. What is wrong with it is noted, where it can be."""
        try:
            return PARSERS[magic]().read(line, None if faults is None else faults.note)
        except HelpShown:
            return None

    def _read_text(self, magic: str, line: str, cell: str | None) -> tuple[Any, str]:
        """Read the line of a magic that takes a text, from the cell's body or from behind ` -- `.

        Raises:
            UsageError: the line can't be understood, or there is no text.
        """
        if cell is None:
            line, cell = split_text(line)
        options = self._read(magic, line)
        if options is not None and cell is None:
            name = magic.removeprefix("%")
            PARSERS[magic]().error(f"there is no text; write it in a %%{name} cell, or behind -- on the line")
        return options, cell or ""


class Faults:
    """What is wrong with a cell, gathered: all of it is told at once, with what planning has against the rest."""

    def __init__(self) -> None:
        self._found: list[Exception] = []

    def __bool__(self) -> bool:
        return bool(self._found)

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
        reasons = [reason for error in self._found for reason in _reasons(error)]
        reasons += [reason for reason in others() if reason not in reasons]
        if len(reasons) == 1:
            raise self._found[0]
        raise LaunchRefused(reasons)


def _reasons(error: Exception) -> Iterable[str]:
    found = getattr(error, "reasons", None)
    if isinstance(found, tuple):
        return found
    return [error.problem if isinstance(error, MagicRefused) else str(error).removesuffix(".")]


def patience(parser: MagicParser, wait: str | None) -> str | float | None:
    """Return how long to wait: seconds, for ever, or not at all.

    Raises:
        UsageError: it is no length of time.
    """
    if wait is None or wait == FOREVER:
        return wait
    from subagents_nb.domain.words import parse_duration

    try:
        return parse_duration(wait)
    except ValueError as error:
        parser.error(f"--wait: {error}")


def number(parser: MagicParser, flag: str, given: str | None, *, least: int = 1) -> int | None:
    """Return a flag's number.

    Raises:
        UsageError: it is none.
    """
    if given is None:
        return None
    from subagents_nb.domain.given import parse_whole

    try:
        found = parse_whole(given)
    except ValueError:
        found = -1
    if found < least:
        parser.error(f"{flag}: {given!r} is no number of {least} or more")
    return found


def amount(parser: MagicParser, flag: str, given: str | None, unit: str = "") -> float | None:
    """Return a flag's amount, as 200000, 200k or 1.5M, of `tokens` or `usd`, as $2; of nothing else, if no unit is.

    Raises:
        UsageError: it is none, or one of another thing.
    """
    if given is None:
        return None
    from subagents_nb.domain.given import parse_amount

    try:
        found, named = parse_amount(given)
    except ValueError as error:
        parser.error(f"{flag}: {error}")
    if named not in ("", unit):
        parser.error(f"{flag}: {given!r} is an amount of {'money' if named == 'usd' else named}, and that takes none")
    if not 0 < found < float("inf"):
        parser.error(f"{flag}: {given!r} is no amount above 0")
    return found


def raise_failure(run: Any) -> None:
    """Let a failed run fail the cell that waited for it, so that Run All stops there."""
    from subagents_nb.launching.outcome import failure

    snapshot = run.status
    if snapshot.ended and snapshot.state not in ("complete", "partial", "paused"):
        raise failure(snapshot)


def origin(shell: Any) -> Any:
    """Return where a launch is asked for."""
    from subagents_nb.launching.whence import origin_here

    return origin_here("magic", shell)


def explain(magics: type) -> None:
    """Make what `%%subagent?` shows the parser's own help, so that it can't differ from what -h shows."""
    for name, parser in PARSERS.items():
        if name in vars(magics):
            vars(magics)[name].__doc__ = parser().format_help()
