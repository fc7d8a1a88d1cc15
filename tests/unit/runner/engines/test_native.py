"""The native engine, with models that live in this process."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel

from subagents_nb.domain.runs.events import (
    ModelAsked,
    ModelNamed,
    Noticed,
    StepFailed,
    TextStreamed,
    ThoughtStreamed,
    ToolEnded,
    ToolStarted,
    UsageChanged,
)
from subagents_nb.runner.engines.native.model_answers import request_settings
from subagents_nb.runner.engines.native.native import NativeEngine

SCHEMA = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "integer", "maximum": 10}}},
    "required": ["rows"],
}
READ = ("read", "list", "find", "grep")


def test_the_first_piece_of_an_answer_is_streamed_like_the_others(workshop: Any, plan: Any, plays: Any) -> None:
    outcome = workshop.run(NativeEngine(plays(["three", " rows"])), plan())

    assert outcome.text == workshop.text == "three rows"
    assert [event.text for event in workshop.told(TextStreamed)] == ["three", " rows"]
    assert outcome.model == workshop.told(ModelNamed)[0].model
    assert workshop.told(UsageChanged)[-1].usage == outcome.usage
    assert outcome.usage.requests == 1 and outcome.usage.output_tokens > 0
    assert outcome.usage.cost_usd is None  # nobody has a price for this model


def test_thoughts_and_answers_are_told_apart(workshop: Any, plan: Any, plays: Any) -> None:
    outcome = workshop.run(NativeEngine(plays([("think", "hm"), "three"])), plan())

    assert outcome.text == "three"
    assert [event.text for event in workshop.told(ThoughtStreamed)] == ["hm"]


def test_a_tool_call_is_reported_from_start_to_end_between_two_requests(workshop: Any, plan: Any, plays: Any) -> None:
    (workshop.cwd / "a.csv").write_text("x\n1\n")
    model = plays([("read", {"path": "a.csv"})], ["two lines"])

    outcome = workshop.run(NativeEngine(model), plan(tools=READ))

    order = [type(event).__name__ for event in workshop.events if not isinstance(event, (UsageChanged, ModelNamed))]
    assert order == ["ModelAsked", "ToolStarted", "ToolEnded", "ModelAsked", "TextStreamed"]
    assert workshop.told(ToolStarted) == [ToolStarted("c1-0", "read", "a.csv")]
    (ended,) = workshop.told(ToolEnded)
    assert ended.ok and ended.refused is None and ended.seconds > 0 and "a.csv" in ended.preview
    assert [event.number for event in workshop.told(ModelAsked)] == [1, 2]
    assert outcome.usage.tool_calls == 1 and outcome.usage.requests == 2


@pytest.mark.parametrize(
    ("name", "args", "why"),
    [
        ("read", {"path": "../outside.txt"}, "outside the root"),
        ("read", {"path": "/etc/passwd"}, "outside the root"),
        ("read", {"path": "link"}, "outside the root"),
        ("read", {"path": ".env"}, "denied"),
        ("read", {"path": "deep/.env.local"}, "denied"),
        ("read", {"path": "server.pem"}, "denied"),
        ("read", {"path": "secrets/x"}, "denied"),
        ("read", {"path": ".git/config"}, "denied"),
        ("list", {"path": ".."}, "outside the root"),
        ("grep", {"pattern": "root", "path": "/etc"}, "outside the root"),
        ("write", {"path": ".git/hooks/pre-commit", "content": "x"}, "protected"),
        ("write", {"path": "deep/.env", "content": "x"}, "protected"),
        ("write", {"path": ".subagents/agents/mine.md", "content": "x"}, "protected"),
        ("write", {"path": "deep/.claude/agents/mine.md", "content": "x"}, "protected (matches '**/.claude/*')"),
        ("write", {"path": ".ipython/profile_default/startup/0.py", "content": "x"}, "protected"),
        ("read", {"path": "deep/ID_ecdsa"}, "denied"),
        ("write", {"path": "../x", "content": "x"}, "outside the root"),
        ("bash", {"command": "ls"}, "not one of this step's tools"),
        ("launch_missiles", {"at": "moon"}, "not one of this step's tools"),
    ],
)
def test_a_forbidden_call_is_a_refusal_and_the_run_goes_on(
    workshop: Any, plan: Any, plays: Any, name: str, args: dict[str, str], why: str
) -> None:
    (workshop.cwd.parent / "outside.txt").write_text("hidden")
    (workshop.cwd / "link").symlink_to(workshop.cwd.parent / "outside.txt")
    (workshop.cwd / "deep").mkdir()
    (workshop.cwd / ".env").write_text("K=hidden")
    before = sorted(workshop.cwd.rglob("*"))

    outcome = workshop.run(NativeEngine(plays([(name, args)], ["so be it"])), plan(tools=(*READ, "write")))

    (ended,) = workshop.told(ToolEnded)
    assert not ended.ok and why in ended.refused
    assert "hidden" not in ended.preview
    assert outcome.text == "so be it"
    assert sorted(workshop.cwd.rglob("*")) == before


@pytest.mark.parametrize("store", ["data/store", "."])
def test_the_run_store_is_not_there_for_the_tools_of_an_agent_that_works_above_it(
    workshop: Any, plan: Any, plays: Any, store: str
) -> None:
    run = workshop.cwd / store / "runs/r-1"
    run.mkdir(parents=True)
    (run / "result.json").write_text("the answer")
    workshop.more["store_home"] = workshop.cwd / store
    path = f"{store}/runs/r-1/result.json"
    calls = [("read", {"path": path}), ("write", {"path": path, "content": "forged"}), ("grep", {"pattern": "answer"})]

    workshop.run(NativeEngine(plays(*[[call] for call in calls], ["Done."])), plan(tools=(*READ, "write")))

    assert not any(event.ok and "answer" in event.preview for event in workshop.told(ToolEnded))
    assert (run / "result.json").read_text() == "the answer"


def test_a_missing_file_is_a_failed_call_and_no_refusal(workshop: Any, plan: Any, plays: Any) -> None:
    model = plays(*[[("read", {"path": "nope.csv"})]] * 4, ["not there"])

    outcome = workshop.run(NativeEngine(model), plan(tools=READ))

    ended = workshop.told(ToolEnded)
    assert len(ended) == 4, "four failures in a row do not end a run"
    assert all(not event.ok and event.refused is None for event in ended)
    assert outcome.text == "not there"


def test_a_system_permission_error_is_a_failure_and_no_refusal(workshop: Any, plan: Any, plays: Any) -> None:
    (workshop.cwd / "folder").mkdir()
    model = plays([("read", {"path": "folder"})], ["a folder"])

    workshop.run(NativeEngine(model), plan(tools=READ))

    (ended,) = workshop.told(ToolEnded)
    assert not ended.ok and ended.refused is None


def test_wrong_arguments_are_told_to_the_model_which_may_correct_them(workshop: Any, plan: Any, plays: Any) -> None:
    model = plays([("read", {"file": "x"})], [("list", {})], ["empty"])

    outcome = workshop.run(NativeEngine(model), plan(tools=READ))

    assert [event.ok for event in workshop.told(ToolEnded)] == [False, True]
    assert outcome.text == "empty"


def test_writing_and_editing_work_in_the_workspace(workshop: Any, plan: Any, plays: Any) -> None:
    model = plays(
        [("write", {"path": "new/a.txt", "content": "one\ntwo\n"})],
        [("edit", {"path": "new/a.txt", "old_text": "two", "new_text": "three"})],
        [("find", {"pattern": "**/*.txt"}), ("grep", {"pattern": "thr.e"})],
        ["done"],
    )

    workshop.run(NativeEngine(model), plan(tools=(*READ, "write", "edit")))

    assert (workshop.cwd / "new/a.txt").read_text() == "one\nthree\n"
    assert all(event.ok for event in workshop.told(ToolEnded))
    found = {event.preview for event in workshop.told(ToolEnded)[2:]}  # the two searches may end in either order
    assert found == {"new/a.txt", "new/a.txt:2:three"}


def test_a_structured_answer_is_validated_and_sent_back_with_dotted_paths(workshop: Any, plan: Any, plays: Any) -> None:
    model = plays([("answer", {"rows": [1, 99]})], [("answer", {"rows": [1, 9]})])

    outcome = workshop.run(NativeEngine(model), plan(output_schema=SCHEMA))

    assert outcome.has_value and outcome.value == {"rows": [1, 9]}
    assert json.loads(outcome.text) == outcome.value
    assert outcome.usage.requests == 2
    sent_back = [part for message in workshop.messages for part in message.parts if "rows.1" in str(part)]
    assert sent_back, "the model is told which place was wrong"


def test_answers_that_never_fit_name_the_faults_and_the_last_answer(workshop: Any, plan: Any, plays: Any) -> None:
    model = plays([("answer", {"rows": [99, 98]})])

    failure = workshop.fail(NativeEngine(model), plan(output_schema=SCHEMA, output_retries=1))

    assert failure.reason == "schema"
    assert "2 tries" in failure.message and "rows.0" in failure.message and '{"rows": [99, 98]}' in failure.message
    assert failure.usage is not None and failure.usage.requests == 2


def test_text_in_place_of_a_structured_answer_is_a_schema_failure(workshop: Any, plan: Any, plays: Any) -> None:
    failure = workshop.fail(NativeEngine(plays(["I'd rather talk"])), plan(output_schema=SCHEMA, output_retries=1))

    assert failure.reason == "schema" and "I'd rather talk" in failure.message


def test_pydantic_ais_own_test_model_gives_a_valid_value(workshop: Any, plan: Any) -> None:
    outcome = workshop.run(NativeEngine(TestModel(custom_output_args={"rows": []})), plan(output_schema=SCHEMA))

    assert outcome.value == {"rows": []}


@pytest.mark.parametrize("pieces", [[""], ["  \n"]])
def test_an_empty_answer_is_no_answer(workshop: Any, plan: Any, plays: Any, pieces: list[str]) -> None:
    failure = workshop.fail(NativeEngine(plays(pieces)), plan(output_retries=1))

    assert failure.reason == "no-answer"


def test_the_request_limit_ends_the_step_and_says_how_to_raise_it(workshop: Any, plan: Any, plays: Any) -> None:
    failure = workshop.fail(NativeEngine(plays([("list", {})])), plan(tools=READ, max_requests=3))

    assert failure.reason == "budget"
    assert "3 model requests" in failure.message and "max_requests" in failure.message
    assert failure.usage is not None and failure.usage.requests == 3


def test_the_history_is_private_whole_and_ends_with_the_answer(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.run(NativeEngine(plays([("list", {})], ["done"])), plan(tools=READ, system_prompt="Be brief."))

    file = workshop.step_dir / "session.json"
    messages = workshop.messages
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [type(message).__name__ for message in messages] == ["ModelRequest", "ModelResponse"] * 2
    assert messages[0].instructions == "Be brief."
    assert list(workshop.step_dir.iterdir()) == [file], "no temporary file stays"


def test_a_step_stopped_in_the_middle_of_an_answer_keeps_what_was_said(workshop: Any, plan: Any) -> None:
    async def endless(_messages: Any, _info: AgentInfo) -> AsyncIterator[str]:
        yield "half of "
        await asyncio.Event().wait()

    engine = NativeEngine(FunctionModel(stream_function=endless))
    workshop.stop_at(engine, plan(), lambda event: isinstance(event, TextStreamed))

    assert "half of " in (workshop.step_dir / "session.json").read_text()


def test_a_step_stopped_in_the_middle_of_a_command_keeps_its_call_and_ends_the_command(
    workshop: Any, plan: Any, plays: Any
) -> None:
    model = plays([("bash", {"command": "echo $$ > pid; sleep 300 & wait"})])
    started: Callable[[Any], bool] = lambda event: isinstance(event, ToolStarted)  # noqa: E731

    workshop.stop_at(NativeEngine(model), plan(tools=("bash",)), started)

    assert "sleep 300" in (workshop.step_dir / "session.json").read_text()


def test_an_error_of_ours_comes_through_and_the_history_is_saved(workshop: Any, plan: Any) -> None:
    async def broken(_messages: Any, _info: AgentInfo) -> AsyncIterator[str]:
        yield "a"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        workshop.run(NativeEngine(FunctionModel(stream_function=broken)), plan())
    assert workshop.messages


def test_a_history_that_cannot_be_saved_is_noticed_and_costs_no_answer(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.step_dir = workshop.step_dir / "gone"

    assert workshop.run(NativeEngine(plays(["fine"])), plan()).text == "fine"
    assert {event.code for event in workshop.told(Noticed)} == {"session-not-saved"}


def test_the_embedded_model_runs_without_tools_and_says_so_once(workshop: Any, plan: Any) -> None:
    seen: list[AgentInfo] = []

    async def stream(_messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        seen.append(info)
        yield "ok"

    outcome = workshop.run(NativeEngine(FunctionModel(stream_function=stream)), plan("local:smollm2", tools=READ))

    assert [event.code for event in workshop.told(Noticed)] == ["no-tools"]
    assert seen[0].function_tools == [] and seen[0].model_settings["max_tokens"] == 512
    assert outcome.usage.cost_usd == 0.0


def test_the_model_sees_our_names_of_the_tools_and_no_others(workshop: Any, plan: Any) -> None:
    seen: list[AgentInfo] = []

    async def stream(messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        seen.append(info)
        assert not any(isinstance(p, ToolReturnPart) for m in messages for p in m.parts if isinstance(m, ModelRequest))
        yield "ok"

    workshop.run(NativeEngine(FunctionModel(stream_function=stream)), plan(tools=("bash", "read")))

    assert [tool.name for tool in seen[0].function_tools] == ["read", "bash"]
    assert all(tool.description for tool in seen[0].function_tools)


def test_a_schema_that_is_none_is_refused_before_any_request(workshop: Any, plan: Any, plays: Any) -> None:
    failure = workshop.fail(NativeEngine(plays(["x"])), plan(output_schema={"type": "nothing"}))

    assert isinstance(failure, StepFailed) and failure.reason == "setup"
    assert workshop.told(ModelAsked) == []


def test_a_temperature_is_asked_for_only_if_the_plan_has_one(workshop: Any, plan: Any) -> None:
    seen: list[Any] = []

    async def stream(_messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        seen.append((info.model_settings or {}).get("temperature", "none"))
        yield "ok"

    for asked in (None, 0.0, 0.7):
        workshop.run(NativeEngine(FunctionModel(stream_function=stream)), plan(temperature=asked))

    assert seen == ["none", 0.0, 0.7]


def test_thinking_is_asked_for_only_where_the_model_has_it(workshop: Any, plan: Any) -> None:
    seen: list[Any] = []

    async def stream(_messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        seen.append(info.model_request_parameters.thinking)
        yield "ok"

    for profile, level in (({}, "high"), ({"supports_thinking": True}, "high"), ({"supports_thinking": True}, "off")):
        engine = NativeEngine(FunctionModel(stream_function=stream, profile=profile))
        workshop.run(engine, plan(thinking=level))

    assert seen == [None, "high", False]


def test_an_answer_without_end_is_not_read_to_its_end(workshop: Any, plan: Any, plays: Any) -> None:
    piece = "w" * 1_000_000

    failure = workshop.fail(NativeEngine(plays([piece] * 50)), plan())

    assert failure.reason == "output-limit" and "4,000,000 characters" in failure.message
    assert len(workshop.told(TextStreamed)) <= 5


@pytest.mark.parametrize("what", ["text", "thought", "call"])
def test_an_answer_without_end_may_come_in_one_piece(workshop: Any, plan: Any, what: str) -> None:
    much = "w" * 4_100_000

    async def stream(_messages: Any, _info: AgentInfo) -> AsyncIterator[Any]:
        match what:
            case "text":
                yield much
            case "thought":
                yield {0: DeltaThinkingPart(content=much)}
            case _:
                yield {0: DeltaToolCall(name="read", json_args=json.dumps({"path": much}), tool_call_id="c")}

    failure = workshop.fail(NativeEngine(FunctionModel(stream_function=stream)), plan(tools=READ))

    assert failure.reason == "output-limit" and "4,000,000 characters" in failure.message
    assert not workshop.told(TextStreamed) and not workshop.told(ToolStarted)


class Renamed(WrapperModel):
    """A model that is asked by another name than the one by which it answers."""

    @property
    def model_name(self) -> str:
        return "gpt-5-mini"


def test_an_answer_of_another_model_than_the_one_that_was_asked_is_none(workshop: Any, plan: Any, plays: Any) -> None:
    model = Renamed(plays([("read", {"path": "a.csv"})], ["three"], called="gpt-4o-mini"))
    failure = workshop.fail(NativeEngine(model), plan(tools=READ, verify_model=True))

    assert failure.reason == "other-model"
    assert failure.message.startswith(
        "the provider answered as gpt-4o-mini, not gpt-5-mini; if that is the same, add it to response_aliases"
    )
    assert failure.usage.requests == 1 and not workshop.told(ToolStarted)  # nothing that it wants is done
    assert workshop.told(ModelNamed) == [ModelNamed("gpt-4o-mini")]


@pytest.mark.parametrize(
    ("answered", "more", "noticed"),
    [
        ("gpt-5-mini-2026-01-01", {"verify_model": True}, []),
        ("house-blend", {"verify_model": True, "response_aliases": ("house-blend",)}, []),
        ("gpt-4o-mini", {}, ["openai:gpt-5-mini was asked; who answered calls itself gpt-4o-mini."]),
    ],
)
def test_a_snapshot_an_alias_and_any_name_of_a_foreign_server_are_taken(
    workshop: Any, plan: Any, plays: Any, answered: str, more: dict[str, Any], noticed: list[str]
) -> None:
    outcome = workshop.run(NativeEngine(Renamed(plays(["three"], called=answered))), plan(**more))

    assert (outcome.text, outcome.model) == ("three", answered)
    assert [event.text for event in workshop.told(Noticed)] == noticed


def test_how_full_the_context_is_is_told_where_the_window_is_known(workshop: Any, plan: Any, plays: Any) -> None:
    known = plays(["three"], called="gpt-5", profile={"context_window": 400_000})
    workshop.run(NativeEngine(known), plan())
    workshop.environ["OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1"  # a server of the person's own
    workshop.run(NativeEngine(known), plan())

    first, second = workshop.told(UsageChanged)
    assert (first.context_tokens, first.context_window) == (
        first.usage.input_tokens + first.usage.output_tokens,
        400_000,
    )
    assert second.context_tokens == first.context_tokens and second.context_window == 0


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        ("openai:gpt-5.6", {"prompt_cache": "12h", "fast": True}, {"cache": "12h", "service_tier": "priority"}),
        ("anthropic:claude-opus-5", {"prompt_cache": "on", "fast": True}, {"cache": True, "anthropic_speed": "fast"}),
        ("anthropic:claude-opus-5", {"prompt_cache": "off", "thinking": "off"}, {"cache": False, "thinking": False}),
        ("openai:gpt-5", {"thinking": "high"}, {"thinking": "high"}),
        ("openai:gpt-5", {}, {}),
    ],
)
def test_what_a_step_asks_of_its_model_are_settings_of_its_requests(
    plan: Any, plays: Any, model: str, asked: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert request_settings(plan(model, **asked), plays(["three"], profile={"supports_thinking": True})) == sent


def test_a_level_that_a_model_lacks_and_no_plan_could_know_of_is_noticed(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.run(NativeEngine(plays(["three"])), plan("groq:some-model", thinking="high"))
    assert [event.text for event in workshop.told(Noticed)] == [
        "Nothing says that groq:some-model thinks; high was left out."
    ]
