"""The native engine against aimock: tool calls, streams, structured output and faults over the four wires it speaks."""

from __future__ import annotations

from typing import Any

import pytest

from subagents_nb.domain.runs.events import ModelNamed, TextStreamed, ThoughtStreamed, ToolEnded, ToolStarted
from subagents_nb.runner.engines import engine_for
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.native.request_retries import NO_RETRIES

SCHEMA = {
    "type": "object",
    "title": "A verdict, in short",
    "properties": {"ok": {"type": "boolean"}, "score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["ok", "score"],
    "additionalProperties": False,
}
KEY = "sk-very-secret-value"
KEY_OF = {"messages": "ANTHROPIC_API_KEY", "gemini": "GOOGLE_API_KEY"}
OPENAIS = ["chat", "responses"]
all_wires = pytest.mark.parametrize("api", [*OPENAIS, *KEY_OF])
# aimock ends a turn of calls with a word that Gemini has not, and its SDK wonders about it.
pytestmark = pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid FinishReason")


@pytest.fixture(autouse=True)
def _key(workshop: Any) -> None:
    workshop.environ.update(LAB_KEY=KEY)


@all_wires
def test_an_answer_is_streamed_and_counted(workshop: Any, plan: Any, aimock: Any, api: str) -> None:
    step = plan("hello", at=aimock.url, api=api)

    outcome = workshop.run(engine_for(step), step)

    assert outcome.text == workshop.text == "hi from the other side"
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (1000, 50)
    assert outcome.usage.requests == 1
    if api in OPENAIS:
        assert outcome.usage.cost_usd is None, "nobody knows the prices of a server of one's own"
    else:
        assert outcome.usage.cost_usd is not None and outcome.usage.cost_usd > 0
    assert outcome.model == workshop.told(ModelNamed)[0].model == step.model.name


def test_a_provider_is_reached_where_the_environment_says_and_its_price_is_known(
    workshop: Any, plan: Any, aimock: Any
) -> None:
    workshop.environ.update(OPENAI_API_KEY=KEY, OPENAI_BASE_URL=f"{aimock.url}/v1")
    step = plan("hello", "openai:gpt-5-mini")

    outcome = workshop.run(engine_for(step), step)

    assert outcome.text == "hi from the other side"
    assert outcome.usage.cost_usd is not None and outcome.usage.cost_usd > 0


@all_wires
def test_two_tools_of_one_turn_really_run(workshop: Any, plan: Any, aimock: Any, api: str) -> None:
    (workshop.cwd / "a.csv").write_text("x\n1\n")
    step = plan("use two tools", at=aimock.url, api=api, tools=("read", "list"))

    outcome = workshop.run(NativeEngine(), step)

    assert outcome.text == "a.csv has one row"
    assert [(e.name, e.args) for e in workshop.told(ToolStarted)] == [("read", "a.csv"), ("list", ".")]
    assert all(event.ok for event in workshop.told(ToolEnded))
    assert outcome.usage.requests == 2 and outcome.usage.tool_calls == 2


def test_a_secret_file_is_refused(workshop: Any, plan: Any, aimock: Any) -> None:
    (workshop.cwd / ".env").write_text("TOKEN=hidden-value")
    step = plan("read the key", at=aimock.url, tools=("read",))

    assert workshop.run(NativeEngine(), step).text == "I may not"
    assert workshop.told(ToolEnded)[0].refused is not None
    assert "hidden-value" not in (workshop.step_dir / "session.json").read_text()


@all_wires
def test_reasoning_comes_as_thoughts(workshop: Any, plan: Any, aimock: Any, api: str) -> None:
    assert workshop.run(NativeEngine(), plan("think", at=aimock.url, api=api, level=":high")).text == "then I answer"
    assert "".join(event.text for event in workshop.told(ThoughtStreamed)) == "first I ponder"


@pytest.mark.parametrize("short", ["sonnet", "opus", "haiku"])
def test_what_a_short_name_means_is_still_offered(workshop: Any, plan: Any, aimock: Any, short: str) -> None:
    """The client warns of a model that its provider takes away soon, and of ways to think; a warning fails here."""
    step = plan("think", f"anthropic:{short}", at=aimock.url, api="messages", level=":high")

    assert workshop.run(NativeEngine(), step).text == "then I answer"


@all_wires
def test_a_slow_answer_comes_piece_by_piece(workshop: Any, plan: Any, aimock: Any, api: str) -> None:
    workshop.run(NativeEngine(), plan("hello", at=aimock.url, api=api))  # whatever is imported late is imported now
    workshop.events.clear()
    workshop.times.clear()

    workshop.run(NativeEngine(), plan("slowly", at=aimock.url, api=api))

    pieces = [at for event, at in zip(workshop.events, workshop.times, strict=True) if isinstance(event, TextStreamed)]
    assert len(pieces) >= 8 and pieces[-1] - pieces[0] > 0.1


@pytest.mark.parametrize(
    ("task", "mode", "score", "api"),
    [
        ("judge", "tool", 7, "chat"),
        ("judge", "tool", 7, "responses"),
        ("native", "native", 8, "chat"),  # aimock does not see the format of a request of the other wire
        ("prompted", "prompted", 3, "chat"),
        ("prompted", "prompted", 3, "responses"),
    ],
)
def test_a_structured_answer_comes_in_the_mode_of_the_endpoint(
    workshop: Any, plan: Any, aimock: Any, api: str, task: str, mode: str, score: int
) -> None:
    step = plan(task, at=aimock.url, api=api, output_schema=SCHEMA, endpoint={"output_mode": mode})

    outcome = workshop.run(NativeEngine(), step)

    assert outcome.has_value and outcome.value["score"] == score
    assert f'"score":{score}' in workshop.text.replace(" ", ""), "people see the value as it comes"


@pytest.mark.parametrize("api", KEY_OF)
@pytest.mark.parametrize("level", ["", ":high"])
def test_a_provider_is_given_a_tool_for_the_structured_answer_whether_it_thinks_or_not(
    workshop: Any, plan: Any, aimock: Any, api: str, level: str
) -> None:
    step = plan("judge", at=aimock.url, api=api, level=level, output_schema=SCHEMA, tools=("read",))

    outcome = workshop.run(NativeEngine(), step)

    assert outcome.value == {"ok": True, "score": 7} and '"score": 7' in workshop.text.replace(":7", ": 7")


@all_wires
def test_a_value_that_never_fits_is_a_schema_failure(workshop: Any, plan: Any, aimock: Any, api: str) -> None:
    step = plan("never fits", at=aimock.url, api=api, output_schema=SCHEMA, output_retries=1)

    failure = workshop.fail(NativeEngine(), step)

    assert failure.reason == "schema" and "score: 99 is greater than the maximum of 10" in failure.message


@all_wires
@pytest.mark.parametrize(
    ("task", "reason", "words"),
    [
        ("rate", "rate-limit", "Slow down, please"),
        ("key", "auth", "_KEY"),
        ("teapot", "provider", "HTTP 418"),
        ("cut off", "connection", "broke off while the model was answering"),  # aimock resets the connection here
        ("drop", "connection", "broke off while the model was answering"),
    ],
)
def test_each_fault_has_its_reason_and_no_message_holds_the_key(
    workshop: Any, plan: Any, aimock: Any, api: str, task: str, reason: str, words: str
) -> None:
    failure = workshop.fail(NativeEngine(patience=NO_RETRIES), plan(task, at=aimock.url, api=api))

    assert failure.reason == reason and words in failure.message, failure.message
    assert KEY not in failure.message and (task != "key" or KEY_OF.get(api, "LAB_KEY") in failure.message)
    assert failure.message.isprintable()
    assert failure.usage is not None and failure.usage.requests == 1
