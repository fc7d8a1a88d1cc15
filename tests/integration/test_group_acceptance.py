"""A group that is accepted as a whole, with words for people and bounds on what is given on, over real runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import script

from subagents_nb import chain, launch, parallel, runs, step
from subagents_nb.blocks import to_text
from subagents_nb.domain.runs.states import RunState
from subagents_nb.notebook.cards.card import card, card_page
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(90)


@pytest.fixture(autouse=True)
def warm(shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> StoreHome:
    monkeypatch.delenv("SUBAGENTS_NB_SPAWN")
    return shared_home


def test_a_rejected_group_is_mended_and_the_chain_goes_on_without_doing_its_work_again() -> None:
    long = step("scout", "a", model=script("long", {"text": "0123456789" * 3}), max_output=10, description="counts")
    flow = chain(
        parallel(long, step("scout", "b"), gate="test -f mended", label="both", phase="look"),
        step("scout", "then {previous}"),
    )
    run = launch(flow, model="scripted:echo", goal="one sum", phase="first")
    run.wait(60)
    assert (run.state, run.error) == (RunState.REJECTED, "both was not accepted: gate: exit code 1")
    shown = to_text(card(run.status))
    assert "both was not accepted" in shown and "counts" in shown and "look" in shown
    page = card_page(run.status)
    assert "test -f mended" in page and "first · for: one sum" in page
    assert run.steps[0].text == "0123456789" * 3, "the whole is kept"
    Path("mended").touch()
    again = run.resume("go on")
    again.wait(60)
    assert again.state is RunState.COMPLETE, again.error
    assert again.steps[0].status.carried_from == run.id
    assert "only the first 10 characters" in again.steps[2].text
    assert "acceptance verified, 1 of 1 command passed" in to_text(card(again.status))
    assert {one.id for one in runs(phase="look")} == {one.id for one in runs(phase="first")} == {run.id, again.id}
