"""The view of a plan before its launch."""

from __future__ import annotations

from pathlib import Path

import pytest
from card_page import Page, plan_html, plan_text
from card_samples import draft
from support import make_step

from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.agents.models import EMBEDDED, parse_model
from subagents_nb.domain.agents.settings import Endpoint
from subagents_nb.domain.plans.acceptance import Acceptance, Verify
from subagents_nb.domain.plans.plan import Draft
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.sandbox_plan import SandboxPlan
from subagents_nb.launching import chain, expand, parallel, preflight, step
from subagents_nb.notebook.plans.plan_card import MAX_PROMPT_CHARS

FILES = {"type": "object", "properties": {"files": {"type": "array"}}, "required": ["files"]}


def both(plan: Draft) -> tuple[str, str]:
    return Page(plan_html(plan)).text, " ".join(plan_text(plan).split())


def test_the_whole_plan_is_shown() -> None:
    plan = draft(notes=("no project context",), tags=("nightly",), tool_env=("CI_TOKEN",), timeout_s=60.0)
    for text in both(plan):
        for part in (
            plan.digest, "scout · builtin · scout.md", "ab" * 32, "anthropic:claude-sonnet-4-5",
            "the first provider with a key in the environment", "ANTHROPIC_API_KEY", "the model's default",
            "read, grep", "replaces the default prompt", "50 requests, 2 retries", "60 s", "30 min", "Findings",
            "nightly", "CI_TOKEN",
            "Find the columns with outliers. Say why.", "You look, and you change nothing.", '"type": "object"',
            "no project context", "nothing was launched",
        ):  # fmt: skip
            assert part in text, part


@pytest.mark.parametrize(
    ("origin", "why"),
    [
        ("call", "asked for in this call"),
        ("agent", "the agent's own"),
        ("settings", "your settings"),
        ("embedded", "embedded model"),
    ],
)
def test_the_model_says_why_it_was_chosen(origin: str, why: str) -> None:
    model = parse_model(EMBEDDED, origin="embedded", endpoints={}).model_copy(update={"origin": origin})
    for text in both(draft(model=model)):
        assert why in text
        assert "no key is needed" in text


def test_whom_an_agent_may_start_is_shown_with_what_they_have() -> None:
    leaf = make_step(agent="leaf", tools=("bash",))
    mid = make_step(agent="mid", tools=("read", "delegate"), delegates=("leaf",), children=(leaf,))
    plan = draft()
    lead = plan.steps[0].model_copy(update={"delegates": ("mid",), "children": (mid,)})
    for text in both(plan.model_copy(update={"steps": (lead,)})):
        assert (
            "delegates to mid (scripted:echo; read, delegate; delegates to leaf (scripted:echo; bash))"
            in text.replace("delegates tomid", "delegates to mid")
        )


def test_texts_are_verbatim_in_a_pre() -> None:
    task = '\n  if a < b & c:\n\t"quoted" {braces} $x %s\n'
    page = Page(plan_html(draft(task=task)))
    assert any(part.removeprefix("\n") == task for part in page.parts)
    assert page.tags.count("details") == 3


def test_what_can_not_be_shown_is_counted() -> None:
    plan = draft(task="a\x00b\u202ec", system_prompt="")
    for text in both(plan):
        assert "2 control characters not shown" in text
        assert "empty" in text
    assert "23 more characters not shown" in plan_text(draft(task="x" * (MAX_PROMPT_CHARS + 23)))


@pytest.mark.parametrize(
    ("cwd", "shown"),
    [
        ("/home/ada/work", "~/work"),
        ("/Users/ada", "~"),
        ("/root/x", "~/x"),
        (r"C:\Users\ada\x", r"~\x"),
        ("/rooted/x", "…/rooted/x"),
    ],
)
def test_the_home_folder_of_the_user_is_not_published(cwd: str, shown: str) -> None:
    for text in both(draft(cwd=cwd)):
        assert f"cwd {shown} timeout" in text


def test_a_password_in_an_endpoint_is_not_published() -> None:
    endpoint = Endpoint(base_url="https://ada:secret@e.example/v1")
    model = draft().steps[0].model.model_copy(update={"endpoint": endpoint})
    for text in both(draft(model=model)):
        assert "https://e.example/v1" in text
        assert "secret" not in text


def test_the_steps_of_a_longer_plan_are_shown_one_after_the_other() -> None:
    one = draft()
    two = one.model_copy(
        update={"steps": (one.steps[0], draft(task="And then?").steps[0].model_copy(update={"index": 1}))}
    )
    for text in both(two):
        assert (
            text.index("steps[0]") < text.index("Find the columns") < text.index("steps[1]") < text.index("And then?")
        )


def test_the_same_draft_gives_the_same_view() -> None:
    assert plan_html(draft()) == plan_html(draft())
    assert plan_text(draft()) == plan_text(draft())


def test_the_stages_of_a_chain_and_what_their_placeholders_refer_to_are_shown(tmp_path: Path) -> None:
    flow = chain(
        step("scout", "Find in {task}", as_="found", schema=FILES, label="map files"),
        expand("found", "/files", step("reviewer", "Look at {item.a} of {outputs.found}"), max_items=9, as_="all"),
        parallel(step("worker", "a {previous}"), step("reviewer", "b"), fail_fast=True, on_failure="continue"),
        task="the data",
    )
    plan = preflight(flow, model="scripted:echo", cwd=tmp_path).plan
    assert plan is not None
    for text in both(plan):
        flat = " ".join(text.split())
        for part in (
            "Stages: 3 stages, 3 steps and up to 9 more",
            "stage 1 steps[0], map files (scout); {task} is “the data”; its output is called found",
            "stage 2 reviewer for each of /files of found, at most 9, 4 at a time; {item} stands for one of them; "
            "{outputs.found} is the value of steps[0]; its output is called all",
            "stage 3 side by side, 4 at a time: 1 worker, 2 reviewer; after a failure no further one is started; "
            "the chain goes on without those that fail; {previous} is what stage 2 comes to",
            "steps[0] · map files (scout)", "Each of stage 2 · reviewer", "Look at {item.a}", "may start 64 steps",
        ):  # fmt: skip
            assert part in flat, part


def test_a_sandbox_is_shown_with_who_asks_for_it() -> None:
    ceiling = Ceiling(origin="~/.subagents/settings.toml", sandbox="workspace", network=False)
    step = draft().steps[0].model_copy(update={"policy": Policy.of(ceiling), "sandbox": SandboxPlan()})
    for text in both(draft().model_copy(update={"steps": (step,)})):
        assert "workspace, no network · ~/.subagents/settings.toml" in text
        assert "sandbox workspace · network False" in text


def test_the_commands_that_are_run_at_its_end_are_shown() -> None:
    verify = (Verify(id="verify-1", command="make test"), Verify(id="verify-2", command="touch done"))
    for text in both(draft(acceptance=Acceptance(level="verified", explicit=True, verify=verify))):
        assert "verified by" in text and "2 commands: make test; touch done" in text


def test_the_servers_of_a_step_are_shown_with_what_is_started() -> None:
    server = McpServer(name="files", command="mcp-server-filesystem", args=("docs",))
    plan = draft()
    step = plan.steps[0].model_copy(update={"tools": ("read", "mcp__files", "mcp__far__look"), "mcp": (server,)})
    for text in both(plan.model_copy(update={"steps": (step,)})):
        assert "read, files, far/look" in text and "files (mcp-server-filesystem docs)" in text
