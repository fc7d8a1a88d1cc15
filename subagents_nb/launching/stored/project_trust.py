"""What a project brings that can act, shown; and the person's yes to it, given and taken back."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from subagents_nb.catalog.search_paths import shown_folder
from subagents_nb.catalog.trust import home_folder, trusted_by
from subagents_nb.catalog.trusting.brought import text_of, texts_of
from subagents_nb.domain.agents.acting import Acting, Answer, Held
from subagents_nb.domain.values.base import sha256_text, stable_json
from subagents_nb.domain.values.faults import shown as quoted
from subagents_nb.domain.values.faults import similar
from subagents_nb.domain.values.words import visible
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling.within_run import refuse_runs
from subagents_nb.launching.front import agents, settings
from subagents_nb.launching.gathering.trust_lookup import Brought, brought_here
from subagents_nb.store.clock import utc_now
from subagents_nb.store.trust_file import change_answer, kept_text, read_answers

_SETTINGS = "~/.subagents/settings.toml"


@dataclass(frozen=True, slots=True)
class ProjectTrust:
    """What the project here brings that can act, and what of it waits for the person's yes; shows itself."""

    project: str  # its folder, as it is shown
    items: tuple[Acting, ...]
    held: tuple[Held, ...]
    allowed_by: str = ""  # what lets all of this folder act, in words; empty: nothing does
    differences: str = ""  # of what is held, from what was allowed or from nothing: a patch as git writes it
    digest: str = ""  # of all that was shown
    done: str = ""  # what was just changed, in words

    @property
    def ok(self) -> bool:
        """Whether all of it may act."""
        return not self.held


