"""What a run shows of itself, and what it made that a person may take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from subagents_nb.above import above
from subagents_nb.launching.results.afterwards import Afterwards
from subagents_nb.launching.results.artifacts import RunArtifacts

if TYPE_CHECKING:
    from subagents_nb.launching.handle import Run


class Showing(Afterwards):
    """What a run's handle shows. How, the notebook has registered from above."""

    @property
    def artifacts(self) -> RunArtifacts:
        """Return the figures, tables and files that the run made; those so far, while it works."""
        return RunArtifacts(cast("Run", self))

    def inject(self, *names: str, as_: str | None = None, force: bool = False) -> list[str]:
        """Bind artifacts to variables of the notebook and return the names of the variables.

        A table becomes a DataFrame, text a str, anything else bytes; a figure becomes the artifact, which shows itself.
        Without names, all tables. `as_` names the variable of the one artifact that is named. `force` lets a variable
        that is there already be replaced.

        Raises:
            RequestError: there is no such artifact, or no such name should be bound; then nothing is.
            StoreError: an artifact is gone or was changed.
        """
        return list(above("inject")(self, names, as_=as_, force=force))

    def display(self, *, figures: bool = False) -> None:
        """Show the run in the notebook: live while it runs, as a card when it has ended; its figures too if asked."""
        self._ipython_display_()
        if figures:
            above("show_figures")(self)

    def _ipython_display_(self) -> None:
        above("show_run")(self)
