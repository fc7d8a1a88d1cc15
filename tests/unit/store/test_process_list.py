"""Looking at processes, and ending the one that is meant."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from support import CHILDREN, alive, until

from subagents_nb.domain.agents.environment import NO_RUN, RUN_MARK
from subagents_nb.store.processes import process_list as processes
from subagents_nb.store.processes.process_list import end, everyone, look, mark_in, own_children, reap


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(CHILDREN / "stranger.py"), "session", "name", "deaf"]
    environ = {**os.environ, RUN_MARK: NO_RUN}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_process_is_seen_with_its_parent_its_session_and_what_it_says_it_is_of(child: subprocess.Popen[str]) -> None:
    seen = look(child.pid)
    assert seen is not None
    assert (seen.parent, seen.group, seen.session, seen.ended) == (os.getpid(), child.pid, child.pid, False)
    assert everyone()[child.pid].ticks == seen.ticks
    assert child.pid in own_children()
    assert mark_in(child.pid) == NO_RUN
    assert look(2**31 - 1) is None and mark_in(2**31 - 1) is None


def test_only_the_process_that_was_seen_is_ended(child: subprocess.Popen[str]) -> None:
    seen = look(child.pid)
    assert seen is not None
    assert not end(seen._replace(ticks=seen.ticks - 1))
    assert alive(child.pid)
    assert end(seen)
    assert not end(seen), "a zombie was ended once more"
    ended = look(child.pid)
    assert ended is not None and ended.ended


def test_an_ended_child_is_reaped_once_and_the_living_are_not(child: subprocess.Popen[str]) -> None:
    assert reap(child.pid) is None
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as brief:
        until(lambda: (seen := look(brief.pid)) is not None and seen.ended, 10, what="its end")
        assert reap(brief.pid) == 3
        assert reap(brief.pid) is None


def test_who_cannot_be_seen_for_want_of_descriptors_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(processes.os, "open", refuse)
    for ask in (look, mark_in):
        with pytest.raises(OSError, match="Too many"):
            ask(os.getpid())


def test_what_an_ended_child_leaves_behind_falls_to_who_asked_for_it() -> None:
    script = (
        "import subprocess; from subagents_nb.prctl import adopt_orphans\n"
        "from subagents_nb.store.processes.process_list import own_children\n"
        "print(adopt_orphans())\n"
        "left = subprocess.check_output(['sh', '-c', 'setsid sleep 300 >/dev/null 2>&1 & echo $!'])\n"
        "pid = int(left); print(pid in own_children())\n"
        "import os; os.kill(pid, 9); os.waitpid(pid, 0)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30).stdout
    assert said.split() == ["True", "True"]
