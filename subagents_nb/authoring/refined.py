"""What the person adds to an agent's instructions, beside its file: shown, proposed, applied and taken back."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from subagents_nb.authoring.new_files import AgentChange
from subagents_nb.authoring.proposing import Proposal, launch_proposal, proposal_of
from subagents_nb.authoring.scope import refinements_of
from subagents_nb.catalog import discover, project_root, registered_agents, resolve
from subagents_nb.catalog.guidance.refinement_files import refinement_text
from subagents_nb.catalog.search_paths import SearchPath
from subagents_nb.catalog.trust import home_folder
from subagents_nb.catalog.trusting.answers import trust_of
from subagents_nb.domain.agents.acting import LOOK
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.refinements import (
    FOLDER,
    MOST_REVISIONS,
    Revision,
    restored,
    text_problem,
    with_edits,
)
from subagents_nb.domain.values.base import SCHEMA_VERSION, Value
from subagents_nb.domain.values.words import one_line, visible
from subagents_nb.errors import RequestError, StoreError
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.launching.gathering.trust_lookup import refinements_here
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR
from subagents_nb.store.files.lock import exclusive
from subagents_nb.store.files.opener import read_plain

if TYPE_CHECKING:
    from subagents_nb.domain.plans.plan import Origin
    from subagents_nb.launching import Run

_MOST_HISTORY_BYTES = 1024 * 1024
_SHOWN_REVISIONS = 5
_PATIENCE_S = 5.0


class _History(Value):
    """The texts that a refinement had, the latest last: `NAME.json` beside it."""

    schema_version: int = Field(default=SCHEMA_VERSION, le=SCHEMA_VERSION)
    kind: str = "refinement"
    revisions: tuple[Revision, ...] = ()


def refinement(name: str, *, scope: str = "user", cwd: str | os.PathLike[str] | None = None) -> AgentRefinement:
    """Return what was added to the instructions of an agent; it shows itself.

    Args:
        name: the agent.
        scope: `user`, for all projects of yours, or `project`.
        cwd: where the project is looked for; the current directory if None.

    Raises:
        RequestError: there is no such agent or scope.
    """
    here = Path(cwd).expanduser().absolute() if cwd is not None else Path.cwd()
    agent = resolve(name, discover(here, registered=registered_agents()))
    return AgentRefinement(agent, refinements_of(scope, here), here)


@dataclass(frozen=True, slots=True, repr=False)
class AgentRefinement:
    """The refinement of one agent in one scope. Its files are read anew each time."""

    agent: AgentDefinition
    _place: SearchPath
    _here: Path

    @property
    def where(self) -> str:
        """The file that an agent is told, as it is shown; it may be edited."""
        return f"{self._place.where}/{self.agent.name}.md"

    @property
    def text(self) -> str:
        """What stands in it; empty where there is none.

        Raises:
            RequestError: it can't be read.
        """
        try:
            return refinement_text(self._file(".md"), within=self._place.root)
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            raise RequestError(f"{self.where} can't be read: {getattr(error, 'strerror', None) or error}.") from error

    @property
    def revisions(self) -> tuple[Revision, ...]:
        """The texts that it had, the latest last.

        Raises:
            RequestError: they can't be read.
        """
        shown = f"{self._place.where}/{self.agent.name}.json"
        try:
            data = read_plain(self._file(".json"), _MOST_HISTORY_BYTES, within=self._place.root)
            return _History.model_validate_json(data).revisions
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise RequestError(f"{shown} can't be read: {error.strerror or error}.") from error
        except ValueError as error:
            raise RequestError(f"{shown} is not as this version writes it; mend it or take it away.") from error

    def propose(self, *runs: Run | str, model: str | None = None, origin: Origin | None = None) -> Run:
        """Have a reviewer look at up to 8 results of the agent and propose up to three additions. Nothing is changed.

        Args:
            runs: runs of the agent that have ended.
            model: the model of the reviewer.
            origin: where it was asked for; filled in by magics.

        Raises:
            RequestError: these are no such runs.
            LaunchRefused: the reviewer can't be launched.
        """
        return launch_proposal(self.agent, self.text, runs, cwd=self._here, model=model, origin=origin)

    def apply(self, run: Run | str) -> AgentChange:
        """Add what a proposal's run came to.

        Raises:
            RequestError: it is no such run, or what it proposes can't be added; nothing was changed.
        """
        proposal = proposal_of(run, self.agent.name)
        with self._alone():
            before = self.text
            text = with_edits(before, ((one.title, one.guidance) for one in proposal.edits))
            if text == before:
                done = "already there" if proposal.edits else "nothing was proposed"
                return AgentChange(self.agent.name, done, self._file(".md"), self.where)
            return self._write(text, before, proposal)

    def rollback(self, to: int | None = None) -> AgentChange:
        """Go back to the text before the last change, or to that of a revision; 0: to none. The history is kept.

        Raises:
            RequestError: there is no such revision; nothing was changed.
        """
        with self._alone():
            before, revisions = self.text, self.revisions
            if before != (revisions[-1].text if revisions else ""):  # what was written by hand goes, and is kept
                if (problem := text_problem(before)) is not None:
                    raise RequestError(
                        f"{self.where} was written by hand, and could not be had back: {problem}. "
                        "Mend it, or take it away yourself."
                    )
                to = to if to is not None else revisions[-1].number if revisions else 0
            try:
                back = restored(revisions, to)
            except ValueError as error:
                raise RequestError(f"{self.where}: {error}.") from None
            return self._write(back.text if back else "", before, None, restores=back.number if back else 0)

    def _write(self, text: str, before: str, proposal: Proposal | None, *, restores: int | None = None) -> AgentChange:
        if (problem := text_problem(text)) is not None:
            raise RequestError(f"{self.where}: with that {problem}.")
        revisions = list(self.revisions)
        number = revisions[-1].number if revisions else 0
        now, base = utc_now(), self.agent.digest()
        if before != (revisions[-1].text if revisions else ""):
            number += 1
            revisions.append(Revision(number=number, at=now, did="written by hand", text=before))
        did, run = ("rolled back", "") if proposal is None else ("applied", proposal.run)
        made = {"number": number + 1, "at": now, "did": did, "text": text, "run": run, "base": base}
        revisions.append(Revision.model_validate({**made, "restores": restores}))
        history = _History(revisions=tuple(revisions[-MOST_REVISIONS:]))
        path = self._file(".md")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            DISK.replace(self._file(".json"), _json(history), durable=True)
            if text:
                DISK.replace(path, text.encode(), durable=True)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise RequestError(f"{self.where} can't be written: {error.strerror or error}.") from error
        done = f"{did}, revision {number + 1}"
        return AgentChange(self.agent.name, done, path, self.where, self._remark())

    def _remark(self) -> str:
        root = project_root(self._here)
        found = refinements_here(root, self._here, trust_of(root))
        held = any(one.where == self.where and one.held is not None for one in found)
        return f"it waits for your yes: {LOOK}" if held else ""

    def _file(self, ending: str) -> Path:
        return Path(os.path.realpath(self._place.path)) / f"{self.agent.name}{ending}"

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        refuse_runs("an agent's refinement is the person's to change")
        folder = home_folder() / FOLDER
        try:
            folder.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(f"~/{FOLDER} can't be made: {error.strerror or error}.") from error
        busy = StoreError(f"Another process has been writing refinements for {_PATIENCE_S:g} s; try again.")
        with exclusive(folder / ".lock", what=f"~/{FOLDER}", busy=busy, patience_s=_PATIENCE_S):
            yield

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        text, revisions = self.text, self.revisions
        if not text.strip():
            yield f"{self.agent.name}: no refinement ({self.where})"
        else:
            problem = text_problem(text)
            unfit = f"; it can't be used: {problem}" if problem else ""
            yield f"{self.agent.name}: {len(text.encode()):,} bytes ({self.where}){unfit}"
            yield from (f"  {line}" for line in visible(text.rstrip("\n")).splitlines())
        told = revisions[-_SHOWN_REVISIONS:]
        for one in told:
            source = f" from {one.run}" if one.run else f" to {one.restores}" if one.restores is not None else ""
            line = f"revision {one.number}, {one.at[:16].replace('T', ' ')}: {one.did}{source}"
            yield one_line(visible(line))  # a project brings its own
        if revisions and text != revisions[-1].text:
            yield "The text was written by hand since."
        base = next((one.base for one in reversed(revisions) if one.base), "")
        if base and base != self.agent.digest():
            yield f"The file of {self.agent.name} was changed since; see whether it still fits."


def _json(history: _History) -> bytes:
    return history.model_dump_json(indent=1).encode()
