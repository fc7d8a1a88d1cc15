"""What a run shows of itself, and what it made that a person may take over: artifacts, work in git worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from subagents_nb.above import above
from subagents_nb.launching.controlling.controls import Controls
from subagents_nb.launching.results import worktree_handoff as handoff
from subagents_nb.launching.results.artifacts import RunArtifacts

if TYPE_CHECKING:
    from subagents_nb.launching.handle import Run


class Showing(Controls):
    """What a run's handle shows, how, the notebook has registered from above; and what it changed in its worktrees."""

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

    def widget(self) -> Any:
        """Return a widget of ipywidgets that shows the run, for `HBox`, `Tab` and dashboards: each time a new one.

        It can be observed by trait, `.observe(f, "state")`: `state`, `tokens`, `questions` and all else that its page
        reads, all set by the kernel alone. `f` is called on a thread of ours. `.close()` ends it; the run goes on.
        """
        return above("run_widget")(self)

    def _ipython_display_(self) -> None:
        above("show_run")(self)

    def _repr_html_(self) -> str:
        return str(above("run_html")(self))

    def _display_(self) -> Any:
        return above("marimo_display")(self, live=not self._current().ended)

    def diff(self, step: int | None = None) -> str:
        """Return what the run's steps, or one of them, changed in their worktrees, as a patch; empty for nothing.

        Of a run that was cut short it is captured now.

        Raises:
            RequestError: it has no worktree, or is still at work.
        """
        return handoff.diff(self._home, self.id, step)

    def apply(self, step: int | None = None, *, check: bool = False) -> list[str]:
        """Put these changes into the repository the run was launched from; return the paths.

        All of it or nothing: where it does not fit, nothing is changed. With `check` nothing is changed at all.

        Raises:
            RequestError: it does not fit, or there is nothing to apply.
        """
        return list(handoff.apply(self._home, self.id, step, check=check))

    def discard(self, step: int | None = None) -> list[str]:
        """Remove the worktrees and branches that were kept because their work was not safe elsewhere; return them.

        Raises:
            RequestError: there are none.
        """
        return list(handoff.discard(self._home, self.id, step))
