"""Every tool call of the native engine passes the gate, whoever the tool is from; what it denies is told."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import Capability
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from subagents_nb.domain.policy.permissions import PermissionAnswer, PermissionRequest
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.runs.events import ToolEnded
from subagents_nb.runner.engines.meter import ToolMeter
from subagents_nb.runner.engines.native.gating import gating_of
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.opencalls import OpenCalls
from subagents_nb.runner.engines.scripted.scripted import ScriptedEngine
from subagents_nb.runner.engines.tools.calls import ToolNotes
from subagents_nb.runner.engines.tools.tools import ToolContext

TOOLS = ("read", "list", "find", "grep", "write", "edit", "bash", "python")
POLICY = Policy.of(
    Ceiling(origin="me", allow=("bash(ls:*)", "write(src/**)"), ask=("edit",), deny=("python", "read(secrets/**)"))
)


def told(workshop: Any) -> list[Any]:
    messages = json.loads((workshop.step_dir / "session.json").read_bytes())
    parts = [part for message in messages for part in message["parts"]]
    return [part["content"] for part in parts if part["part_kind"] == "tool-return"]


def test_a_model_is_told_what_is_not_allowed_and_the_work_goes_on(workshop: Any, plan: Any, plays: Any) -> None:
    (workshop.cwd / "secrets").mkdir()
    (workshop.cwd / "secrets/key").write_text("the needle")
    (workshop.cwd / "a.txt").write_text("no needle here")
    calls = [
        ("bash", {"command": "ls && rm a.txt"}),
        ("bash", {"command": "ls"}),
        ("python", {"code": "1"}),
        ("write", {"path": "b.txt", "content": "x"}),
        ("write", {"path": "src/b.txt", "content": "x"}),
        ("grep", {"pattern": "needle"}),
        ("find", {"pattern": "**/*"}),
    ]
    outcome = workshop.run(NativeEngine(plays(*[[call] for call in calls], ["done"])), plan(tools=TOOLS, policy=POLICY))

    ends = [event.refused for event in workshop.told(ToolEnded)]
    assert outcome.text == "done" and [end is None for end in ends] == [False, True, False, False, True, True, True]
    assert ends[0] == "no rule (me) allows `rm a.txt`, and nobody can be asked here."
    assert ends[2] == "me denies python."
    assert (workshop.cwd / "a.txt").exists() and not (workshop.cwd / "b.txt").exists()
    assert (workshop.cwd / "src/b.txt").exists()
    *_, searched, found = told(workshop)
    assert "a.txt" in searched and "secrets" not in searched, "what is denied is in no search"
    assert "a.txt" in found and "key" not in found


def test_the_call_is_made_with_the_arguments_that_the_person_gave(workshop: Any, plan: Any, plays: Any) -> None:
    asked: list[PermissionRequest] = []

    async def permit(question: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        asked.append(question)
        if len(asked) == 2:
            return PermissionAnswer(decision="edit", args={"new_text": 7})
        return PermissionAnswer(decision="edit", args={"new_text": "three"})

    (workshop.cwd / "a.txt").write_text("one two")
    permit.granted = set()  # type: ignore[attr-defined]
    workshop.more["permit"] = permit
    call = [("edit", {"path": "a.txt", "old_text": "two", "new_text": "four"})]
    workshop.run(NativeEngine(plays(call, call, ["done"])), plan(tools=TOOLS, policy=POLICY))

    assert (workshop.cwd / "a.txt").read_text() == "one three"
    first, second = told(workshop)
    assert first.startswith("[The person changed the arguments of this call.]")
    assert second.startswith("Not allowed: the person changed its arguments, and they don't fit: 7 is not of type")
    assert [part.kind for part in asked[0].parts] == ["path", "removed", "added"]


@pytest.mark.parametrize("kind", [{"$ref": "http://127.0.0.1:{port}/?leak"}, {"$ref": "#/none"}, {"pattern": "("}])
def test_what_a_server_says_of_arguments_is_looked_up_nowhere(workshop: Any, plan: Any, kind: dict[str, str]) -> None:
    """The server may work in a sandbox without network: the runner fetches nothing in its stead."""
    made: list[dict[str, Any]] = []

    async def permit(_question: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        return PermissionAnswer(decision="edit", args={"a": "two"})

    async def handler(args: dict[str, Any]) -> str:
        made.append(args)
        return "ok"

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        own = {name: text.replace("{port}", str(listener.getsockname()[1])) for name, text in kind.items()}
        schema = {"type": "object", "properties": {"a": own}}
        policy = Policy.of(Ceiling(origin="me", ask=("mcp:x",)))
        permit.granted = set()  # type: ignore[attr-defined]
        workshop.more["permit"] = permit
        context, notes = workshop.context(), ToolNotes(OpenCalls({}), ToolMeter(None, print))
        gate = gating_of(plan(policy=policy), context, (), notes)[0]
        definition = ToolDefinition(name="mcp__x__y", parameters_json_schema=schema)

        told = asyncio.run(
            gate.wrap_tool_execute(
                None,
                call=ToolCallPart("mcp__x__y", {}),
                tool_def=definition,
                args={"a": "one"},
                handler=handler,  # type: ignore[arg-type]
            )
        )
        assert made == [{"a": "two"}] and told.endswith("ok")
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_call_that_waits_for_the_person_can_be_cancelled(workshop: Any, plan: Any, plays: Any) -> None:
    async def permit(question: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        workshop.open_tools[call_id]()
        await asyncio.Event().wait()
        raise AssertionError

    permit.granted = set()  # type: ignore[attr-defined]
    workshop.more["permit"] = permit
    call = [("bash", {"command": "rm x"})]
    outcome = workshop.run(NativeEngine(plays(call, ["done"])), plan(tools=TOOLS, policy=POLICY))
    assert outcome.text == "done" and "cancelled" in told(workshop)[0].lower()


def test_tools_of_any_capability_or_server_pass_it_too(workshop: Any, plan: Any) -> None:
    made: list[str] = []

    def read(path: str) -> str:
        made.append(path)
        return "read"

    def mcp__files__write_text(path: str) -> str:
        made.append(path)
        return "written"

    def say(messages: list[Any], _info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        return ModelResponse(
            [ToolCallPart("read", {"path": "src/a"}), ToolCallPart("mcp__files__write_text", {"path": "b"})]
        )

    policy = Policy.of(Ceiling(origin="me", allow=("read(src/**)",), deny=("mcp:files/write_text",)))
    context, notes = workshop.context(), ToolNotes(OpenCalls({}), ToolMeter(None, print))
    step = plan(tools=("grep",), policy=policy)
    result = asyncio.run(
        Agent(FunctionModel(say), deps_type=ToolContext).run(
            "-",
            deps=ToolContext.at(context, policy),
            toolsets=[FunctionToolset([read, mcp__files__write_text])],
            capabilities=gating_of(step, context, ("grep",), notes),
        )
    )
    answers = [part.content for message in result.all_messages() if isinstance(message, ModelRequest)
               for part in message.parts if part.part_kind == "tool-return"]  # fmt: skip
    assert made == [] and len(answers) == 2
    assert "is a tool of somebody else" in answers[0] and "denies mcp:files/write_text" in answers[1]


def test_skills_are_loaded_through_it(workshop: Any, plan: Any) -> None:
    def say(messages: list[Any], _info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("load_capability", {"id": name}) for name in ("pdf", "deploy")])

    policy = Policy.of(Ceiling(origin="me", deny=("skill(deploy)",)))
    notes = ToolNotes(OpenCalls({}), ToolMeter(None, print))
    skills = [
        Capability[ToolContext](id=name, description=name, instructions=f"text of {name}", defer_loading=True)
        for name in ("pdf", "deploy")
    ]
    result = asyncio.run(
        Agent(FunctionModel(say), deps_type=ToolContext).run(
            "-",
            deps=ToolContext.at(workshop.context(), policy),
            capabilities=[*gating_of(plan(policy=policy), workshop.context(), (), notes), *skills],
        )
    )
    told = str([message.parts for message in result.all_messages()])
    assert "text of pdf" in told and "text of deploy" not in told
    assert list(notes.refused.values()) == ["rule 'skill(deploy)' (me) denies it."]


def test_a_typed_answer_is_no_call_of_a_tool(workshop: Any, plan: Any, plays: Any) -> None:
    schema = {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
    policy = Policy.of(Ceiling(tools=("read",), ask=("*",)))
    model = plays([("answer", {"rows": 3})])
    outcome = workshop.run(NativeEngine(model), plan(tools=("read",), policy=policy, output_schema=schema))
    assert outcome.value == {"rows": 3}


def test_a_plan_without_a_policy_has_no_gate(workshop: Any, plan: Any) -> None:
    notes = ToolNotes(OpenCalls({}), ToolMeter(None, print))
    assert gating_of(plan(), workshop.context(), TOOLS, notes) == []
    assert gating_of(plan(policy=Policy.of(Ceiling(max_depth=1))), workshop.context(), TOOLS, notes) == []


def test_a_script_can_make_a_call_in_earnest(workshop: Any, plan: Any) -> None:
    script = [
        {"call": "write", "args": {"path": "src/a.txt", "content": "x"}},
        {"call": "write", "args": {"path": "b.txt", "content": "x"}, "say": True},
        {"call": "bash", "args": {"command": "ls src"}, "say": True},
        {"call": "python", "args": {"code": "1"}},
    ]
    place = workshop.cwd / ".subagents/scripts/gated.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(script))
    step = plan(tools=TOOLS, policy=POLICY, model="scripted:gated")
    outcome = workshop.run(ScriptedEngine(), step)

    assert "Not allowed: no rule (me) allows it, and nobody can be asked here." in outcome.text
    assert "a.txt" in outcome.text and (workshop.cwd / "src/a.txt").read_text() == "x"
    assert not (workshop.cwd / "b.txt").exists()
    assert [event.ok for event in workshop.told(ToolEnded)] == [True, False, True, False]
    assert [event.refused is None for event in workshop.told(ToolEnded)] == [True, False, True, False]


class Desk:
    """What a script uses in earnest, and what was done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def run(self, code: str, *, seconds: float) -> Any:
        del seconds
        self.done.append(f"python {code}")
        return type("End", (), {"ok": True, "text": f"ran {code}"})()

    async def delegate(self, agent: str, task: str) -> str:
        self.done.append(f"delegate {agent} {task}")
        return "found"

    async def ask(self, text: str, _choices: Any = (), *, call_id: str = "") -> str:
        self.done.append(f"ask {text} {bool(call_id)}")
        return "yes"


