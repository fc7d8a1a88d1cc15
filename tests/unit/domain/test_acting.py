"""What was allowed may act; in a folder that is trusted, what a run wrote is told from what the person wrote."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from subagents_nb.domain.agents.acting import Acting, Answer, Trust, Work, refusal


def skill(**files: str) -> Acting:
    return Acting(kind="skill", name="deploy", does=("1 script",), files={"SKILL.md": "a", "x.py": "b", **files})


BEFORE, AFTER = skill(), skill(**{"x.py": "c"})
ALLOWED = {BEFORE.key: BEFORE.files}
ENDED, SEEN_AT = 100.0, 50.0


def trust(answer: Answer, *, folder: bool = False, ended: float | None = None, changed: float = 0.0) -> Trust:
    work = None if ended is None else Work(run="lead-4f2a", ended=ended)
    return Trust(
        answer, folder, work_since=lambda since: work if since >= SEEN_AT else None, changed_at=lambda _: changed
    )


def in_folder(*, ended: float | None = None, changed: float = 0.0) -> Trust:
    return trust(Answer(folder="2026", seen_at=SEEN_AT, seen=ALLOWED), folder=True, ended=ended, changed=changed)


def test_nothing_may_act_before_it_was_allowed_and_contents_as_they_were() -> None:
    held = trust(Answer()).held(BEFORE)
    assert held is not None and (held.known, str(held)) == (False, "skill deploy (1 script)")
    contents = trust(Answer(contents=ALLOWED))
    assert contents.held(BEFORE) is None
    held = contents.held(AFTER)
    assert held is not None and str(held) == "skill deploy (1 script; changed)"


@pytest.mark.parametrize("change", [{"x.py": "c"}, {"SKILL.md": "z"}, {"y.py": "new"}])
def test_one_file_of_several_is_enough(change: dict[str, str]) -> None:
    assert trust(Answer(contents=ALLOWED)).held(skill(**change)) is not None
    assert in_folder(ended=math.inf).held(skill(**change)) is not None
    gone = BEFORE.model_copy(update={"files": {"SKILL.md": "a"}})
    assert trust(Answer(contents=ALLOWED)).held(gone) is not None
    assert in_folder(ended=ENDED).held(gone) is not None


@pytest.mark.parametrize(
    ("ended", "changed", "theirs"),
    [
        (None, 0.0, True),  # no run was at work here
        (math.inf, 900.0, False),  # one is
        (ENDED, 99.0, False),
        (ENDED, 100.1, False),  # in doubt
        (ENDED, 101.0, True),
        (ENDED, 0.0, False),  # when it changed can't be told
        (ENDED, 20.0, False),  # older than when it was last seen, so it was moved there
    ],
)
def test_in_a_trusted_folder_a_change_is_the_persons_unless_a_run_could_have_made_it(
    ended: float | None, changed: float, theirs: bool
) -> None:
    for item in (AFTER, Acting(kind="agent", name="new", files={"n.md": "n"})):
        held = in_folder(ended=ended, changed=changed).held(item)
        assert (held is None) is theirs
        assert held is None or held.run == "lead-4f2a"
    assert in_folder(ended=ended, changed=changed).held(BEFORE) is None


def test_what_a_run_changed_stays_held_until_it_is_allowed_or_gone() -> None:
    now = in_folder(ended=ENDED, changed=99.0)
    answer = now.seeing([AFTER], 300.0)
    assert answer is not None and answer.seen == ALLOWED and answer.held[AFTER.key].files == {"x.py": "c"}
    later = trust(answer, folder=True)
    assert later.seeing([AFTER], 400.0) is None
    held = later.held(AFTER)
    assert held is not None and str(held) == "skill deploy (1 script; changed while run lead-4f2a was at work here)"
    # Another file of it that the person changes does not let it go, taking the change back does.
    assert later.held(skill(**{"x.py": "c", "SKILL.md": "mine"})) is not None
    assert later.held(BEFORE) is None
    assert later.held(skill(**{"x.py": "mine"})) is None
    answer = later.seeing([BEFORE], 400.0)
    assert answer is not None and answer.held == {}
    allowed = replace(later, answer=later.answer.model_copy(update={"contents": {AFTER.key: AFTER.files}}))
    assert allowed.held(AFTER) is None


def test_what_is_first_seen_in_a_trusted_folder_is_the_persons() -> None:
    first = trust(Answer(folder="2026"), folder=True, ended=math.inf)
    assert first.held(AFTER) is None
    answer = first.seeing([AFTER], 10.0)
    assert answer is not None and (answer.seen_at, answer.seen) == (10.0, {AFTER.key: AFTER.files})
    assert trust(Answer()).seeing([AFTER], 10.0) is None, "contents are not remembered as seen"


def test_there_is_one_reason_and_none_without_anything() -> None:
    assert refusal([]) is None
    held = trust(Answer()).held(BEFORE)
    assert held is not None
    reason = refusal([held, held])
    assert reason is not None and "brings 2 things that act" in reason and reason.advice == "subagents-nb trust"
