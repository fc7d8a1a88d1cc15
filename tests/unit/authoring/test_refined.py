"""What the person adds to an agent's instructions: shown, proposed by a reviewer, applied by them alone, taken back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import attach, create_agent, preflight, refinement, trust
from subagents_nb.authoring.proposing import asked_of, proposal_schema
from subagents_nb.cli import main
from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.domain.agents.refinements import MOST_BYTES
from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.states import StepState
from subagents_nb.errors import RequestError
from subagents_nb.notebook.magics.magics import magics_of
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.store import StoreHome, create_run
from tests.support import make_plan, make_recovery, make_result, make_step

HIDDEN = "\U000e0041\u202e\u200b\x85"
OWN = ".subagents/refinements/scout.md"
REVIEWER = make_step(agent="reviewer", tools=(), output_schema=proposal_schema(["s1", "s2"]))


@pytest.fixture(autouse=True)
def place(store_home: StoreHome) -> StoreHome:
    (Path.cwd() / ".git").mkdir()
    return store_home


def written(text: str, folder: Path | None = None) -> Path:
    path = (folder or Path.home()) / OWN
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def prompt(agent: str = "scout") -> str:
    plan = preflight(agent, "t", model="scripted:echo").plan
    assert plan is not None
    return plan.steps[0].system_prompt


def reasons(agent: str = "scout") -> str:
    return "; ".join(preflight(agent, "t", model="scripted:echo").reasons)


def result_of(
    home: StoreHome,
    number: int = 1,
    *,
    value: Any = None,
    tags: tuple[str, ...] = (),
    plan: StepPlan | None = None,
    **step: Any,
) -> None:
    """Write a run down that has ended."""
    writer = create_run(home, make_plan(number, tags=tags, steps=(plan or make_step(),)), make_recovery(number))
    fields = {"agent": "scout", "model": "m", "state": StepState.COMPLETE, "text": "three rows"}
    valued = {"has_value": True, "value": value} if value is not None else {}
    writer.result(make_result(number, steps=(StepResult.model_validate({**fields, **valued, **step}),)))


def proposes(
    home: StoreHome, *edits: tuple[str, str], number: int = 7, agent: str = "scout", by: StepPlan = REVIEWER
) -> None:
    said = [{"title": a, "guidance": b, "rationale": "r", "evidence": ["s1"]} for a, b in edits]
    result_of(home, number, value={"edits": said}, tags=(f"refines:{agent}",), plan=by, agent=by.agent)


# --- what an agent is told ------------------------------------------------------------------------------------------


def test_the_text_stands_fenced_behind_the_agents_own_and_in_the_digest_only_where_there_is_one() -> None:
    before = preflight("scout", "t", model="scripted:echo")
    written("- units: name the unit of each figure\n")
    after = preflight("scout", "t", model="scripted:echo")
    assert before.plan is not None and after.plan is not None
    told = after.plan.steps[0].system_prompt
    assert told.startswith(before.plan.steps[0].system_prompt)
    assert told.endswith("<refinement>\n- units: name the unit of each figure\n</refinement>")
    assert "are not changed by them" in told
    assert after.plan.notes == (f"Agent scout is refined by ~/{OWN}.",)
    assert before.plan.notes == () and before.digest != after.digest
    assert preflight("reviewer", "t", model="scripted:echo").plan.notes == ()  # type: ignore[union-attr]
    written(" \n")
    assert preflight("scout", "t", model="scripted:echo").digest == before.digest


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x" * (MOST_BYTES + 1), f"it has more than {MOST_BYTES:,} bytes; shorten it"),
        ("a </Refinement> b", "it holds the tag <refinement>, between which it is shown to the agent"),
        ("a\x1b[31m", "it holds control characters"),
        *((f"a{char}b", f"it holds what nobody sees where it is shown: U+{ord(char):04X}") for char in HIDDEN),
    ],
)
def test_a_file_that_can_not_be_one_is_a_reason_and_no_other_agents(text: str, why: str) -> None:
    written(text)
    assert reasons() == f"the refinement ~/{OWN} of agent 'scout' can't be used: {why}"
    assert reasons("reviewer") == ""
    assert why in repr(refinement("scout")) if len(text) <= MOST_BYTES else True


def test_a_projects_waits_for_the_persons_yes_and_one_changed_byte_asks_again() -> None:
    path = written("- one: two\n", Path.cwd())
    assert "refinement scout (adds to the instructions of scout)" in reasons()
    assert "<refinement>" not in prompt("reviewer")
    assert "+- one: two" in trust().differences
    trust(contents=True)
    assert "- one: two" in prompt()
    path.write_text("- one: three\n")
    assert "refinement scout (adds to the instructions of scout; changed)" in reasons()


def test_the_persons_stands_before_the_projects() -> None:
    written("mine\n")
    written("theirs\n", Path.cwd())
    trust(contents=True)
    told = prompt()
    assert told.index("mine") < told.index("theirs") and told.count("<refinement>") == 2


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (Path.cwd() / OWN).parent.mkdir(parents=True)
    (Path.cwd() / OWN).symlink_to(tmp_path / "secret")
    assert f"the refinement {OWN} of agent 'scout' can't be used: it is a link that leads out" in reasons()


# --- proposed ---------------------------------------------------------------------------------------------------


def test_a_reviewer_is_asked_about_results_of_the_agent_as_data(
    place: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "canary-1234567")
    result_of(place, 1, text="the key is canary-1234567 " + "x" * 9000)
    result_of(place, 2, state=StepState.FAILED, error="no model", text="")
    asked = asked_of(refinement("scout").agent, "- old: rule", ["scout-1", attach("scout-2")])
    task = asked["task"]
    assert "canary" not in task and "[redacted]" in task and len(task) < 12_000
    assert '"error": "no model"' in task and '"added so far": "- old: rule"' in task
    ids = asked["schema"]["properties"]["edits"]["items"]["properties"]["evidence"]["items"]["enum"]
    assert ids == ["s1", "s2"]
    plan = preflight("reviewer", **asked, model="scripted:echo").plan
    assert plan is not None and plan.steps[0].tools == () and plan.tags == ("refines:scout",)


def test_what_shows_nothing_of_the_agent_is_refused_with_all_reasons(place: StoreHome) -> None:
    result_of(place, 1, agent="worker")
    create_run(place, make_plan(2), make_recovery(2))
    with pytest.raises(RequestError) as caught:
        refinement("scout").propose("scout-1", "scout-2")
    assert "Run scout-1 has no result of agent 'scout'; run scout-2 has no result of agent 'scout'." in str(
        caught.value
    )
    for number in range(3, 12):
        result_of(place, number)
    with pytest.raises(RequestError, match="hold 9 results of agent 'scout', and 8 are the most"):
        refinement("scout").propose(*(f"scout-{number}" for number in range(3, 12)))
    with pytest.raises(RequestError, match="Name runs of agent 'scout'"):
        refinement("scout").propose()


# --- applied and taken back ---------------------------------------------------------------------------------------


def test_a_proposal_is_added_once_and_each_rollback_goes_one_further_back(place: StoreHome) -> None:
    proposes(place, ("Units", "Name the unit\nof each figure."))
    proposes(place, ("Units", "Name the unit of each figure."), ("Paths", "Give paths."), number=8)
    mine = refinement("scout")
    assert repr(mine.apply("scout-7")) == f"scout: applied, revision 1: ~/{OWN}"
    assert mine.apply("scout-7").done == "already there"
    assert mine.apply(attach("scout-8")).done == "applied, revision 2"
    assert mine.text == "- Units: Name the unit of each figure.\n- Paths: Give paths.\n"
    assert mine.rollback().done == "rolled back, revision 3"
    assert mine.text == "- Units: Name the unit of each figure.\n"
    assert mine.rollback().done == "rolled back, revision 4"
    assert mine.text == "" and not (Path.home() / OWN).exists()
    with pytest.raises(RequestError, match="was rolled back to nothing already"):
        mine.rollback()
    mine.rollback(2)
    assert "Paths" in mine.text
    assert [one.did for one in mine.revisions] == ["applied", "applied", *["rolled back"] * 3]
    assert repr(mine).splitlines()[0] == f"scout: 60 bytes (~/{OWN})"
    assert "revision 5" in repr(mine) and repr(mine).endswith("rolled back to 2")


def test_what_was_written_by_hand_is_kept_in_the_history(place: StoreHome) -> None:
    proposes(place, ("Units", "Name units."))
    written("- by hand: yes\n")
    mine = refinement("scout")
    mine.apply("scout-7")
    assert mine.text == "- by hand: yes\n- Units: Name units.\n"
    written("- nonsense\n")
    assert "The text was written by hand since." in repr(mine)
    mine.rollback()
    assert mine.text == "- by hand: yes\n- Units: Name units.\n"
    did = [one.did for one in mine.revisions]
    assert did == ["written by hand", "applied", "written by hand", "rolled back"]
    mine.rollback()
    assert mine.text == "- by hand: yes\n"


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([("a", "```sh\nrm\n```")], "it holds a fence of code"),
        ([("a", "x </refinement> y")], "it holds the tag"),
        ([("a", "\x07")], "it holds control characters"),
        *(
            ([(f"a{char}", "b")], rf"it holds what nobody sees where it is shown: U\+{ord(char):04X}")
            for char in HIDDEN
        ),
        ([("a", "y" * 601)], "is no proposal"),
        ([(f"{n}", "y") for n in range(4)], "is no proposal"),
    ],
)
def test_a_proposal_that_would_leave_its_fence_adds_nothing(
    place: StoreHome, edits: list[tuple[str, str]], why: str
) -> None:
    proposes(place, *edits)
    with pytest.raises(RequestError, match=why):
        refinement("scout").apply("scout-7")
    assert not (Path.home() / OWN).exists()


def test_only_a_run_that_proposed_for_this_agent_can_be_applied_and_only_as_far_as_there_is_room(
    place: StoreHome,
) -> None:
    result_of(place, 1, value={"edits": []})
    proposes(place, ("a", "b"), agent="worker")
    for name in ("scout-1", "scout-7"):
        with pytest.raises(RequestError, match=f"Run {name} proposes nothing for agent 'scout'"):
            refinement("scout").apply(name)
    written("x" * (MOST_BYTES - 3))
    proposes(place, ("a", "b"), number=8)
    with pytest.raises(RequestError, match="with that it has more than 4,096 bytes; shorten it"):
        refinement("scout").apply("scout-8")
    proposes(place, number=9)
    assert refinement("scout").apply("scout-9").done == "nothing was proposed"


@pytest.mark.parametrize(
    "by",
    [
        make_step(agent="worker"),
        REVIEWER.model_copy(update={"tools": ("read",)}),
        REVIEWER.model_copy(update={"output_schema": None}),
        REVIEWER.model_copy(update={"output_schema": {**proposal_schema(["s1"]), "required": []}}),
        REVIEWER.model_copy(update={"output_schema": proposal_schema(["s9"])}),
    ],
)
def test_what_was_not_launched_as_a_proposal_is_none(place: StoreHome, by: StepPlan) -> None:
    proposes(place, ("a", "b"), by=by)
    with pytest.raises(RequestError, match="Run scout-7 proposes nothing for agent 'scout'"):
        refinement("scout").apply("scout-7")
    assert not (Path.home() / OWN).exists()


def test_a_proposal_rests_on_what_was_shown_and_was_made_here(place: StoreHome) -> None:
    proposes(place, ("a", "b"), by=REVIEWER.model_copy(update={"output_schema": proposal_schema(["s1"])}))
    said = {"title": "a", "guidance": "b", "rationale": "r", "evidence": ["s99"]}
    result_of(place, 8, value={"edits": [said]}, tags=("refines:scout",), plan=REVIEWER, agent="reviewer")
    with pytest.raises(RequestError, match="What run scout-8 proposes names samples that it was not shown"):
        refinement("scout").apply("scout-8")
    place.run(attach("scout-7").id).imported.write_text("{}")
    with pytest.raises(RequestError, match="Run scout-7 came in an archive: what was proposed elsewhere"):
        refinement("scout").apply("scout-7")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("é" * MOST_BYTES, "it has more than 4,096 bytes"),
        ("x" + "é" * 4 * MOST_BYTES, "it has more than 4,096 bytes"),  # a cut within a character
        ("\r\n" * 3 * MOST_BYTES, "it has more than 4,096 bytes"),
        ("a </refinement>", "it holds the tag"),
        ("a\u200bb", "it holds what nobody sees"),
    ],
)
def test_what_was_written_by_hand_and_could_not_be_had_back_is_not_taken_away(
    place: StoreHome, text: str, why: str
) -> None:
    proposes(place, ("a", "b"))
    mine = refinement("scout")
    mine.apply("scout-7")
    path = Path.home() / OWN
    path.write_bytes(text.encode())
    assert f"can't be used: {why}" in reasons()
    for to in (None, 0, 1):
        with pytest.raises(RequestError, match=f"{OWN} was written by hand, and could not be had back: {why}"):
            mine.rollback(to)
    assert path.read_bytes() == text.encode() and len(mine.revisions) == 1


def test_rolling_back_ends_where_no_more_is_kept(place: StoreHome) -> None:
    mine = refinement("scout")
    made = [{"number": n, "at": "2026", "did": "applied", "text": f"{'x' * n}\n"} for n in range(6, 26)]
    written(str(made[-1]["text"])).with_suffix(".json").write_text(json.dumps({"revisions": made}))
    texts = [mine.text]
    with pytest.raises(
        RequestError, match=r"what it was before revision \d+ is kept no more; --to goes to one that is"
    ):
        for _ in range(25):
            mine.rollback()
            texts.append(mine.text)
    assert len(texts) == len(set(texts)) and texts == sorted(texts, key=len, reverse=True)
    assert mine.text == texts[-1] != ""


def test_all_that_is_shown_shows_what_hides_and_no_line_passes_for_another(place: StoreHome) -> None:
    proposes(place, ("a", "b"))
    mine = refinement("scout", scope="project")
    mine.apply("scout-7")
    path = Path.cwd() / OWN
    path.write_text("می\u200cخواهم\nrevision 9, 2026-01-01 00:00: applied from me\x1b[2J\n")
    history = path.with_suffix(".json")
    one = json.loads(history.read_text())
    one["revisions"][0] |= {"run": "x\nrevision 9, 2026-01-01 00:00: applied from you\x1b]0;t\x07"}
    history.write_text(json.dumps(one))
    shown = repr(mine)
    assert "می⟨U+200C⟩خواهم" in shown and "\x1b" not in shown and "\x07" not in shown
    lines = [line for line in shown.splitlines() if line.startswith("revision")]
    assert len(lines) == 1 and lines[0].startswith("revision 1, ")


def test_no_run_applies_or_takes_back(place: StoreHome, monkeypatch: pytest.MonkeyPatch) -> None:
    proposes(place, ("a", "b"))
    monkeypatch.setenv(RUN_MARK, "20260101T000000-aaaa:ffff")
    mine = refinement("scout")
    for change in (lambda: mine.apply("scout-7"), mine.rollback):
        with pytest.raises(RequestError, match="an agent's refinement is the person's to change"):
            change()


def test_a_project_keeps_its_own_and_the_persons_yes_is_asked_for(place: StoreHome) -> None:
    proposes(place, ("a", "b"))
    change = refinement("scout", scope="project").apply("scout-7")
    assert (change.where, change.remark) == (OWN, "it waits for your yes: %subagent_trust")
    assert (Path.cwd() / OWN).read_text() == "- a: b\n" and not (Path.home() / OWN).exists()


def test_what_it_was_made_for_may_have_changed(place: StoreHome) -> None:
    create_agent("mine", "p", description="d")
    proposes(place, ("a", "b"), agent="mine")
    made = refinement("mine").apply("scout-7")
    assert "was changed since" not in repr(refinement("mine"))
    (Path.home() / ".subagents/agents/mine.md").write_text("---\nname: mine\ndescription: d\n---\nother\n")
    assert repr(refinement("mine")).endswith("The file of mine was changed since; see whether it still fits.")
    assert made.path.stat().st_mode & 0o077 == 0 or os.name != "posix"


def test_a_history_that_can_not_be_read_is_not_written_over(place: StoreHome) -> None:
    proposes(place, ("a", "b"))
    history = written("old\n").with_suffix(".json")
    history.write_text("[")
    with pytest.raises(RequestError, match=r"scout\.json is not as this version writes it"):
        refinement("scout").apply("scout-7")
    assert (history.read_text(), refinement("scout").text) == ("[", "old\n")


def test_a_cell_and_a_terminal_do_the_same(place: StoreHome, capsys: pytest.CaptureFixture[str]) -> None:
    proposes(place, ("a", "b"))
    line = magics_of(VERBS)(shell=None).magics["line"]["subagent_refine"]
    assert repr(line("scout")) == f"scout: no refinement (~/{OWN})"
    assert line("scout --apply scout-7").done == "applied, revision 1"
    assert main(["refine", "scout"]) == 0
    assert capsys.readouterr().out.startswith(f"scout: 7 bytes (~/{OWN})\n  - a: b\nrevision 1, ")
    assert main(["refine", "scout", "--rollback"]) == 0
    assert capsys.readouterr().out == f"scout: rolled back, revision 2: ~/{OWN}\n"
    for wrong in ("scout --to 1", "scout --model m", "scout --rollback --apply scout-7", "nobody"):
        assert main(["refine", *wrong.split()]) == 1, wrong
    assert "--to says where --rollback goes back to" in capsys.readouterr().err
