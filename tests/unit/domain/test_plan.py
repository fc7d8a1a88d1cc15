"""The launch contract: what it binds and what it leaves free."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import make_step

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.plans.plan import Draft, Origin, StepPlan, label_of
from subagents_nb.domain.values.base import stable_json

TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def a_draft(**step: Any) -> Draft:
    return Draft(name=None, cwd="/a", steps=(make_step(**step),), timeout_s=60)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(list(value))}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(TEXT, JSON, max_size=4), st.lists(st.sampled_from(["read", "list", "bash"]), unique=True))
def test_the_order_of_keys_and_tools_does_not_change_the_digest(schema: dict[str, Any], tools: list[str]) -> None:
    one = a_draft(output_schema=schema, tools=tuple(tools))
    other = a_draft(output_schema=reversed_keys(schema), tools=tuple(reversed(tools)))
    assert one.digest == other.digest


@given(name=st.none() | TEXT, timeout=st.none() | st.floats(1, 1e6), note=TEXT, tag=TEXT, session=TEXT)
def test_names_deadlines_notes_tags_and_origin_do_not_change_the_digest(
    name: str | None, timeout: float | None, note: str, tag: str, session: str
) -> None:
    plain = a_draft()
    dressed = plain.model_copy(
        update={
            "name": name,
            "timeout_s": timeout,
            "notes": (note,),
            "tags": (tag,),
            "origin": Origin(surface="magic", session=session),
        }
    )
    assert dressed.digest == plain.digest
    made = dressed.to_plan(run_id="r-x", token="t", created_at="now")
    assert made.digest == plain.digest


@pytest.mark.parametrize(
    "change",
    [
        {"task": "count the rows "},
        {"model": "scripted:slow"},
        {"model": "openai:gpt-5"},
        {"tools": ("read",)},
        {"output_schema": {"type": "object"}},
        {"system_prompt": "Be brief."},
        {"prompt_mode": "append"},
        {"agent_digest": "other"},
        {"thinking": "high"},
        {"temperature": 0.0},
    ],
    ids=lambda change: next(iter(change)),
)
def test_task_model_tools_schema_and_prompt_change_the_digest(change: dict[str, Any]) -> None:
    assert a_draft(**change).digest != a_draft().digest


def test_how_the_model_was_written_and_who_chose_it_do_not_change_the_digest() -> None:
    one, other = a_draft(model="openai:gpt-5"), a_draft(model="openai/gpt-5")
    assert one.digest == other.digest


def test_the_digest_is_the_same_in_every_process() -> None:
    # A change of this figure makes every run of before unfindable by its contract: raise DIGEST_PROJECTION with it.
    assert a_draft().digest == Draft.model_validate(a_draft().model_dump()).digest
    assert stable_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'


def test_an_agents_digest_binds_behaviour_and_not_its_description() -> None:
    agent = AgentDefinition(name="a", description="one", prompt="p")
    assert agent.digest() == agent.model_copy(update={"description": "two", "aliases": ("b",)}).digest()
    assert agent.digest() != agent.model_copy(update={"prompt": "q"}).digest()
    assert agent.digest() != agent.model_copy(update={"tools": ()}).digest()


def test_no_figure_that_is_not_a_number_enters_a_digest() -> None:
    with pytest.raises(ValueError, match="JSON"):
        stable_json({"a": float("nan")})


def test_a_label_is_the_first_line_cut_to_160_characters() -> None:
    assert label_of("\n\n  one \ntwo") == "one"
    assert len(label_of("x" * 500)) == 160
    assert label_of(" \n ") == ""


def test_a_field_added_later_is_bound_as_soon_as_it_is_set() -> None:
    class Longer(StepPlan):
        seed: int | None = None

    fields = make_step(goal="g", temperature=0.0).model_dump()
    assert Longer(**fields).contract() == StepPlan(**fields).contract()
    assert "goal" not in StepPlan(**fields).contract() and StepPlan(**fields).contract()["temperature"] == 0
    assert Longer(**fields, seed=3).contract() == {**StepPlan(**fields).contract(), "seed": 3}
