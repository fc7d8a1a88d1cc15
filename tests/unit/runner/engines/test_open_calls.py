"""Limits of tool calls, their end at the person's word, and questions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from subagents_nb.domain.runs.events import FileChanged, ToolEnded, ToolStarted
from subagents_nb.runner.engines.engine import FixedLimits
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.opencalls import CallCancelled, CallTimedOut, OpenCalls
from subagents_nb.runner.engines.step_limits import FILE_SECONDS, limit_of

SLEEP = "echo $$ > pid; sleep 300"


def is_alive(pid_file: Path) -> bool:
    stat = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def results(messages: Any) -> dict[str, ToolReturnPart]:
    return {p.tool_call_id: p for m in messages for p in m.parts if isinstance(p, ToolReturnPart)}


class Person:
    """Answers questions when the test lets it."""

    def __init__(self, *answers: str, wait_for: int = 0) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...], str]] = []
        self._wait_for = wait_for
        self._enough = asyncio.Event()

    async def __call__(self, text: str, choices: Any = (), *, call_id: str = "") -> str:
        self.asked.append((text, tuple(choices), call_id))
        answer = self.answers[len(self.asked) - 1]
        if len(self.asked) >= self._wait_for:
            self._enough.set()
        await self._enough.wait()
        return answer


# --- limits ---


@pytest.mark.parametrize(
    ("tool", "given", "limit"),
    [
        ("read", None, FILE_SECONDS),
        ("edit", None, FILE_SECONDS),
        ("bash", None, None),
        ("ask", None, None),
        ("read", 7.0, 7.0),
        ("bash", 7.0, 7.0),
        ("ask", 7.0, None),
    ],
)
def test_a_given_limit_wins_for_all_tools_but_a_question(tool: str, given: float | None, limit: float | None) -> None:
    assert limit_of(tool, given) == limit


def test_a_tool_that_passes_its_limit_ends_the_step_and_its_processes(workshop: Any, plan: Any, plays: Any) -> None:
    model = plays([("bash", {"command": SLEEP, "timeout_seconds": 200})])

    failure = workshop.fail(NativeEngine(model), plan(tools=("bash",), tool_timeout_s=0.3))

    assert failure.reason == "timeout"
    assert failure.message == "The tool bash passed its limit of 0.3 s and was ended. Raise it with --tool-timeout."
    (ended,) = workshop.told(ToolEnded)
    assert not ended.ok and ended.refused is None and ended.seconds >= 0.3
    assert not is_alive(workshop.cwd / "pid") and workshop.open_tools == {}
    assert failure.usage is not None and failure.usage.requests == 1
    assert "sleep 300" in (workshop.step_dir / "session.json").read_text()


def test_the_limit_in_force_at_the_call_counts(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.limits = FixedLimits(tool_timeout_s=0.1)

    def raise_it(event: Any) -> None:
        if isinstance(event, ToolStarted):
            workshop.limits.tool_timeout_s = 20.0

    workshop.on = raise_it

    assert (
        workshop.run(NativeEngine(plays([("bash", {"command": "sleep 0.3"})], ["done"])), plan(tools=("bash",))).text
        == "done"
    )


def test_a_commands_own_limit_is_a_failed_call_and_the_run_goes_on(workshop: Any, plan: Any, plays: Any) -> None:
    model = plays([("bash", {"command": "sleep 300", "timeout_seconds": 0.2})], ["too slow"])

    assert workshop.run(NativeEngine(model), plan(tools=("bash",), tool_timeout_s=20)).text == "too slow"
    assert "its time limit" in workshop.told(ToolEnded)[0].preview


def test_a_call_that_has_ended_neither_fires_later_nor_disarms_another() -> None:
    async def main() -> None:
        register: dict[str, Any] = {}
        calls = OpenCalls(register)

        async def work(call_id: str, seconds: float, limit: float) -> str:
            async with calls.at_work(call_id, limit):
                await asyncio.sleep(seconds)
            return call_id

        quick = asyncio.ensure_future(work("quick", 0, 0.05))
        slow = asyncio.ensure_future(work("slow", 60, 0.1))
        assert await quick == "quick"
        assert list(register) == ["slow"]
        with pytest.raises(CallTimedOut):
            await slow
        assert register == {} and not asyncio.all_tasks() - {asyncio.current_task()}

    asyncio.run(main())


def test_a_timeout_of_the_works_own_is_not_taken_for_the_limit() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError, match="the disk"):
            async with OpenCalls({}).at_work("a", 5):
                raise TimeoutError("the disk")

    asyncio.run(main())


# --- cancelling one call ---


def test_a_cancelled_call_ends_alone_and_the_model_is_told(workshop: Any, plan: Any, plays: Any) -> None:
    seen: dict[str, Any] = {}
    model = plays([("bash", {"command": SLEEP})], lambda messages: seen.update(results(messages)) or ["all right"])

    async def main() -> Any:
        running = asyncio.ensure_future(NativeEngine(model).run(plan(tools=("bash",)), workshop.context()))
        async with asyncio.timeout(20):
            while not (workshop.cwd / "pid").exists() or not (workshop.cwd / "pid").read_text():
                await asyncio.sleep(0.01)
            cancel = workshop.open_tools["c1-0"]
            cancel()
            cancel()  # an impatient person
            outcome = await running
            cancel()  # and a late one
            return outcome

    outcome = asyncio.run(main())

    assert outcome.text == "all right"
    assert seen["c1-0"].outcome == "failed" and seen["c1-0"].content == "The person cancelled this call."
    (ended,) = workshop.told(ToolEnded)
    assert not ended.ok and ended.refused is None and ended.preview == "The person cancelled this call."
    assert not is_alive(workshop.cwd / "pid") and workshop.open_tools == {}


def test_a_call_that_waits_for_its_turn_can_be_cancelled_too(workshop: Any, plan: Any, plays: Any) -> None:
    model = plays(
        [("bash", {"command": "until [ -e go ]; do sleep 0.01; done"}), ("write", {"path": "b", "content": "x"})],
        ["done"],
    )

    def cancel_the_write(event: Any) -> None:
        if isinstance(event, ToolStarted) and event.name == "write":
            workshop.open_tools["c1-1"]()
            (workshop.cwd / "go").touch()

    workshop.on = cancel_the_write

    assert workshop.run(NativeEngine(model), plan(tools=("bash", "write"))).text == "done"
    assert [event.ok for event in workshop.told(ToolEnded)] == [True, False]
    assert not (workshop.cwd / "b").exists()


def test_stopping_the_run_is_not_taken_for_a_cancelled_call() -> None:
    async def main() -> None:
        async def work() -> None:
            async with OpenCalls({}).at_work("a", 60):
                await asyncio.sleep(60)

        task = asyncio.ensure_future(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        calls = OpenCalls({})
        calls.announce("b").cancel()
        with pytest.raises(CallCancelled):
            async with calls.at_work("b", 60):
                raise AssertionError("it must not begin")

    asyncio.run(main())


# --- questions ---


def test_two_questions_of_one_turn_are_open_together_and_their_answers_are_results(
    workshop: Any, plan: Any, plays: Any
) -> None:
    workshop.more["ask"] = person = Person("blue", "<b>2</b>", wait_for=2)
    seen: dict[str, Any] = {}
    model = plays(
        [("ask", {"question": "Which colour?", "choices": ["red", "blue"]}), ("ask", {"question": "How many?"})],
        lambda messages: seen.update(results(messages)) or ["thanks"],
    )

    workshop.run(NativeEngine(model), plan(tools=("ask",), tool_timeout_s=0.001))

    assert sorted(person.asked) == [("How many?", (), "c1-1"), ("Which colour?", ("red", "blue"), "c1-0")]
    assert {key: part.content for key, part in seen.items()} == {"c1-0": "blue", "c1-1": "<b>2</b>"}
    assert [(e.name, e.args) for e in workshop.told(ToolStarted)] == [("ask", "Which colour?"), ("ask", "How many?")]
    assert all(event.ok for event in workshop.told(ToolEnded))


def test_a_question_can_be_cancelled_like_any_call(workshop: Any, plan: Any, plays: Any) -> None:
    workshop.more["ask"] = Person("never", wait_for=9)
    workshop.on = lambda event: (
        asyncio.get_running_loop().call_later(0.01, workshop.open_tools["c1-0"])
        if isinstance(event, ToolStarted)
        else None
    )

    outcome = workshop.run(NativeEngine(plays([("ask", {"question": "?"})], ["I decide"])), plan(tools=("ask",)))

    assert outcome.text == "I decide" and not workshop.told(ToolEnded)[0].ok


@pytest.mark.parametrize(("tools", "ask", "offered"), [
    (("read", "ask"), Person("x"), ["read", "ask"]),
    (("read", "ask"), None, ["read"]),
    (("read",), Person("x"), ["read"]),
])  # fmt: skip
def test_the_model_may_ask_only_when_the_plan_says_so_and_somebody_is_there(
    workshop: Any, plan: Any, tools: Any, ask: Any, offered: list[str]
) -> None:
    seen: list[Any] = []

    async def stream(_messages: Any, info: AgentInfo) -> Any:
        seen.append([tool.name for tool in info.function_tools])
        yield "ok"

    workshop.more["ask"] = ask
    workshop.run(NativeEngine(FunctionModel(stream_function=stream)), plan(tools=tools))

    assert seen == [offered]


# --- changed files ---


def test_written_files_are_told_by_their_place_in_the_workspace(workshop: Any, plan: Any, plays: Any) -> None:
    (workshop.cwd / "real").mkdir()
    (workshop.cwd / "link").symlink_to("real")
    model = plays(
        [
            ("write", {"path": "./new/../new/a.txt", "content": "one"}),
            ("write", {"path": "link/b.txt", "content": "x"}),
        ],
        [("edit", {"path": str(workshop.cwd / "new/a.txt"), "old_text": "one", "new_text": "two"})],
        [("edit", {"path": "new/a.txt", "old_text": "absent", "new_text": "x"}), ("read", {"path": "new/a.txt"})],
        [("write", {"path": ".env", "content": "x"})],
        ["done"],
    )

    workshop.run(NativeEngine(model), plan(tools=("read", "write", "edit")))

    assert [event.path for event in workshop.told(FileChanged)] == ["new/a.txt", "real/b.txt", "new/a.txt"]
