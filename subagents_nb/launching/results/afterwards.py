"""What can be asked of a run about its work in worktrees: look at the changes, take them over, throw them away."""

from __future__ import annotations

from subagents_nb.launching.controlling.controls import Controls
from subagents_nb.launching.results import worktree_handoff as handoff


class Afterwards(Controls):
    """What a run changed in git worktrees of its own. It never touches your files until you say so."""

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
