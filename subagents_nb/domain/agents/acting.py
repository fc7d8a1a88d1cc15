"""What a project brings that can act with the person's rights, what the person said to it, and what follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pydantic import ConfigDict, Field

from subagents_nb.domain.values.base import Ordered, Value
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.domain.values.words import one_line

LOOK = "%subagent_trust"
CHANGED = f"it is another than the one that was allowed; look at it with {LOOK}, and launch anew"
UNTRUSTED = "untrusted"  # the code of the reason
# Times of files are those of a tick, or of another machine's clock; in doubt a change is the run's.
_DOUBT_S = 0.5


class Acting(Value):
    """One thing of a project that can act: what is used of its files, by hash."""

    kind: str  # agent, MCP server, skill, settings
    name: str
    does: tuple[str, ...] = ()  # in words, for people: bash, 2 scripts
    # Path relative to the project -> SHA-256 of what is used of it; the first one is where it stands.
    files: dict[str, str]
    text: str = ""  # what is hashed of that first one, if it is not all of it

    @property
    def where(self) -> str:
        """Return the file that defines it."""
        return next(iter(self.files), "")

    @property
    def key(self) -> str:
        """Return what an answer remembers it by."""
        return f"{self.kind} {self.name} {self.where}"

    @property
    def called(self) -> str:
        """Return it in words: agent worker."""
        return one_line(f"{self.kind} {self.name}", 80)

    def __str__(self) -> str:
        return self.saying()

    def saying(self, more: str = "") -> str:
        """Return it with what it does, and more to say of it: agent worker (bash; changed)."""
        text = "; ".join(filter(None, (", ".join(one_line(word, 60) for word in self.does), more)))
        return f"{self.called} ({text})" if text else self.called


class Held(Value):
    """One thing that may not act yet."""

    item: Acting
    known: bool = False  # it was allowed as it was before
    run: str = ""  # the run that was at work here when it changed

    def __str__(self) -> str:
        why = "changed" if self.known else ""
        if self.run:
            why = f"{why or 'new'} while run {one_line(self.run, 80)} was at work here"
        return self.item.saying(why)


class _Kept(Ordered):
    """A part of the person's file of answers; what a later version adds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())


class HeldBack(_Kept):
    """What a run changed in one thing of a folder that is trusted."""

    files: dict[str, str]  # of those that changed; "" for one that is gone
    run: str


class Answer(_Kept):
    """What the person said to one project."""

    folder: str = ""  # since when the folder is trusted, whatever it brings; empty: it is not
    contents: dict[str, dict[str, str]] = Field(default_factory=dict)  # by key: the files that are allowed
    # Of a folder that is trusted: all that acts as it was when a run was last launched there, and when that was.
    seen_at: float = 0.0
    seen: dict[str, dict[str, str]] = Field(default_factory=dict)
    held: dict[str, HeldBack] = Field(default_factory=dict)

    @property
    def says_anything(self) -> bool:
        """Whether there is anything to remember."""
        return bool(self.folder or self.contents or self.seen or self.held)


@dataclass(frozen=True, slots=True)
class Work:
    """Runs that could write here since some time: when the last of them ended, and what it is called."""

    run: str
    ended: float  # seconds since the epoch; infinite while it is at work


@dataclass(frozen=True, slots=True)
class Trust:
    """The person's answer to one project, and what it takes to tell their own changes from those of a run."""

    answer: Answer
    by_folder: bool  # this folder from now on; else only contents
    # The runs that could write here since a time. Asked for only if something changed.
    work_since: Callable[[float], Work | None] = lambda _since: None
    # When a file of the project was last changed by the system's clock; 0 if that can't be told.
    changed_at: Callable[[str], float] = lambda _path: 0.0

    def held(self, item: Acting) -> Held | None:
        """Return why a thing may not act, or None: it may.

        In a folder that is trusted a change is the person's own unless a run of ours could have made it: one that
        was at work here since this was last seen, and did not end before the file was last changed.
        """
        answer = self.answer
        if answer.contents.get(item.key) == item.files:
            return None
        if not self.by_folder:
            return Held(item=item, known=item.key in answer.contents)
        if (back := answer.held.get(item.key)) is not None and _holds(back.files, item.files):
            return Held(item=item, known=item.key in answer.seen, run=back.run)
        before = answer.seen.get(item.key)
        if not answer.seen_at or before == item.files:
            return None
        changed = changed_files(before or {}, item.files)
        if not changed or (work := self.work_since(answer.seen_at)) is None:
            return None
        if all(self.changed_at(path) > work.ended + _DOUBT_S for path in changed):
            return None
        return Held(item=item, known=before is not None, run=work.run)

    def seeing(self, items: Iterable[Acting], now: float) -> Answer | None:
        """Return the answer after a launch that saw these, or None if it need not be written anew."""
        if not self.by_folder:
            return None
        seen: dict[str, dict[str, str]] = {}
        back: dict[str, HeldBack] = {}
        for item in items:
            held = self.held(item)
            before = self.answer.seen.get(item.key)
            if held is None:
                seen[item.key] = dict(item.files)
                continue
            known = self.answer.held.get(item.key)
            still = known is not None and _holds(known.files, item.files)
            files = known.files if known is not None and still else changed_files(before or {}, item.files)
            back[item.key] = HeldBack(files=files, run=held.run)
            if before is not None:
                seen[item.key] = before
        if self.answer.seen_at and (seen, back) == (self.answer.seen, self.answer.held):
            return None
        return self.answer.model_copy(update={"seen_at": now, "seen": seen, "held": back})


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the files that differ, with their new hashes; "" for one that is gone."""
    return {path: after.get(path, "") for path in {**before, **after} if before.get(path) != after.get(path)}


def _holds(back: Mapping[str, str], files: Mapping[str, str]) -> bool:
    """Say whether anything of what a run wrote is still there."""
    return any(files.get(path, "") == sha for path, sha in back.items())


def refusal(held: Iterable[Held]) -> Reason | None:
    """Return the one reason against a launch that would let any of these act; None if there is none."""
    listed = list(held)
    if not listed:
        return None
    several = len(listed) > 1
    return Reason(
        f"this project brings {len(listed)} thing{'s' if several else ''} that act{'' if several else 's'} with your "
        f"rights and that you have not allowed, or that changed since: {', '.join(map(str, listed))}. Look at "
        f"{'them' if several else 'it'} with {LOOK}",
        code=UNTRUSTED,
        advice="subagents-nb trust",
    )


def taken_back(names: Iterable[str]) -> str:
    """Return in words why an earlier run's plan is not carried out again."""
    listed = one_line(", ".join(names), 300)
    return f"what this project brings and that run used is not allowed any more: {listed}. Look at it with {LOOK}"


NEVER = math.inf  # when a run ended that is at work
