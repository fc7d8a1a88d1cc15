"""Who judges a call and who carries it out read its words alike, in every spelling; between them nothing moves."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelRetry

from subagents_nb.domain.policy.decision import decide
from subagents_nb.domain.policy.permissions import PermissionAnswer, PermissionRequest
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.policy_rules import parse_rule
from subagents_nb.domain.policy.tool_names import tool_in_rule
from subagents_nb.domain.runs.events import ToolEnded
from subagents_nb.runner.engines.native.native import NativeEngine
from subagents_nb.runner.engines.tools.file_tools import Files
from subagents_nb.runner.engines.tools.judged_calls import CallRoots, judged_call

FILES = ("read", "list", "find", "grep", "write", "edit")
NAME = "sécret"  # composed; a disk may keep it decomposed
SPELLINGS = (
    "{0}/key", "./{0}/key", "{0}//key", "{0}/./key", "src/../{0}/key", "src/../../work/{0}/key", "{0}/key/", " {0}/key",
    "{0}/key ", "{0}/key.", "{0}./key", "{root}/{0}/key", "{root}/src/../{0}/key", "link/key", "src/up/{0}/key", "file",
    "{upper}/key", "{0}/KEY", "{nfd}/key", "{0}\\key", "~/work/{0}/key", "$HOME/{0}/key", "${{HOME}}/{0}/key",
    "{0}/%6bey",
    "{0}/k\u200bey", "file:{0}/key", "{0}/key\n", "chain", "../outside/key", "src/out/key", "{0}", "{0}/", "link", ".",
    "",
    "/", "src", "src/new/deep/x", "{0}/new", "link/new",
)  # fmt: skip


def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for folder in (root / NAME, root / "src", tmp_path / "outside"):
        folder.mkdir(parents=True)
        (folder / "key").write_text("the canary")
    for link, target in (
        ("link", NAME), ("file", f"{NAME}/key"), ("chain", "file"), ("src/up", ".."), ("src/out", "../../outside"),
    ):  # fmt: skip
        (root / link).symlink_to(target)
    return root


def spelled(form: str, root: Path) -> str:
    return form.format(NAME, root=root, upper=NAME.upper(), nfd=unicodedata.normalize("NFD", NAME))


@pytest.mark.parametrize("form", SPELLINGS)
@pytest.mark.parametrize("tool", ["read", "write"])
def test_a_path_leads_where_it_was_judged_to_lead(tmp_path: Path, form: str, tool: str) -> None:
    root = work(tmp_path)
    path = spelled(form, root)
    call = judged_call(tool, {"path": path}, FILES, CallRoots(root))
    assert call.path is not None
    try:
        carried = str(Files.confined(root)._safe_resolve(path, write=tool == "write"))
    except (OSError, ValueError, ModelRetry):
        return  # it is not carried out at all
    assert carried == call.path.absolute


@pytest.mark.parametrize("form", SPELLINGS)
def test_no_spelling_reads_what_is_denied_or_not_allowed(workshop: Any, plan: Any, plays: Any, form: str) -> None:
    root = work(workshop.cwd.parent / "place")
    workshop.cwd = root
    path = spelled(form, root)
    for rules in ({"deny": (f"read({NAME}/**)",)}, {"allow": ("read(src/*.md)",)}):
        policy = Policy.of(Ceiling(origin="me", **rules))
        calls = [("read", {"path": path}), ("grep", {"path": path, "pattern": "canary"})]
        step = plan(tools=FILES, policy=policy)
        workshop.run(NativeEngine(plays(*[[call] for call in calls], ["done"])), step)
        told = [
            part.content for message in workshop.messages for part in message.parts if part.part_kind == "tool-return"
        ]
        if "allow" in rules:
            assert "the canary" not in str(told)
        else:
            assert f"{NAME}/key:" not in str(told) and ("the canary" not in str(told) or "src/key" in str(told))


def test_what_is_allowed_is_read_by_every_spelling_of_it_that_is_one(tmp_path: Path) -> None:
    root = work(tmp_path)
    policy = Policy.of(Ceiling(origin="me", allow=(f"read({NAME}/key)",)))
    for form in ("{0}/key", "./{0}/key", "src/../{0}/key", "{root}/{0}/key", "link/key", "chain", "src/up/{0}/key"):
        call = judged_call("read", {"path": spelled(form, root)}, FILES, CallRoots(root))
        assert decide(policy, call).verdict == "allow", form


@pytest.mark.parametrize(
    ("called", "spellings"),
    [
        ("read", ("read", "Read", "READ", " read ")),
        ("list", ("list", "LS", "ls", "List")),
        ("find", ("find", "Glob", "glob", "FIND")),
        ("bash", ("bash", "Bash", "shell", "Shell")),
        ("edit", ("edit", "Edit", "MultiEdit", "multiedit")),
        ("delegate", ("delegate", "Task", "Agent", "subagent")),
        ("skill", ("skill", "Skill", "load_capability", "SKILL")),
        ("mcp__a__b", ("mcp:a/b", "mcp__a__b", "MCP:a/b", "Mcp__a__b")),
    ],
)
def test_a_tool_is_meant_by_each_of_its_names_in_rules_and_where_it_is_called(
    called: str, spellings: tuple[str, ...]
) -> None:
    for spelling in spellings:
        assert tool_in_rule(spelling) == called
        policy = Policy.of(Ceiling(origin="me", deny=(spelling.strip(),)))
        call = judged_call(called, {"path": ".", "command": "ls"}, (called,), CallRoots(Path(os.sep)))
        assert decide(policy, call).verdict == "deny", spelling
        assert parse_rule(spelling).is_about(called)


# --- between the judgement and the opening ---


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_a_link_that_takes_the_place_of_what_was_judged_is_not_followed(tmp_path: Path, swapped: str) -> None:
    root = work(tmp_path)
    files = Files.confined(root)
    resolved = files._safe_resolve("src/key", write=True)
    if swapped == "folder":
        (root / "src").rename(root / "was")
        (root / "src").symlink_to(NAME)
    else:
        (root / "src/key").unlink()
        (root / "src/key").symlink_to(f"../{NAME}/key")
    for mode in ({"read_back": True, "create": False}, {"read_back": False, "create": True}):
        with pytest.raises(PermissionError, match="A link stands by now"):
            files.open_write(resolved, **mode)
    with pytest.raises(PermissionError, match="A link stands by now"):
        files.open_read(resolved)
    assert (root / NAME / "key").read_text() == "the canary"


def test_what_a_person_allowed_is_done_there_or_nowhere(workshop: Any, plan: Any, plays: Any) -> None:
    root = workshop.cwd
    for name in ("a", "b"):
        (root / name).mkdir()
    (root / "link").symlink_to("a")

    async def permit(question: PermissionRequest, *, call_id: str = "") -> PermissionAnswer:
        del call_id
        assert [part.text for part in question.parts][:2] == ["link/x.txt", "a/x.txt"]
        (root / "link").unlink()
        (root / "link").symlink_to("b")  # while the person reads
        return PermissionAnswer(decision="once")

    permit.granted = set()  # type: ignore[attr-defined]
    workshop.more["permit"] = permit
    policy = Policy.of(Ceiling(origin="me", ask=("write",)))
    calls = [("write", {"path": "link/x.txt", "content": "x"})]
    workshop.run(NativeEngine(plays(calls, ["done"])), plan(tools=FILES, policy=policy))
    (end,) = workshop.told(ToolEnded)
    assert end.refused is not None and "leads elsewhere than when it was judged" in end.refused
    assert not list(root.glob("*/x.txt"))