EARNEST = [
    {"python": "1 + 1", "say": True},
    {"delegate": [{"agent": "scout", "task": "look"}, {"agent": "worker", "task": "mend"}], "say": True},
    {"ask": "May I?"},
]


def played(workshop: Any, plan: Any, policy: Policy, script: Any = EARNEST, **fields: Any) -> tuple[Desk, Any]:
    desk = Desk()
    workshop.more |= {"python": desk, "delegate": desk.delegate, "ask": desk.ask}
    place = workshop.cwd / ".subagents/scripts/earnest.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps([*script, {"text": "done"}]))
    tools = ("python", "delegate", "ask")
    step = plan(tools=tools, policy=policy, model="scripted:earnest", delegates=("scout", "worker"), **fields)
    return desk, workshop.run(ScriptedEngine(), step)


def test_what_a_script_does_in_earnest_passes_the_gate_too(workshop: Any, plan: Any) -> None:
    rules = {"deny": ("python", "delegate(worker)"), "ask": ("ask",)}
    desk, outcome = played(workshop, plan, Policy.of(Ceiling(origin="me", **rules)))
    assert desk.done == ["delegate scout look"] and outcome.text.endswith("done")
    ends = {event.refused for event in workshop.told(ToolEnded)}
    assert ends == {
        "me denies python.", None, "rule 'delegate(worker)' (me) denies it.",
        "rule 'ask' (me) says to ask, and nobody can be asked here.",
    }  # fmt: skip
    assert "Not allowed: me denies python." in str(workshop.messages), "its history says so as a model's does"


