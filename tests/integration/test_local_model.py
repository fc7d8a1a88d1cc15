"""The real weights, the real server: fetch, start, ask, share, kill, leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema_rs
import pytest

from subagents_nb.local_model import Endpoint, available, ensure, install, stop, weights_path
from subagents_nb.local_model.server_record import ServerPaths, is_running, read_record, read_start_ticks, write_record

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="watches processes in /proc")

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBAGENTS_NB_MODELS", str(directory))
        reason = available()
        assert reason is not None
        assert "subagents-nb local-model install" in reason
        path = install(lambda _: None)
        assert weights_path() == path
        assert available() is None
        yield directory


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    record = read_record(ServerPaths.under(tmp_path).record)
    stop(tmp_path)
    assert record is None or not is_running(record)


def wait_until(condition: Callable[[], bool], *, deadline_s: float = 60.0) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true in time"
        time.sleep(0.02)


def is_gone(endpoint: Endpoint) -> bool:
    return read_start_ticks(endpoint.pid) is None


def ask(endpoint: Endpoint, path: str, body: object = None, *, key: str | None = None) -> dict[str, object]:
    request = urllib.request.Request(
        endpoint.base_url + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key or endpoint.api_key}", "Content-Type": "application/json"},
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=120) as response:
        answer: dict[str, object] = json.load(response)
    return answer


def test_the_model_answers_in_the_asked_schema_and_only_to_its_key(home: Path) -> None:
    endpoint = ensure(home)
    answer = ask(
        endpoint,
        "/chat/completions",
        {
            "model": "smollm2-135m",
            "messages": [{"role": "user", "content": "Alice is 31 years old. Give her name and age."}],
            "temperature": 0,
            "max_tokens": 80,
            "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}},
        },
    )
    content = json.loads(answer["choices"][0]["message"]["content"])  # type: ignore[index]
    jsonschema_rs.validator_for(SCHEMA).validate(content)
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(endpoint, "/models", key="another")
    assert refused.value.code == 401
    refused.value.close()


def test_a_second_caller_gets_the_same_server_and_stop_ends_it(home: Path) -> None:
    first = ensure(home)
    assert ensure(home) == first
    assert Path(f"/proc/{first.pid}/stat").read_text().rpartition(")")[2].split()[1] != str(os.getpid())
    assert first.api_key.encode() not in Path(f"/proc/{first.pid}/cmdline").read_bytes()
    assert stop(home) is True
    assert is_gone(first)
    assert stop(home) is False
    assert not ServerPaths.under(home).record.exists()


def test_callers_at_the_same_time_start_one_server(home: Path) -> None:
    code = (
        "import sys, pathlib; from subagents_nb.local_model import ensure; print(ensure(pathlib.Path(sys.argv[1])).pid)"
    )
    callers = [
        subprocess.Popen([sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    pids = {caller.communicate(timeout=120)[0].strip() for caller in callers}
    assert [caller.returncode for caller in callers] == [0, 0, 0]
    assert pids == {str(ensure(home).pid)}


def test_after_a_killed_server_a_new_one_is_started(home: Path) -> None:
    first = ensure(home)
    os.kill(first.pid, signal.SIGKILL)
    second = ensure(home)
    assert second.pid != first.pid
    assert second.api_key != first.api_key
    assert ask(second, "/models")["object"] == "list"


def test_a_terminated_server_takes_its_record_away(home: Path) -> None:
    endpoint = ensure(home)
    os.kill(endpoint.pid, signal.SIGTERM)
    wait_until(lambda: is_gone(endpoint))
    assert not ServerPaths.under(home).record.exists()


ENGINE = """
import time, types
CommonParams = lambda: types.SimpleNamespace(
    model=types.SimpleNamespace(), cpuparams=types.SimpleNamespace(), cpuparams_batch=types.SimpleNamespace())
class Server:
    listening_address = "127.0.0.1:1"
    def __init__(self, params): pass
    def handle_metrics(self): return ""
    def __del__(self): time.sleep(600)
"""


def test_a_server_whose_engine_can_not_be_taken_down_leaves_all_the_same(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xllamacpp.py").write_text(ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    places = ServerPaths.under(home)
    places.directory.mkdir(parents=True)
    command = [sys.executable, "-m", "subagents_nb.local_model.serve", str(home)]
    subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    wait_until(places.record.exists)
    record = read_record(places.record)
    assert record is not None
    os.kill(record.pid, signal.SIGTERM)
    wait_until(lambda: not is_running(record), deadline_s=20)


def test_an_idle_server_leaves_and_is_started_again_by_need(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_LOCAL_IDLE_S", "1")
    endpoint = ensure(home)
    wait_until(lambda: is_gone(endpoint))
    assert not ServerPaths.under(home).record.exists()
    assert ensure(home).pid != endpoint.pid


def test_a_server_whose_record_names_another_leaves_and_touches_nothing(home: Path) -> None:
    endpoint = ensure(home)
    places = ServerPaths.under(home)
    mine = read_record(places.record)
    assert mine is not None
    other = replace(mine, pid=os.getpid(), start_ticks=1)
    write_record(places.record, other)
    wait_until(lambda: is_gone(endpoint))
    assert read_record(places.record) == other
