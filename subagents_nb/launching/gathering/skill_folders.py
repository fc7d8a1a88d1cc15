"""The skills that a launch names: found, read and hashed, each once for a launch and only once it is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from subagents_nb.catalog.guidance.skill_format import SkillHead, normal, read_head
from subagents_nb.catalog.guidance.skill_places import SkillFolder, find_skill, in_home
from subagents_nb.catalog.search_paths import project_root
from subagents_nb.catalog.trust import who_else_writes
from subagents_nb.catalog.trusting.answers import trust_of
from subagents_nb.domain.agents.skills import MAIN_FILES, SkillLookup, SkillRecord, SkillWanted, acting_skill, is_script
from subagents_nb.domain.plans.plan import PlanItem, StepPlan, everything
from subagents_nb.errors import LaunchRefused, StoreError
from subagents_nb.launching.gathering.last_work import work_in
from subagents_nb.planning.launch_environment import LookupsNeeded
from subagents_nb.store import StoreHome
from subagents_nb.store.runs.skill_files import SkillFile, SkillFiles, SkillRefused, kept_skills, read_folder, sha256_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SkillLookups:
    """What was found of the skills that are named from a working directory; it fills while a launch is planned."""

    cwd: Path
    home: Path | None = None
    lookups: dict[SkillWanted, SkillLookup] = field(default_factory=dict)
    files: dict[str, SkillFiles] = field(default_factory=dict)  # by the SHA-256 of each skill

    def planned(self, plan: Callable[[], T]) -> T:
        """Return what is planned; what it wants to know of skills is looked up, and it is planned once more."""
        while True:
            try:
                return plan()
            except LookupsNeeded as missing:
                self.look_up(*missing.skills)

    def look_up(self, *skills: SkillWanted) -> None:
        """Find and read skills."""
        for wanted in skills:
            place = find_skill(wanted, self.cwd, home=self.home)
            self.lookups[wanted] = SkillLookup() if place is None else self._read(place, wanted)

    def _read(self, place: SkillFolder, wanted: SkillWanted) -> SkillLookup:
        name = wanted.name

        def broken(why: str, file: str = "") -> SkillLookup:
            return SkillLookup(problem=f"skill {name!r} ({place.where}{file}): {why}")

        if place.problem is not None:
            return broken(place.problem)
        try:
            files = read_folder(place.path, who_else_writes if place.guarded else lambda _about: None)
        except SkillRefused as error:
            return broken(str(error))
        except OSError as error:
            return broken(f"it can't be read: {error.strerror or error}")
        main = main_file(files)
        if main is None:
            return broken(f"it has no {MAIN_FILES[0]}")
        head = read_head(main.data, normal(place.path.name))
        if head.faults:
            return broken("; ".join(head.faults), f"/{main.path}")
        return self._kept(place, wanted, files, head)

    def _kept(self, place: SkillFolder, wanted: SkillWanted, files: SkillFiles, head: SkillHead) -> SkillLookup:
        name, sha256 = normal(wanted.name), sha256_of(files)
        self.files[sha256] = files
        record = SkillRecord(
            name=name,
            description=head.description,
            sha256=sha256,
            files=len(files),
            bytes=sum(len(one.data) for one in files),
            source=place.source,
            where=place.where,
        )
        scripts = sum(is_script(one.path, one.runs) for one in files)
        item = None
        if place.source in ("agent", "project") and not place.where.startswith("~"):
            taken = not wanted.by_project and in_home(name, home=self.home)
            item = acting_skill(place.where, ((one.path, one.runs, one.sha256) for one in files), takes_name=taken)
        trust = trust_of(project_root(self.cwd, home=self.home), home=self.home, work_in=work_in) if item else None
        held = trust.held(item) if trust is not None and item is not None else None
        return SkillLookup(record=record, asks_for=head.asks_for, scripts=scripts, acting=item, held=held)


def main_file(files: SkillFiles) -> SkillFile | None:
    """Return the file that says what a skill is."""
    by_path = {one.path: one for one in files}
    return next((by_path[name] for name in MAIN_FILES if name in by_path), None)


def skills_for(
    home: StoreHome,
    steps: Iterable[StepPlan],
    items: Iterable[PlanItem],
    files: Mapping[str, SkillFiles],
    earlier: str | None = None,
) -> dict[str, SkillFiles]:
    """Return the files of the skills of a plan by the names of their folders: as found, or as an earlier run has them.

    Raises:
        LaunchRefused: some are gone, or are no longer what was copied.
    """
    records = {one.folder: one for step in everything(steps, items) for one in step.skills}
    used = {folder: files[one.sha256] for folder, one in records.items() if one.sha256 in files}
    missing = [one for folder, one in records.items() if folder not in used]
    if missing and earlier is None:
        raise LaunchRefused([f"skill {one.name!r} was not looked up" for one in missing])
    try:
        return used | (kept_skills(home.run(earlier), missing) if earlier is not None else {})
    except StoreError as error:
        raise LaunchRefused([f"{error} Launch anew"]) from error
