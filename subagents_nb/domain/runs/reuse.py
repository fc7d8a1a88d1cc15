"""Whether a run of the same contract may stand in for a new one, as far as its own documents say."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from subagents_nb.domain.agents.settings import ReusePolicy
from subagents_nb.domain.plans.experiments import ExperimentPart
from subagents_nb.domain.plans.plan import Draft, FanOutItem, LaunchPlan, StepPlan, everything
from subagents_nb.domain.runs.records import RunResult
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.base import sha256_text, stable_json

ANEW = "Launched anew: "  # how the note of a run begins that says why no other run stood in for it
NO_PLACE = "When it was launched, no place was free"
GOES_ON = "Goes on from "


def lasting_notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the notes of a run that hold for a later one of its plan too, not those on how it was launched."""
    return tuple(note for note in notes if not note.startswith((ANEW, NO_PLACE, GOES_ON)))


def contract_key(plan: Draft | LaunchPlan) -> str | None:
    """Return what runs have in common that may stand in for each other; None for a run that is one of a kind.

    That is what goes on from another run's session: it is asked for to say something new.
    """
    if plan.resumes is not None:
        return None
    part = plan.experiment
    return key_of(plan.digest, plan.cwd, part.cell.repeat if part.cell is not None else 0, part)


def key_but_for_skills(plan: Draft | LaunchPlan) -> str | None:
    """Return what runs have in common that differ at most in what their skills hold; None for a plan without any."""
    if not any(step.skills for step in everything(plan.steps, plan.items)):
        return None
    items = (
        one.model_copy(update={"template": _unread(one.template)}) if isinstance(one, FanOutItem) else one
        for one in plan.items
    )
    return contract_key(Draft(**{**plan.body(), "steps": tuple(map(_unread, plan.steps)), "items": tuple(items)}))


def _unread(step: StepPlan) -> StepPlan:
    skills = tuple(one.model_copy(update={"sha256": ""}) for one in step.skills)
    reviewer = _unread(step.reviewer) if step.reviewer is not None else None
    children = tuple(map(_unread, step.children))
    return step.model_copy(update={"skills": skills, "reviewer": reviewer, "children": children})


def changed_skills(plan: Draft | LaunchPlan, other: Draft | LaunchPlan) -> tuple[str, ...]:
    """Return the names of the skills that hold something else in one of two plans than in the other."""

    def held(one: Draft | LaunchPlan) -> set[tuple[str, str]]:
        return {(skill.name, skill.sha256) for step in everything(one.steps, one.items) for skill in step.skills}

    return tuple(sorted({name for name, _ in held(plan) ^ held(other)}))


def key_of(digest: str, cwd: str, repeat: int = 0, part: ExperimentPart | None = None) -> str:
    """Return the key of a contract at work in a directory.

    Each repetition in a sweep has one of its own, and so has each experiment: whoever names a new one, or tells runs
    apart by parameters, asks for runs that belong to it.
    """
    bound: dict[str, Any] = {"digest": digest, "cwd": cwd, "repeat": repeat}
    if part is not None and (part.name is not None or part.params):
        bound["experiment"] = {"name": part.name, "params": part.params}
    return sha256_text(stable_json(bound))


def reuse_miss(
    result: RunResult,
    policy: ReusePolicy,
    good: Collection[RunState] = (RunState.COMPLETE,),
    *,
    explained: Callable[[str], bool] = lambda _path: False,
) -> str | None:
    """Return why an ended run can't stand in for a new launch, None if only its files remain to be compared.

    What changed while it worked may be `explained` by another run, that is known to have left it.
    """
    name = result.name
    if result.state not in good:
        return f"{name} is {result.state}"
    reads = result.reads
    changed = reads.changed if reads is not None else result.changed_files
    if changed:
        return f"{name} changed {_some(changed)}, so it is reused only when asked for by its id"
    if reads is not None and (unclear := tuple(path for path in reads.meanwhile if not explained(path))):
        by = f"{_some(unclear)} changed while {name} was at work, by it or by others"
        return f"{by}, so it is reused only when asked for by its id"
    if policy == "complete":
        return None
    if reads is None:
        return f"nobody noted what {name} read"
    if reads.untracked:
        return f"what {name} read is not known ({reads.untracked[0]})"
    if beside := tuple(path for path in reads.beside if not explained(path)):
        return f"{_some(beside)} changed while a program of {name} stood by, and nobody knows whether by that"
    return None


def _some(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
