from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import until

from subagents_nb.domain.agents.environment import RUN_MARK
from subagents_nb.runner import main
from subagents_nb.runner.engines.tools import shell
from subagents_nb.runner.processes import children
from subagents_nb.runner.processes import process_group as group
from subagents_nb.runner.processes.children import KEPT, Children


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Children:
    fresh = Children()
    for module in (group, main):
        monkeypatch.setattr(module, "CHILDREN", fresh)
    return fresh


def run(command: str, tmp_path: Path, *, seconds: float = 10.0) -> None:
    asyncio.run(shell.run_command(command, cwd=tmp_path, environ=dict(os.environ), seconds=seconds, limit=1000))


def test_a_runner_without_children_has_no_account(account: Children) -> None:
    assert account.exit_report("r-x", "t") is None


def test_a_command_is_accounted_for_with_its_end_and_its_group(account: Children, tmp_path: Path) -> None:
    run("exit 3", tmp_path)
    run("sleep 300", tmp_path, seconds=0.05)
    said = account.exit_report("r-x", "t")
    assert said is not None and said.pid == os.getpid() and said.group == os.getpgrp()
    first, second = said.children
    assert (first.how, first.code, first.seen_by, first.group_empty) == ("exited", 3, "runner", True)
    assert (second.how, second.code, second.group_empty) == ("killed", -15, True)
    assert first.group == first.pid and first.what == "tool"


def test_a_child_that_still_runs_was_seen_to_end_by_nobody(account: Children) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        account.began(child.pid, what="tool")
        said = account.exit_report("r-x", "t")
        assert said is not None
        assert [(c.pid, c.how, c.seen_by) for c in said.children] == [(child.pid, "unknown", "nobody")]
        assert said.children[0].start_ticks is not None
        assert child.stdin is not None
        child.stdin.close()


def test_a_notice_is_told_apart_from_a_tool_and_asked_how_it_ended(account: Children, tmp_path: Path) -> None:
    done = tmp_path / "done"
    main.notify(["touch", str(done)], environ=dict(os.environ), run_id="r-x", name="n", text="t")
    until(done.exists)

    def ended() -> bool:
        said = account.exit_report("r-x", "t")
        assert said is not None
        return [(c.what, c.how, c.code) for c in said.children] == [("notice", "exited", 0)]

    until(ended)


def test_many_children_that_ended_are_only_counted(account: Children) -> None:
    for pid in range(1, KEPT + 11):
        account.began(pid, what="tool")
        account.ended(pid, 0, group_empty=True)
    said = account.exit_report("r-x", "t")
    assert said is not None and len(said.children) == KEPT and said.dropped == 10


def test_whether_a_process_is_the_last_of_its_group_is_seen() -> None:
    script = (
        "import os, subprocess; from subagents_nb.runner.processes.children import _is_last_of_group as a\n"
        "os.setsid(); print(a());"
        "c = subprocess.Popen(['sleep', '300']); print(a()); c.kill(); c.wait(); print(a())"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert said == ["True", "False", "True"] and children._is_last_of_group() is not None


LEAVING = """
import asyncio, os, sys
from pathlib import Path
from support import alive, until
from subagents_nb.runner.engines.tools import shell
from subagents_nb.runner.processes import process_group as group
from subagents_nb.store.processes.childlog import ChildLog, read_children
from subagents_nb.store.processes.process_list import mark_in

os.setsid()
path, environ = Path(sys.argv[1]), dict(os.environ)
account = group.CHILDREN
account.keep(ChildLog(path), spare=lambda process: mark_in(process.pid) == "r-proved:t")
def run(command):
    end = asyncio.run(shell.run_command(command, cwd=Path("/"), environ=environ, seconds=20, limit=1000))
    return [int(word) for word in end.output.split()]

# The substitution waits until what it starts has left the command's session and let its output go.
AWAY = "setsid --fork sh -c 'echo $$; exec sleep 300 >/dev/null 2>&1'"
(left,) = run(f"echo $(env -i {AWAY})")
(none,) = run(f"echo $(SUBAGENTS_NB_RUN=none {AWAY})")
(other,) = run(f"echo $(SUBAGENTS_NB_RUN=r-x:t {AWAY})")
(server,) = run(f"echo $(SUBAGENTS_NB_RUN=r-proved:t {AWAY})")
(brief,) = run(f"echo $(env -i {AWAY})")
(shown,) = read_children(path)[:1]
assert shown.pid == left and alive(left)
os.kill(brief, 15)
until(lambda: not alive(brief), 10)
BELOW = "sleep 300 >/dev/null 2>&1 & echo $!; exec >/dev/null 2>&1; wait"
(deep,) = run(f"echo $(env -i setsid --fork sh -c '{BELOW}')")
account.end_orphans()
rows = {row.pid: row for row in account.exit_report("r-x", "t").children}
assert not alive(left) and not alive(deep), "left behind"
assert (rows[left].how, rows[left].code, rows[left].seen_by) == ("killed", -9, "runner"), rows[left]
assert (rows[brief].how, rows[brief].code) == ("killed", -15), rows[brief]
assert read_children(path) == (), read_children(path)
assert not alive(none) and not alive(other), "what a process says of itself is no proof"
assert alive(server) and server not in rows, "it is proved to be another's"
os.kill(server, 9)
"""


def test_what_commands_leave_behind_falls_to_the_runner_and_ends_with_the_run(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), RUN_MARK: "r-own:t"}
    command = [sys.executable, "-c", LEAVING, str(tmp_path / "children.jsonl")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


HOPPING = """
import os, signal, subprocess, sys, time
from pathlib import Path
from support import until
from subagents_nb.runner.processes.children import Children
from subagents_nb.store.processes.childlog import ChildLog

os.setsid()
beat = Path(sys.argv[1]) / "beat"
account = Children()
account.keep(ChildLog(Path(sys.argv[1]) / "children.jsonl"))
HOP = '''
import os, sys, time
end = time.time() + 30
while time.time() < end:
    if os.fork(): os._exit(0)
    os.setsid(); open(sys.argv[1], 'w').close(); time.sleep(0.001)
'''
first = subprocess.Popen([sys.executable, "-S", "-c", HOP, str(beat)], start_new_session=True)
account.began(first.pid, what="tool")
first.wait()
account.ended(first.pid, 0, group_empty=None)
until(beat.exists)
account.end_orphans()
beat.unlink(missing_ok=True)
for _ in range(20):
    time.sleep(0.02)
    assert not beat.exists(), "it goes on"
"""


def test_one_that_forks_and_exits_all_the_time_does_not_outlive_the_run(tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), RUN_MARK: "r-own:t"}
    command = [sys.executable, "-c", HOPPING, str(tmp_path)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
