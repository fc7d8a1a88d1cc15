"""What every magic does with its cell: read the line, find the run that it names, keep the text apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.magic import Magics, magics_class

from subagents_nb.notebook.options import FOREVER, HelpShown, MagicParser
from subagents_nb.notebook.parsers import PARSERS

ASKED_BY = "a cell"


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
    def _read(magic: str, line: str) -> Any:
        """Read the line of a magic; None if help was asked for."""
        try:
            return PARSERS[magic]().read(line)
        except HelpShown:
            return None

    def _read_text(self, magic: str, line: str, cell: str | None) -> tuple[Any, str]:
        """Read the line of a magic that takes a text, from the cell's body or from behind ` -- `.

        Raises:
            UsageError: the line can't be understood, or there is no text.
        """
        if cell is None:
            line, cell = split_line(line)
        options = self._read(magic, line)
        if options is not None and cell is None:
            name = magic.removeprefix("%")
            PARSERS[magic]().error(f"there is no text; write it in a %%{name} cell, or behind -- on the line")
        return options, cell or ""


def split_line(line: str) -> tuple[str, str | None]:
    """Split a line magic at ` -- `: what stands behind it is the text, verbatim."""
    head, found, text = f" {line} ".partition(" -- ")
    return (head.strip(), text.strip()) if found else (line, None)


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
    if not given.isdecimal() or int(given) < least:
        parser.error(f"{flag}: {given!r} is no number of {least} or more")
    return int(given)


def amount(parser: MagicParser, flag: str, given: str | None) -> float | None:
    """Return a flag's amount, as 200000, 200k, 1.5M or $2.

    Raises:
        UsageError: it is none.
    """
    if given is None:
        return None
    text = given.strip().lstrip("$").replace(",", "").replace("_", "").upper()
    scale = {"K": 1e3, "M": 1e6}.get(text[-1:], 1.0)
    try:
        found = float(text[:-1] if scale > 1 else text) * scale
    except ValueError:
        found = 0.0
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
