"""New limits for a live run are asked for within the policy that stands in its plan."""

from __future__ import annotations

import pytest
from support import make_plan, make_recovery, make_status, make_step, run_id

from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling.controls import Controls
from subagents_nb.store import StoreHome, create_run


def test_a_live_run_is_given_no_more_than_its_policy_allows(store_home: StoreHome) -> None:
    policy = Policy.of(Ceiling(origin="me", max_tokens=1000))
    writer = create_run(store_home, make_plan(steps=(make_step(policy=policy),)), make_recovery())
    writer.status(make_status(), milestone=False)
    with pytest.raises(RequestError, match="100,000 tokens is above 1,000 tokens, the most that me allows"):
        Controls(store_home, run_id()).retune(tokens="100k")
    assert not list(store_home.run(run_id()).root.glob("control/*.json")), "nothing was asked of it"
