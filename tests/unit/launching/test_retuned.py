"""New limits for a live run are asked for within the policy that stands in its plan."""

from __future__ import annotations

from typing import Any

import pytest
from support import WHEN, make_plan, make_recovery, make_status, make_step, run_id

from subagents_nb import chain, step
from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.runs.questions import Question
from subagents_nb.errors import RequestError
from subagents_nb.launching.composing.appending import append
from subagents_nb.launching.controlling.controls import Controls
from subagents_nb.store import StoreHome, create_run


def test_a_live_run_is_given_no_more_than_its_policy_allows(store_home: StoreHome) -> None:
    policy = Policy.of(Ceiling(origin="me", max_tokens=1000))
    writer = create_run(store_home, make_plan(steps=(make_step(policy=policy),)), make_recovery())
    writer.status(make_status(), milestone=False)
    with pytest.raises(RequestError, match="100,000 tokens is above 1,000 tokens, the most that me allows"):
        Controls(store_home, run_id()).retune(tokens="100k")
    assert not list(store_home.run(run_id()).root.glob("control/*.json")), "nothing was asked of it"


@pytest.mark.parametrize("limit", [{"tokens": "10M"}, {"cost_usd": 9}, {"timeout": "9h"}, {"usage_budget": "10M"}])
def test_a_process_of_a_run_raises_no_limit_and_answers_for_nobody(
    store_home: StoreHome, monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any]
) -> None:
    writer = create_run(store_home, make_plan(), make_recovery())
    writer.status(make_status(), milestone=False)
    asks = Question(run_id=run_id(), question_id="q1", step=0, text="Go?", asked_at=WHEN)
    writer.mail.question(asks)
    monkeypatch.setenv(RUN_MARK, f"{run_id()}:token")
    of_a_run = f"This process belongs to run {run_id()}: "
    with pytest.raises(RequestError, match=f"{of_a_run}a new limit is the person's to give"):
        Controls(store_home, run_id()).retune(**limit)
    with pytest.raises(RequestError, match=f"{of_a_run}an answer is the person's to give"):
        Controls(store_home, run_id()).answer("yes")
    with pytest.raises(RequestError, match=f"{of_a_run}what a chain does next is the person's to give"):
        append(store_home, run_id(), chain(step("scout", "x")), asked_by="python")
    paths = store_home.run(run_id())
    assert not list(paths.root.glob("control/*.json")) and not paths.reply("q1").exists()


@pytest.mark.parametrize(("given", "said"), [("130k", "130,000 tokens"), (5000, "5,000 tokens"), ("$2", r"\$2")])
def test_a_live_run_is_given_a_budget_in_the_words_of_a_launch(
    store_home: StoreHome, given: float | str, said: str
) -> None:
    policy = Policy.of(Ceiling(origin="me", max_tokens=1000, max_usd=1))
    writer = create_run(store_home, make_plan(steps=(make_step(policy=policy),)), make_recovery())
    writer.status(make_status(), milestone=False)
    run = Controls(store_home, run_id())
    with pytest.raises(RequestError, match=f"{said} is above"):
        run.retune(usage_budget=given)
    with pytest.raises(RequestError, match="usage_budget and tokens say the same; give one of them"):
        run.retune(usage_budget="1k", tokens=10)