def trust(
    names: Sequence[str] = (),
    *,
    folder: bool = False,
    contents: bool = False,
    revoke: bool = False,
    shown: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> ProjectTrust:
    """Return what the project around `cwd` brings that can act with your rights, and allow it or take that back.

    What was allowed by contents is asked for again when a byte of it changes. In a folder that is trusted what you
    change is yours, and asked for again is what a run changed.

    Args:
        names: which of it is meant; all if none is named.
        folder: allow the folder, whatever it brings from now on.
        contents: allow these contents, and no others.
        revoke: take back what was allowed.
        shown: the digest under which it was shown; if it is another by now, nothing is allowed.
        cwd: where; the current directory if None.

    Raises:
        RequestError: it can't be done; nothing was changed.
        StoreError: the file of your answers can't be used.
    """
    place = Path(cwd).expanduser().absolute() if cwd is not None else Path.cwd()
    home = home_folder()
    read_answers(home)
    if folder + contents + revoke > 1:
        raise RequestError("Choose one: the folder, these contents, or taking back.")
    if folder or contents or revoke:
        refuse_runs("what a project brings is the person's to allow")
    if folder and names:
        raise RequestError("The folder is allowed whole. Name things with contents: `--contents NAME`.")
    project = _brought_by(place)
    if shown is not None and shown != _digest(project.items):
        raise RequestError(f"What this project brings is no longer what was shown ({shown}). Look at it again.")
    if revoke:
        done = _revoke(project, names, home)
    elif folder or contents:
        done = _allow(project, names, home, folder=folder)
    else:
        return _shown(project, home, items=_named(project, names) if names else project.items)
    return _shown(_brought_by(place), home, done=done)


def _brought_by(place: Path) -> Brought:
    return brought_here(place, agents(place), settings(place), whole=True)


def _allow(project: Brought, names: Sequence[str], home: Path, *, folder: bool) -> str:
    root, now = project.root, time.time()
    items = project.items if folder else _named(project, names, each_one=True)
    if folder and home.is_relative_to(root):
        raise RequestError(
            f"{shown_folder(root)} holds your home folder: that would allow whatever any project brings."
        )
    if not items and not folder:
        raise RequestError("This project brings nothing that can act.")
    by_folder = folder or project.trust.by_folder

    def change(answer: Answer) -> Answer:
        files = {item.key: dict(item.files) for item in items}
        if not by_folder:
            return answer.model_copy(update={"contents": {**answer.contents, **files}})
        withheld = {} if folder else {key: back for key, back in answer.held.items() if key not in files}
        update = {"held": withheld, "seen": {**({} if folder else answer.seen), **files}}
        if folder or not answer.seen_at:
            update |= {"seen_at": now}
        if folder:
            update |= {"folder": answer.folder or utc_now()}
        return answer.model_copy(update=update)

    change_answer(home, str(root), change, partial(texts_of, root, items))
    if folder:
        return "this folder is trusted from now on, with all below it"
    return f"allowed as they are: {_listed(items)}"


def _revoke(project: Brought, names: Sequence[str], home: Path) -> str:
    answer, by = project.trust.answer, trusted_by(project.root)
    if by is not None and (by[1] or by[0] != project.root):
        where = f"{_SETTINGS} (trusted_folders)" if by[1] else f"your answer to {shown_folder(by[0])}"
        raise RequestError(f"{shown_folder(by[0])} is trusted by {where}; take it back there.")
    if by is not None and names:
        raise RequestError("The folder is trusted whole; take that back without naming anything.")
    if not answer.says_anything:
        raise RequestError("Nothing of this project was allowed.")
    keys = set(answer.contents)
    if names:
        keys = {key for key in keys if any(f" {name} " in f" {key} " for name in names)}
        if not keys:
            raise RequestError(f"None of what was allowed is called {', '.join(map(quoted, names))}.")

    def change(answer: Answer) -> Answer:
        contents = {key: files for key, files in answer.contents.items() if key not in keys}
        return answer.model_copy(update={"contents": contents}) if names else Answer()

    change_answer(home, str(project.root), change)
    return "nothing of this project is allowed any more" if not names else f"taken back: {', '.join(sorted(names))}"


def _named(project: Brought, names: Sequence[str], *, each_one: bool = False) -> tuple[Acting, ...]:
    """Return what is meant. `each_one`: a name is to mean one thing, for what else bears it may not have been seen."""
    chosen: dict[str, Acting] = {}
    for name in names:
        fitting = [item for item in project.items if name in (item.name, f"{item.kind} {item.name}", item.where)]
        if not fitting:
            there = [item.called for item in project.items]
            near = similar(name, [item.name for item in project.items])
            hint = f" Did you mean {' or '.join(map(quoted, near))}?" if near else ""
            raise RequestError(
                f"This project brings no {quoted(name)} that can act.{hint} There is: {', '.join(there) or 'nothing'}."
            )
        several = list(dict.fromkeys(item.called for item in fitting if name == item.name))
        if each_one and len(several) > 1:
            raise RequestError(
                f"{quoted(name)} is what {' and '.join(several)} are called; say which: {quoted(several[0])}."
            )
        chosen |= {item.key: item for item in fitting}
    return tuple(chosen.values()) if names else project.items


def _shown(project: Brought, home: Path, *, items: Sequence[Acting] | None = None, done: str = "") -> ProjectTrust:
    listed = project.items if items is None else items
    keys = {item.key for item in listed}
    withheld = tuple(one for one in project.held if one.item.key in keys)
    by = trusted_by(project.root)
    allowed_by = ""
    if by is not None:
        allowed_by = f"trusted by {_SETTINGS}" if by[1] else "trusted"
        allowed_by += "" if by[0] == project.root else ", with a folder above"
    differences = "".join(_difference(project, one.item, home) for one in withheld)
    place, digest = shown_folder(project.root), _digest(project.items)
    return ProjectTrust(place, tuple(listed), withheld, allowed_by, differences, digest, done)


def _difference(project: Brought, item: Acting, home: Path) -> str:
    """Return what is new in an item since it was allowed, as a patch; all of it if it never was."""
    answer = project.trust.answer
    before = answer.contents.get(item.key) or answer.seen.get(item.key) or {}
    return "".join(
        part
        for path in {**before, **item.files}
        if before.get(path) != item.files.get(path)
        for part in _patch(path, before.get(path), item.files.get(path), project, item, home)
    )


def _patch(path: str, old: str | None, new: str | None, project: Brought, item: Acting, home: Path) -> Iterator[str]:
    was = "" if not old else kept_text(home, old)
    now = "" if not new else text_of(project.root, item, path)
    yield f"diff --git a/{path} b/{path}\n"
    if not old or not new:
        yield "new file mode 100644\n" if new else "deleted file mode 100644\n"
    if was is None or now is None:
        yield f"Binary files a/{path} and b/{path} differ\n"
        return
    # Who allows it reads it here: nothing in it may be out of sight.
    rows = difflib.unified_diff(
        visible(was).splitlines(), visible(now).splitlines(), f"a/{path}", f"b/{path}", lineterm=""
    )
    yield from (f"{row}\n" for row in rows)


def _listed(items: Sequence[Acting]) -> str:
    return ", ".join(item.called for item in items)


def _digest(items: Sequence[Acting]) -> str:
    return sha256_text(stable_json([[item.key, item.files] for item in items]))[:8]
