"""One use of a verb: what was said with it, where, and which runs are meant. A cell's is `cells.CellCall`."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from subagents_nb.domain.plans.options import Option, of_launch
from subagents_nb.errors import RequestError

if TYPE_CHECKING:
    from subagents_nb.domain.plans.plan import Origin
    from subagents_nb.launching import Run
    from subagents_nb.notebook.bodies.chain_cell import Parsed


class Call:
    """A use in a terminal; that of a cell differs in what it overrides."""

    asked_by = "a terminal"
    effect_s = 10.0  # how long is waited until what was asked for has happened

    def __init__(self, options: argparse.Namespace, text: str = "", variables: dict[str, Any] | None = None) -> None:
        self.options: Any = options
        self.text = text
        self.variables: dict[str, Any] = {} if variables is None else variables

    @functools.cached_property
    def run(self) -> Run:
        """The run that is named."""
        return self.find(self.options.run)

    @property
    def typed_run(self) -> Run:
        """The same, its output of the user's type."""
        return self.run

    def find(self, word: str) -> Run:
        """Return the run that a word means: a variable of the user's that holds one, else an id or name."""
        from subagents_nb import launching

        held = self.variables.get(word)
        return held if isinstance(held, launching.Run) else launching.attach(word)

    def _meant(self, word: str) -> Any:
        """Return what a word means: a variable with a run, several, a sweep or a comparison, else an id or name."""
        from subagents_nb import launching
        from subagents_nb.experiments import Comparison, Sweep

        held = self.variables.get(word)
        kinds = (launching.Run, launching.Runs, Sweep, Comparison)
        several = isinstance(held, list | tuple) and held and all(isinstance(one, kinds) for one in held)
        return held if several or isinstance(held, kinds) else launching.attach(word)

    def meant(self) -> list[Any]:
        """Return what each word on the line means.

        Raises:
            RequestError: some mean nothing, or too much; all of them are told.
        """
        words: Iterable[str] = self.options.run
        runs, faults = [], []
        for word in words:
            try:
                runs.append(self._meant(word))
            except RequestError as error:
                faults.append(error)
        if len(faults) > 1:
            raise RequestError("\n".join(map(str, faults)))
        if faults:
            raise faults[0]
        return runs

    @property
    def origin(self) -> Origin:
        """Where a launch is asked for."""
        from subagents_nb.domain.plans.plan import Origin
        from subagents_nb.launching.gathering.lineage import asks_for

        return Origin(surface="cli", ask_timeout_s=asks_for({}))

    def refuse(self, why: str) -> NoReturn:
        """Refuse what the flags say together."""
        raise RequestError(f"{why[:1].upper()}{why[1:]}.")

    def arguments_for(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return what the flags say of the arguments of a function that have their names."""
        import inspect

        names = inspect.signature(function).parameters
        return {name: getattr(self.options, name) for name in names if name in self.options}

    def read_chain(self, *, lenient: bool = False) -> Parsed:
        """Read the body as a chain."""
        from subagents_nb.notebook.bodies.chain_cell import parse

        return parse(self.text, {}, lines_above=0, lenient=lenient)

    def launch_chain(self) -> Run:
        """Launch the chain of the body."""
        from subagents_nb import launching

        options = self.options
        how = {one.name: _flag_value(one, getattr(options, one.name)) for one in of_launch(chain=True)}
        how["origin"] = self.origin
        parsed = self.read_chain(lenient=True)
        if parsed.faults:
            parsed.refuse(lambda flow: launching.preflight(flow, **how).reasons)
        with parsed.locating():
            return launching.launch(parsed.chain, **how)

    def file_path(self, _name: str) -> str | None:
        """Return where a file of this name is written; None: where the run lies."""
        return None

    def begun(self, run: Run) -> Any:
        """Do with a new run what the flags say, and return what is shown of it."""
        return run

    def settle(self, run: Run) -> None:
        """Wait a moment until what was asked for has happened."""
        if run.wait(self.effect_s):
            self.saw_end(run.id)

    def saw_end(self, run_id: str) -> None:
        """Note that the end of a run is seen here, so that it need not be told."""

    def expect_end(self, run: Run) -> None:
        """Note that the end of a run is to be told here."""


def _flag_value(option: Option, given: Any) -> Any:
    """Return what a flag says, as the argument of `launch`.

    Raises:
        RequestError: it can't be read.
    """
    from subagents_nb.catalog.strict_yaml import as_value

    try:
        return option.read(given, value=as_value)
    except ValueError as error:
        raise RequestError(f"{option.flag}: {error}") from error
