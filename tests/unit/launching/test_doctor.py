from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support import make_plan, make_recovery, make_result, make_status, run_id

from subagents_nb.launching.stored.doctor import Check, Checkup, examine, lock_fault, ping
from subagents_nb.store import FileRuns, StoreHome, create_run
from subagents_nb.store.files.lock import hold_now
from subagents_nb.store.waiting.capacity import take_slot
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.protocol.reaching import connect_queue, host_key

pytestmark = pytest.mark.usefixtures("store_home")


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch, store_home: StoreHome) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_MODEL", "scripted:echo")


def check(name: str, checkup: Checkup | None = None) -> Check:
    found = [c for c in (checkup or examine()).checks if c.name == name]
    assert found, f"{name} was not looked at"
    return found[0]


def names(checkup: Checkup) -> set[str]:
    return {c.name for c in checkup.checks}


def user_settings(text: str) -> None:
    folder = Path.home() / ".subagents"
    folder.mkdir(exist_ok=True)
    (folder / "settings.toml").write_text(text)


def test_a_fresh_store_is_in_order() -> None:
    checkup = examine()
    assert checkup.ok, checkup
    assert {"version", "store", "locks", "disk", "runs", "supervisor", "spawn", "capacity"} <= names(checkup)
    assert {"settings", "agents", "model", "keys", "local model", "watching"} <= names(checkup)
    assert not {"unreadable", "dead", "sockets"} & names(checkup)
    assert "owned by you, mode 0700" in check("store", checkup).found


def test_a_checkup_is_plain_text_with_a_command_under_what_is_wrong() -> None:
    checkup = Checkup((Check("a", True, "fine"), Check("long name", False, "broken", "mend it")))
    assert repr(checkup).splitlines() == [
        "ok   a          fine",
        "bad  long name  broken",
        "                → mend it",
    ]
    assert not hasattr(checkup, "_repr_html_")


def test_what_could_be_had_and_is_not_there_is_neither_ok_nor_bad() -> None:
    checkup = Checkup((Check("local model", True, "it is not installed", "install it"),))
    assert checkup.ok
    assert repr(checkup).splitlines()[0] == "-    local model  it is not installed"


def test_a_store_that_is_not_made_yet_is_no_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "later"))
    checkup = examine()
    assert checkup.ok and "not made yet" in check("store", checkup).found
    assert not (tmp_path / "later").exists()


def test_a_store_open_to_others_comes_with_the_command_that_closes_it(store_home: StoreHome) -> None:
    store_home.root.chmod(0o777)
    found = check("store")
    assert not found.ok
    assert found.advice == f"chmod 700 {store_home.root}"
    store_home.root.chmod(0o700)


def test_locks_are_tried_with_a_child_process(store_home: StoreHome) -> None:
    path = store_home.supervisor / "trial"
    assert lock_fault(path) == ""
    assert not path.exists()
    assert "can't be tried" in lock_fault(store_home.root / "nowhere" / "trial")


def test_runs_are_counted_and_those_that_can_not_be_read_are_named(store_home: StoreHome) -> None:
    for number in (1, 2, 3):
        create_run(store_home, make_plan(number), make_recovery(number)).result(make_result(number))
    store_home.run(run_id(2)).result.write_bytes(b"\0")
    checkup = examine()
    assert check("runs", checkup).found == "3, of which 0 live; 0 in the trash"
    assert run_id(2) in check("unreadable", checkup).found
    assert check("unreadable", checkup).advice == f"ls -la {store_home.runs / run_id(2)}"


def test_a_dead_run_is_pointed_at_and_not_judged(store_home: StoreHome) -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as child:
        identity = identify(child.pid, "f" * 32)
        child.communicate()
    writer = create_run(store_home, make_plan(), make_recovery())
    writer.status(make_status(runner=identity), milestone=False)
    before = FileRuns(store_home).snapshot(run_id())
    found = check("dead")
    assert (found.ok, found.advice) == (False, "subagents-nb list")
    after = FileRuns(store_home).snapshot(run_id())
    assert after.model_copy(update={"unheard_s": before.unheard_s}) == before


def test_a_supervisor_that_is_up_is_named_with_its_pid(store_home: StoreHome) -> None:
    connect_queue(store_home).close()
    pid = ping(store_home.supervisor / f"{host_key('cold')}.sock")
    assert check("supervisor") == Check("supervisor", True, f"cold, pid {pid}")


def test_a_supervisor_that_crashed_shows_its_last_word(store_home: StoreHome) -> None:
    (store_home.supervisor / "host.log").write_text(
        "Traceback (most recent call last):\n  …\nOSError: no \x1b[31mroom\n"
    )
    found = check("supervisor")
    assert (found.ok, found.found) == (False, "crashed: OSError: no room")
    assert found.advice == f"cat {store_home.supervisor / 'host.log'}"


def test_a_supervisor_that_does_not_answer_is_no_healthy_one(store_home: StoreHome) -> None:
    handle = hold_now(store_home.supervisor / f"{host_key('warm')}.lock", owner="test")
    found = check("supervisor")
    os.close(handle)
    assert (found.ok, found.found) == (False, "does not answer (warm)")


def test_sockets_that_were_left_behind_come_with_the_command_that_removes_them(store_home: StoreHome) -> None:
    path = store_home.supervisor / "0123-warm.sock"
    path.touch()
    found = check("sockets")
    assert (found.ok, found.advice) == (False, f"rm {path}")


def test_places_that_are_all_taken_are_shown(store_home: StoreHome) -> None:
    user_settings("max_live_runs = 2")
    handles = [take_slot(store_home, 2) for _ in range(2)]
    found = check("capacity")
    for handle in handles:
        assert handle is not None
        os.close(handle)
    assert (found.found, found.advice) == ("2 of 2 places taken", "subagents-nb list --state live")
    assert check("capacity").found == "0 of 2 places taken"


def test_settings_that_can_not_be_used_are_named_with_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    user_settings("max_live_run = 2")
    found = check("settings")
    assert not found.ok and "max_live_run" in found.found
    assert found.advice == "${EDITOR:-vi} ~/.subagents/settings.toml"
    user_settings("")
    monkeypatch.setenv("SUBAGENTS_NB_TIMEOUT", "soon")
    assert check("settings").advice == "unset SUBAGENTS_NB_TIMEOUT"


def test_an_agent_file_that_can_not_be_used_is_named() -> None:
    folder = Path(".subagents/agents")
    folder.mkdir(parents=True)
    (folder / "odd.md").write_text("---\nname: [\n---\n")
    found = check("agents")
    assert (found.ok, found.advice) == (False, "subagents-nb agents")
    assert "odd.md" in found.found


def test_a_model_that_lacks_its_key_comes_with_the_command_that_sets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_MODEL", "openai:gpt-5-mini")
    found = check("model")
    assert (found.ok, found.advice) == (False, "export OPENAI_API_KEY=…")


def test_keys_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1")
    monkeypatch.setenv("LAB_KEY", "sk-canary-2")
    user_settings('[endpoints.lab]\nbase_url = "http://127.0.0.1:1"\nkey_env = "LAB_KEY"\n')
    checkup = examine()
    assert check("keys", checkup).found == "OPENAI_API_KEY, LAB_KEY"
    assert "canary" not in repr(checkup)


def test_a_way_of_starting_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "tepid")
    assert check("spawn").advice == "unset SUBAGENTS_NB_SPAWN"


def test_nobody_behind_a_socket_is_no_pid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ping(tmp_path / "nowhere.sock") is None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        monkeypatch.chdir(tmp_path)
        listener.bind("closed.sock")
    assert ping(tmp_path / "closed.sock") is None
