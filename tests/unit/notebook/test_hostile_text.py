"""No text of a run, an agent or a plan becomes markup."""

from __future__ import annotations

from typing import Any

import pytest
from card_page import (
    Page,
    agents_table_html,
    agents_table_text,
    card_html,
    card_text,
    plan_html,
    plan_text,
    runs_table_html,
    runs_table_text,
)
from card_payloads import PAYLOADS
from card_samples import asking, draft, ended, gave, lost, planned, refused, running, unreadable

from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem, SearchedPlace
from subagents_nb.domain.agents.attention import Attention
from subagents_nb.domain.agents.settings import Endpoint
from subagents_nb.domain.runs.control import Retuned
from subagents_nb.domain.runs.records import Refusal, StepStatus, ToolRow
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import StepState
from subagents_nb.notebook.cards.card import MAX_CARD_BYTES, CardContext
from subagents_nb.notebook.cards.view import text_line, widget_state
from subagents_nb.notebook.page.markdown import safe_markdown

UNSEEN = ("\x1b", "\x07", "\x00", "\u202e", "\u200b", "\x9b")


def snapshots(text: str) -> list[Snapshot]:
    """Runs that carry the text in every field a run can carry it in."""
    common: dict[str, Any] = {"name": text, "notes": (text, text)}
    step: dict[str, Any] = {"agent": text, "model": text, "refusals": (Refusal(tool=text, why=text),) * 2}
    row = ToolRow(call_id=text, name=text, args=text)
    at_work = StepStatus(agent=text, model=text, state=StepState.RUNNING, tools=(row,), tail=text, activity=text)
    value = {text: text, "rows": [{text: text, "n": 1}], "deep": {text: [{text: [text]}]}}
    return [
        running(steps=(at_work,), **common),
        ended(step={**step, "text": text}, **common),
        ended(step={**step, "has_value": True, "value": value}, **common),
        ended(step={**step, "has_value": True, "value": [{text: text}, {"n": 2}]}, **common),
        ended(step={**step, "has_value": True, "value": [text, [text, {text: text}]]}, **common),
        ended(step={**step, "has_value": True, "value": text}, **common),
        ended("partial", reason="no-answer", error=text, tail=text, step=step, **common),
        ended("failed", reason="provider", actor="provider", error=text, tail=text, step=step, **common),
        lost(message=text, tail=text),
        ended(
            "paused",
            reason="interrupted",
            error=text,
            resumed_from=text,
            changed_files=(text,) * 9,
            open_tools=(row,),
            retunes=(Retuned(at=text, by=text, changes={text: 3.0}),),
            **common,
        ),
        asking(text, text, choices=(text, "no"), steps=(at_work,), **common),
        running(attention=Attention(kind="idle", text=text, since_s=0.0), **common),
        unreadable(text, text).model_copy(update={"run_id": text}),
        planned(gave([1]), schema_name=text, agent=text, name=text),
    ]


@pytest.mark.row(27, cases=1)
@pytest.mark.parametrize("text", PAYLOADS)
def test_a_card_shows_hostile_text_as_text(text: str) -> None:
    for snapshot in snapshots(text):
        card = card_html(snapshot, CardContext("found"))
        assert Page(card).tags[0] == "section"
        assert len(card.encode()) <= MAX_CARD_BYTES
        for said in (card_text(snapshot), text_line(snapshot)):
            assert not any(mark in said for mark in UNSEEN)
        assert "\n" not in text_line(snapshot)


@pytest.mark.row(27, cases=1)
@pytest.mark.parametrize("text", PAYLOADS)
def test_tables_show_hostile_text_as_text(text: str) -> None:
    runs = snapshots(text)
    agent = AgentDefinition(
        name=text, description=text, aliases=(text,), where=text, model=text, tools=(text,), source="project"
    )
    problem = AgentProblem(where=text, source="user", error=text, name=text)
    place = SearchedPlace(where=text, source="user", state="absent")
    full = AgentCatalog(agents=(agent,), problems=(problem,), shadowed=((text, text),), cwd=text)
    none = AgentCatalog(problems=(problem,), places=(place,), cwd=text)
    for made in (runs_table_html(runs), agents_table_html(full), agents_table_html(none)):
        assert Page(made).tags[0] == "section"
    for said in (runs_table_text(runs), agents_table_text(full), agents_table_text(none)):
        assert not any(mark in said for mark in UNSEEN)
    assert len(runs_table_text(runs).split("\n")) == len(runs) + 2


@pytest.mark.row(27, cases=1)
@pytest.mark.parametrize("text", PAYLOADS)
def test_a_plan_shows_hostile_text_as_text(text: str) -> None:
    endpoint = Endpoint(base_url="https://e.example/")
    model = draft().steps[0].model.model_copy(update={"name": text, "requested": text, "endpoint": endpoint})
    plan = draft(
        name=text, task=text, system_prompt=text, agent=text, agent_where=text, agent_source=text, tools=(text,),
        output_schema={text: text}, schema_name=text, notes=(text,), cwd=text, tags=(text,), tool_env=(text,),
        model=model,
    )  # fmt: skip
    assert Page(plan_html(plan)).tags[0] == "section"
    assert not any(mark in plan_text(plan) for mark in UNSEEN)


@pytest.mark.row(27, cases=1)
@pytest.mark.parametrize("text", PAYLOADS)
def test_markdown_of_hostile_text_can_do_nothing(text: str) -> None:
    for source in (text, f"- {text}\n\n> {text}", f"**{text}** and [{text}]({text})", f"| {text} |\n|---|\n| {text} |"):
        page = Page(safe_markdown(source))
        assert not {"script", "img", "style"} & set(page.tags)


@pytest.mark.row(27, cases=1)
@pytest.mark.parametrize("text", PAYLOADS)
def test_the_page_gets_hostile_text_as_bounded_plain_data(text: str) -> None:
    for snapshot in snapshots(text):
        state = widget_state(snapshot)
        for key in ("run_id", "name", "agent", "model", "note", "reused", "reason", "cost", "attention"):
            assert "\n" not in state[key]
            assert not any(mark in state[key] for mark in UNSEEN)
        assert not any(mark in str(state["questions"]) for mark in UNSEEN)
        assert len(str(state)) < 12_000


def test_refusals_of_many_kinds_are_counted_not_listed_without_end() -> None:
    page = Page(card_html(refused(*((f"tool{i}", "no") for i in range(900)))))
    assert (
        "Warning: 900 tool calls were refused: tool0 (no), tool1 (no), tool2 (no), tool3 (no), and 896 more"
        in page.text
    )
