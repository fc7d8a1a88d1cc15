"""What a conversation looks like on the wire: steers, follow-ups, and histories that are resumed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from subagents_nb.domain.runs.events import ModelAsked, ToolStarted
from subagents_nb.runner.engines.native.native import NativeEngine

all_wires = pytest.mark.parametrize("api", ["chat", "responses", "messages", "gemini"])
# aimock ends a turn of calls with a word that Gemini has not, and its SDK wonders about it.
pytestmark = pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason")


@pytest.fixture(autouse=True)
def _key(workshop: Any) -> None:
    workshop.environ.update(LAB_KEY="sk-very-secret-value")


def turns(body: dict[str, Any]) -> list[Any]:
    """The messages of a request, whichever protocol it speaks."""
    found: list[Any] = body.get("messages") or body["input"]
    return found


@all_wires
def test_a_steer_is_in_the_next_request_once_and_in_the_history(
    workshop: Any, plan: Any, aimock: Any, api: str
) -> None:
    steer = f"only csv files, over {api}"
    workshop.on = lambda event: workshop.inbox.steering.append(steer) if isinstance(event, ToolStarted) else None

    outcome = workshop.run(NativeEngine(), plan(f"steer me over {api}", at=aimock.url, api=api, tools=("list",)))

    first, second = aimock.requests(f"steer me over {api}")
    assert steer not in json.dumps(first)
    assert json.dumps(second).count(steer) == 1
    # aimock notes the words of an Anthropic turn before its results; on the wire they come after them.
    last = turns(second)[-2 if api == "messages" else -1]
    assert last["role"] == "user" and steer in json.dumps(last["content"]), "it comes after the tool's result"
    assert (workshop.step_dir / "session.json").read_text().count(steer) == 1
    assert outcome.text == "steered"


@all_wires
def test_a_follow_up_is_a_request_of_its_own_and_its_answer_is_the_outcome(
    workshop: Any, plan: Any, aimock: Any, api: str
) -> None:
    workshop.inbox.following.append("a word more, please")

    outcome = workshop.run(NativeEngine(), plan(f"a word, over {api}", at=aimock.url, api=api))

    first, second = aimock.requests(f"a word, over {api}")
    assert len(turns(second)) == len(turns(first)) + 2
    assert json.dumps(second).count("a word more, please") == 1
    assert outcome.text == "another word" and workshop.text == "one word\n\nanother word"


@all_wires
def test_an_interrupted_run_is_gone_on_from_with_its_open_call_answered(
    workshop: Any, plan: Any, aimock: Any, api: str
) -> None:
    async def stopped(step: Any) -> None:
        task = asyncio.ensure_future(NativeEngine().run(step, workshop.context(step)))
        workshop.on = lambda event: task.cancel() if isinstance(event, ToolStarted) else None
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped(plan(f"sleep well over {api}", at=aimock.url, api=api, tools=("bash",))))
    workshop.history = workshop.step_dir.parent / "earlier.json"
    (workshop.step_dir / "session.json").rename(workshop.history)
    workshop.on = lambda _event: None
    workshop.events.clear()

    outcome = workshop.run(NativeEngine(), plan("a word, after all", at=aimock.url, api=api, tools=("bash",)))

    body = aimock.requests(f"sleep well over {api}")[-1]
    calls = [c["id"] for m in turns(body) for c in m.get("tool_calls") or ()]
    calls += [m["call_id"] for m in turns(body) if m.get("type") == "function_call"]
    answers = [m["tool_call_id"] for m in turns(body) if m.get("role") == "tool"]
    answers += [m["call_id"] for m in turns(body) if m.get("type") == "function_call_output"]
    assert calls and calls == answers
    assert "interrupted before a result" in json.dumps(body)
    assert outcome.text == "one word" and workshop.told(ModelAsked) == [ModelAsked(1)]
    first = json.loads((workshop.step_dir / "session.json").read_text())[0]
    assert first["parts"][0]["content"] == f"sleep well over {api}"