@pytest.mark.parametrize(
    ("given", "done"),
    [
        (PermissionAnswer(decision="once"), ["python 1 + 1"]),
        (PermissionAnswer(decision="edit", args={"code": "2"}), ["python 2"]),
        (PermissionAnswer(decision="edit", args={"code": 2}), []),
        (PermissionAnswer(decision="edit", args={"path": "x"}), []),
        (PermissionAnswer(decision="no"), []),
    ],
)
def test_the_person_is_asked_for_a_scripts_code_as_for_a_models(
    workshop: Any, plan: Any, given: PermissionAnswer, done: list[str]
) -> None:
    async def permit(question: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        assert call_id and [(part.kind, part.text) for part in question.parts] == [("code", "1 + 1")]
        return given

    permit.granted = set()  # type: ignore[attr-defined]
    workshop.more["permit"] = permit
    desk, _ = played(workshop, plan, Policy.of(Ceiling(origin="me", ask=("python",))), EARNEST[:1])
    assert desk.done == done


def test_the_twin_that_reads_files_reads_none_that_are_denied(workshop: Any, plan: Any) -> None:
    (workshop.cwd / "a.txt").write_text("the needle")
    (workshop.cwd / "b.txt").write_text("one line")
    policy = Policy.of(Ceiling(origin="me", deny=("read(a.txt)",)))
    outcome = workshop.run(ScriptedEngine(), plan(tools=("read", "list"), policy=policy, model="scripted:tools"))
    assert outcome.text == "The workspace has 1 entries. b.txt has 1 lines."
    assert "needle" not in str(workshop.messages) and "a.txt" not in str(workshop.messages)
    closed = plan(tools=("read",), policy=Policy.of(Ceiling(origin="me", tools=("read",))), model="scripted:tools")
    assert workshop.run(ScriptedEngine(), closed).text == "I was not allowed to look around."


def test_nothing_of_it_is_loaded_where_a_plan_does_not_need_it() -> None:
    import subprocess

    code = (
        "import sys; from subagents_nb.runner.engines.native import native; from subagents_nb.runner import main; "
        "print([name for name in sys.modules if name.startswith('tree_sitter') or name.endswith('.judged_calls')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]", Path(__file__)
