"""The gate on shell lines and paths: what no rule allows is asked about or denied, and everyday work is not."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from shell_lines import ALLOW, ATTACKS, EVERYDAY, lines

from subagents_nb.domain.policy.decision import Decision, decide
from subagents_nb.domain.policy.permissions import PermissionAnswer, PermissionRequest, question_of, read_answer
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.runner.engines.gate import CallGate, NotAllowed
from subagents_nb.runner.engines.tools.judged_calls import CallRoots, judged_call
from subagents_nb.runner.engines.tools.shell_parser import parse_line

TOOLS = frozenset(("read", "list", "find", "grep", "write", "edit", "bash", "python"))
SHELL = Policy.of(Ceiling(origin="worker.md", allow=ALLOW))


def on_line(line: str, policy: Policy = SHELL) -> Decision:
    return decide(policy, judged_call("bash", {"command": line}, TOOLS, CallRoots(Path("/w"))))


def test_two_hundred_ways_to_run_what_no_rule_allows_run_nothing() -> None:
    attacks = lines(ATTACKS)
    assert len(attacks) >= 200 and [line for line in attacks if on_line(line).verdict == "allow"] == []


def test_sixty_everyday_lines_are_not_asked_about() -> None:
    everyday = lines(EVERYDAY)
    assert len(everyday) >= 60 and [line for line in everyday if on_line(line).verdict != "allow"] == []


def test_a_decision_takes_less_than_a_millisecond() -> None:
    took = []
    for line in [*lines(EVERYDAY), *lines(ATTACKS)] * 3:
        began = time.thread_time()  # of this thread alone: others work on this machine
        on_line(line)
        took.append(time.thread_time() - began)
    assert sorted(took)[int(0.99 * len(took))] < 0.001


@pytest.mark.parametrize(
    ("line", "why"),
    {
        "rm -rf build": "no rule (worker.md) allows `rm -rf build`",
        "ls; rm x": "no rule (worker.md) allows `rm x`",
        "echo $(rm x)": "a command in a command is not proved to be what a rule (worker.md) allows",
        "ls > a.py": "a redirection is not proved to be what a rule (worker.md) allows",
        "cd x && git log": "it changes the folder before it calls git, whose configuration there may run anything",
    }.items(),
)
def test_the_reason_names_what_is_not_allowed(line: str, why: str) -> None:
    assert on_line(line).reason == why


def test_a_rule_that_denies_a_command_leaves_the_rest_asked_about() -> None:
    policy = Policy.of(Ceiling(deny=("bash(git push:*)",)))
    verdicts = {
        line: on_line(line, policy).verdict for line in ("git push -f", "/usr/bin/GIT push", "env git push", "ls")
    }
    assert verdicts == {"git push -f": "deny", "/usr/bin/GIT push": "deny", "env git push": "ask", "ls": "ask"}


def test_what_a_wrapper_runs_is_judged_as_if_it_stood_alone() -> None:
    policy = Policy.of(
        Ceiling(allow=("bash(timeout 60 find:*)", "bash(xargs sort:*)", "bash(xargs rm:*)", "bash(nice:*)"))
    )
    verdicts = {
        "timeout 60 find . -name x": "allow", "timeout 60 find . -delete": "ask", "timeout 60 find *": "ask",
        "xargs sort": "ask", "xargs rm -f": "allow", "nice ls": "ask", "timeout 60 rm x": "ask",
    }  # fmt: skip
    assert {line: on_line(line, policy).verdict for line in verdicts} == verdicts


@pytest.mark.parametrize(
    ("rule", "passes", "beyond"),
    [
        ("git grep:*", "git grep -in x", "git grep -iOid x"),
        ("git clone:*", "git clone a b", "git clone -u id file:///a b"),
        ("git archive:*", "git archive HEAD", "git archive -o x HEAD"),
        ("shuf:*", "shuf -n 3 a", "shuf -no x a"),
        ("iconv:*", "iconv -f latin1 a", "iconv -f latin1 -o x a"),
        ("diff3:*", "diff3 a b c", "diff3 --diff-prog=./id a b c"),
        ("sdiff:*", "sdiff a b", "sdiff -o x a b"),
        ("less:*", "less a", "less '+!id' a"),
        ("bat:*", "bat -n a", "bat --pager=id a"),
        ("ack:*", "ack -i x", "ack --output=x y"),
        ("objdump:*", "objdump -d a", "objdump --plugin=./x.so a"),
        ("xmllint:*", "xmllint --noout a", "xmllint --output x a"),
    ],
)
def test_a_reader_is_no_reader_with_an_option_by_which_it_runs_or_writes(rule: str, passes: str, beyond: str) -> None:
    policy = Policy.of(Ceiling(allow=(f"bash({rule})",)))
    assert (on_line(passes, policy).verdict, on_line(beyond, policy).verdict) == ("allow", "ask")


def test_without_rules_on_the_shell_nothing_is_taken_apart_for_nothing() -> None:
    assert on_line("rm -rf / ; $(x)", Policy.of(Ceiling(deny=("python",)))).verdict == "allow"
    assert on_line("ls", Policy.of(Ceiling(tools=("read",)))).verdict == "deny"


def test_what_is_granted_for_the_run_is_these_commands_and_no_others() -> None:
    found = on_line("rm x && cd y && rm z")
    assert found.verdict == "ask" and on_line("cd q; rm z").verdict == "ask"
    policy, places = SHELL, CallRoots(Path("/w"))
    for line, verdict in {"cd q; rm z": "allow", "rm x": "allow", "rm y": "ask", "rm x z": "ask"}.items():
        call = judged_call("bash", {"command": line}, TOOLS, places)
        assert decide(policy, call, found.grants).verdict == verdict, line


@pytest.mark.parametrize(
    ("policy", "line", "after"),
    [
        # Who says yes to `ls` where all of bash is asked about has not allowed the shell.
        (
            Ceiling(ask=("bash",)),
            "ls",
            {"ls": "allow", "ls -l": "ask", "rm x": "ask", "ls; rm x": "ask", "$(x)": "ask"},
        ),
        (Ceiling(ask=("bash",)), "ls; rm x", {"rm x && ls": "allow", "rm y": "ask", "ls > a": "ask"}),
        (Ceiling(ask=("*",)), "ls > a", {"ls > a": "allow", "ls > b": "ask", "ls": "ask"}),
        # Nor is a line allowed by its commands that is more than they are.
        (Ceiling(allow=("bash(git log:*)",)), "cd x", {"cd x": "allow", "cd x && git log": "ask"}),
        (Ceiling(allow=("bash(git log:*)",)), "cd x; git log", {"cd x; git log": "allow", "cd x; git log -1": "ask"}),
        (Ceiling(ask=("bash",)), "cd x; git log", {"cd x; git log": "allow", "git log; cd x; git log": "ask"}),
    ],
)
def test_a_yes_for_the_run_is_about_what_was_shown(policy: Ceiling, line: str, after: dict[str, str]) -> None:
    found = on_line(line, Policy.of(policy))
    calls = {one: judged_call("bash", {"command": one}, TOOLS, CallRoots(Path("/w"))) for one in after}
    assert {one: decide(Policy.of(policy), call, found.grants).verdict for one, call in calls.items()} == after


def test_quotes_are_taken_off_and_wildcards_are_known() -> None:
    (command,) = parse_line("grep -n 'a b' \"c d\" x'y'z *.py").commands
    assert command.words == ("grep", "-n", "a b", "c d", "xyz", "*.py") and command.expands == {5}


# --- paths ---


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "w"
    for folder in ("src", "secrets", "docs"):
        (root / folder).mkdir(parents=True)
        (root / folder / "a.py").write_text("x")
    (root / "src/out").symlink_to(root / "secrets")
    (root / "src/passwd").symlink_to("/etc/passwd")
    (root / "docs/in").symlink_to(root / "src")
    return root


FILES = Policy.of(Ceiling(origin="me", allow=("read(src/**)", "write(src/**)"), deny=("read(secrets/**)",)))


@pytest.mark.parametrize(
    ("tool", "path", "verdict"),
    [
        ("read", "src/a.py", "allow"),
        ("read", "./src//a.py", "allow"),
        ("read", "docs/in/a.py", "allow"),  # where it really is
        ("read", "docs/a.py", "ask"),
        ("read", "src/../docs/a.py", "ask"),
        ("read", "src/out/a.py", "deny"),
        ("read", "src/out/../a.py", "ask"),  # the folder above what the link leads to
        ("read", "src/passwd", "ask"),
        ("read", "/etc/passwd", "ask"),
        ("read", "../w/src/a.py", "allow"),
        ("read", "SECRETS/a.py", "deny"),
        ("write", "src/new/deep.py", "allow"),
        ("write", "src/out/new.py", "ask"),
        ("edit", "docs/a.py", "ask"),
        ("grep", "src", "allow"),
        ("grep", ".", "ask"),
        ("list", "secrets", "deny"),
    ],
)
def test_paths_are_judged_where_they_really_are(workspace: Path, tool: str, path: str, verdict: str) -> None:
    call = judged_call(tool, {"path": path, "pattern": "*"}, TOOLS, CallRoots(workspace))
    assert decide(FILES, call).verdict == verdict


def test_a_pattern_that_climbs_is_judged_by_all_that_it_sees(workspace: Path) -> None:
    call = judged_call("find", {"path": "src", "pattern": "../docs/*"}, TOOLS, CallRoots(workspace))
    assert decide(FILES, call).verdict == "ask"


def test_what_the_plan_gave_to_the_step_needs_no_rule(workspace: Path, tmp_path: Path) -> None:
    inputs, own = tmp_path / "inputs", tmp_path / "files"
    for folder in (inputs, own):
        folder.mkdir()
    places = CallRoots(workspace, own=own, given=(("inputs-7", inputs),))
    for tool, path in (("read", "inputs-7/a.csv"), ("write", str(own / "0/out.md")), ("grep", "inputs-7")):
        assert decide(FILES, judged_call(tool, {"path": path}, TOOLS, places)).verdict == "allow"
    (inputs / "link").symlink_to("/etc")
    assert decide(FILES, judged_call("read", {"path": "inputs-7/link/passwd"}, TOOLS, places)).verdict == "ask"


# --- the gate ---


def gate(workspace: Path, policy: Policy, *answers: str) -> tuple[CallGate, list[PermissionRequest]]:
    asked: list[PermissionRequest] = []
    left = list(answers)

    async def permit(question: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        asked.append(question)
        return read_answer(left.pop(0))

    def judge(name: str, args: Any) -> Any:
        return judged_call(name, args, TOOLS, CallRoots(workspace))

    return CallGate(policy, judge, permit if answers else None), asked


def passed(gate: CallGate, name: str, **args: Any) -> Any:
    try:
        return asyncio.run(gate.passed(name, args, call_id="c1"))
    except NotAllowed as error:
        return error.why


def test_the_five_answers(workspace: Path) -> None:
    made, asked = gate(workspace, SHELL, "once", "no, not on a Friday", 'with {"command": "ls"}', "for this run", "hm")
    assert passed(made, "bash", command="rm x") == {"command": "rm x"}
    assert passed(made, "bash", command="rm x") == "the person said no: not on a Friday"
    assert passed(made, "bash", command="rm x", timeout_seconds=3) == {"command": "ls", "timeout_seconds": 3}
    assert passed(made, "bash", command="rm x") == passed(made, "bash", command="rm x") == {"command": "rm x"}
    assert passed(made, "bash", command="rm y") == "the person said no: hm" and len(asked) == 5
    assert asked[0].reason == "no rule (worker.md) allows `rm x`" and asked[0].for_run == ("rm x",)
    assert question_of(asked[0]).startswith("May it run this?\n$ rm x\nAsked because no rule")


def test_a_path_is_shown_where_it_really_goes(workspace: Path) -> None:
    made, asked = gate(workspace, FILES, "run", "no", "no")
    assert passed(made, "write", path="docs/in/../a.py", content="x")["path"] == "docs/in/../a.py"
    passed(made, "write", path="src/passwd", content="x")
    passed(made, "write", path="docs/./b.py", content="x")
    paths = [[part.text for part in one.parts if part.kind == "path"] for one in asked]
    assert paths == [["docs/in/../a.py", "a.py"], ["src/passwd", "/etc/passwd"], ["docs/./b.py"]]
    assert [one.for_run for one in asked] == [("write a.py",), ("write /etc/passwd",), ("write docs/b.py",)]


def test_where_nobody_can_be_asked_the_reason_says_so(workspace: Path) -> None:
    made, _ = gate(workspace, SHELL)
    assert passed(made, "bash", command="rm x") == ("no rule (worker.md) allows `rm x`, and nobody can be asked here.")
    assert passed(made, "read", path="src/a.py") == {"path": "src/a.py"}


def test_other_arguments_are_no_way_around_a_denial(workspace: Path) -> None:
    made, _ = gate(workspace, FILES, 'with {"path": "secrets/a.py"}')
    said = "the person changed its arguments, and rule 'read(secrets/**)' (me) denies it."
    assert passed(made, "read", path="docs/a.py") == said


def test_a_yes_for_the_run_is_about_this_file_or_this_tool(workspace: Path) -> None:
    policy = Policy.of(Ceiling(allow=("write(src/**)",), ask=("python",)))
    made, asked = gate(workspace, policy, "run", "no", "run")
    assert passed(made, "write", path="docs/a.py", content="x") == passed(made, "write", path="docs/a.py", content="x")
    assert passed(made, "write", path="docs/b.py", content="x") == "the person said no."
    assert passed(made, "python", code="1") == {"code": "1"} and passed(made, "python", code="2") == {"code": "2"}
    assert len(asked) == 3 and asked[0].for_run == ("write docs/a.py",)
