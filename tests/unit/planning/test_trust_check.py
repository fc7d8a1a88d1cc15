"""A step does not begin where a project would act in it by itself; whatever the person names may."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.plan import Draft, LaunchRequest
from subagents_nb.planning import Facts, draft

OURS, THEIRS = "~/.subagents/settings.toml", ".subagents/settings.toml"
LINE = 'to allow what this project brings, write in ~/.subagents/settings.toml: trusted_folders = ["~/clone"]'


def plan(
    *, source: str = "project", settings: Any = None, trusted: bool = False, asked: Any = None, **of: Any
) -> Draft:
    fields = {"name": "clerk", "description": "d", "source": source, "where": "c.md", **of}
    other = AgentDefinition(name="judge", description="d", source="project", where="j.md", tools=("bash",))
    catalog = AgentCatalog(agents=(AgentDefinition.model_validate(fields), other))
    scripts = frozenset({"echo", "evil"})
    facts = Facts(cwd="/home/me/clone", project="~/clone", trusted=trusted, scripts=scripts)
    request = LaunchRequest.model_validate({"agent": "clerk", "task": "t", "model": "scripted:echo", **(asked or {})})
    return draft(request, catalog=catalog, settings=Settings.model_validate(settings or {}), facts=facts)


def of_settings(where: str, **values: Any) -> dict[str, Any]:
    return {**values, "origins": dict.fromkeys(values, where)}


EVIL = {"default_model": "scripted:evil"}
VERIFY = {"report": "off", "verify": [{"id": "a", "command": "id > x"}]}
BY_OTHER = {"level": "checked", "report": "off", "evidence": [], "criteria": [], "review": {"agent": "judge"}}


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ({"settings": of_settings(THEIRS, **EVIL), "asked": {"model": None}}, "makes scripted:evil the default model"),
        ({"acceptance": VERIFY}, "has commands run with your rights when it is done (acceptance.verify: `id > x`)"),
        ({"acceptance": '{"verify": "id"}'}, "has commands run with your rights"),
        ({"acceptance": BY_OTHER}, "is reviewed by agent judge of the project, which has bash"),
        (
            {"settings": of_settings(THEIRS, default_agent="clerk"), "tools": ("bash",), "asked": {"agent": None}},
            "makes its agent clerk the default, which has bash",
        ),
    ],
)
def test_what_acts_without_being_named_waits_for_a_yes(what: dict[str, Any], words: str) -> None:
    (problem,) = plan(**what).start_problems
    assert words in problem and problem.endswith(LINE)
    assert plan(**what, trusted=True).start_problems == ()


@pytest.mark.parametrize(
    "what",
    [
        {"settings": of_settings(OURS, **EVIL), "asked": {"model": None}},
        {"settings": of_settings("SUBAGENTS_NB_MODEL", **EVIL), "asked": {"model": None}},
        {"settings": of_settings(THEIRS, default_model="scripted:echo"), "asked": {"model": None}},
        {"settings": of_settings(THEIRS, **EVIL), "asked": {"model": "scripted:evil"}},
        {"acceptance": VERIFY, "asked": {"acceptance": False}},
        {"acceptance": VERIFY, "asked": {"gate": "true"}},
        {"asked": {"acceptance": VERIFY}},
        {"tools": ("bash",)},
        {"settings": of_settings(THEIRS, default_agent="clerk"), "tools": ("read",), "asked": {"agent": None}},
        {"source": "user", "acceptance": VERIFY},
        {"model": "scripted:evil", "asked": {"model": None}},  # it acts with the agent's tools alone, which lists show
    ],
)
def test_what_the_person_named_or_wrote_is_never_asked_for(what: dict[str, Any]) -> None:
    assert plan(**what).start_problems == ()


def test_a_file_that_was_not_let_in_is_noted_on_the_run_of_the_agent_it_would_have_been() -> None:
    agent = AgentDefinition(name="scout", description="d", source="builtin")
    problem = AgentProblem(where=".agents/s.md", source="project", error="not used: why", withheld="scout")
    found = draft(
        LaunchRequest(agent="scout", task="t", model="scripted:echo"),
        catalog=AgentCatalog(agents=(agent,), problems=(problem,)),
        settings=Settings(),
        facts=Facts(cwd="/w", scripts=frozenset({"echo"})),
    )
    assert ".agents/s.md of this project is not used: why." in found.notes
