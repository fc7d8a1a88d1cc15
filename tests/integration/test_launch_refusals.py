"""Launches that can't be: refused with every reason, in words, before a directory or a process exists."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import processes_of

import subagents_nb
from subagents_nb import attach, launch, preflight, sweep
from subagents_nb.errors import LaunchRefused, RequestError, StoreError, UnknownRun
from subagents_nb.store import StoreHome

OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.fixture(autouse=True)
def _nothing_is_left(store_home: StoreHome) -> Any:
    yield
    assert list(store_home.runs.iterdir()) == [], "a refused launch left a directory"
    assert processes_of(store_home) == {}
    assert list(store_home.supervisor.iterdir()) == [], "a refused launch started a supervisor"


def refused(agent: str | None = "scout", task: str | None = "count the rows", **options: Any) -> str:
    options.setdefault("model", "scripted:echo")
    foreseen = preflight(agent, task, **options)
    assert not foreseen.ok and foreseen.plan is None and foreseen.digest is None
    if "tmeout" in options:  # Python itself refuses that
        return "\n".join(foreseen.reasons)
    with pytest.raises(LaunchRefused) as caught:
        launch(agent, task, **options)
    assert foreseen.reasons == caught.value.reasons
    return str(caught.value)


def test_what_is_no_item_of_a_chain_is_named_with_what_was_meant() -> None:
    with pytest.raises(LaunchRefused, match=r"'probe' is no step, .* write attach\('probe'\) for a run"):
        subagents_nb.chain("probe", subagents_nb.step("scout", "x"))  # type: ignore[arg-type]
    with pytest.raises(LaunchRefused, match="parallel: 'a' is no step; write step"):
        subagents_nb.parallel("a")  # type: ignore[arg-type]


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("unknown agent", {"agent": "scuot"}, "No agent is named 'scuot'. Did you mean 'scout'?"),
    ("unknown provider", {"model": "opneai:gpt-5"}, "no provider or endpoint named 'opneai'"),
    ("unknown model", {"model": "mystery"}, "no provider or endpoint named 'mystery'"),
    ("unknown script", {"model": "scripted:ehco"}, "there is no script 'ehco'; there are "),
    ("script with a path", {"model": "scripted:../../x.json"}, "there is no script '../../x.json'"),
    ("script with a long name", {"model": "scripted:" + "a" * 300 + ".json"}, "there is no script"),
    ("no model's name", {"model": "openai:"}, "names a provider but no model"),
    ("missing key", {"model": "openai:gpt-5"}, "needs a key, and OPENAI_API_KEY is not set"),
    ("either key missing", {"model": "openrouter:a/b"}, "OPENROUTER_API_KEY is not set"),
    ("no such directory", {"cwd": "nowhere"}, "nowhere' (asked for as 'nowhere') does not exist"),
    ("no such user", {"cwd": "~nobody-here/x"}, "nobody-here"),
    ("directory with a zero", {"cwd": "a\0b"}, "does not exist"),
    ("directory of great length", {"cwd": "a" * 5000}, "working directory"),
    ("empty task", {"task": ""}, "the task is empty"),
    ("no task", {"task": None}, "the task is empty"),
    ("blank task", {"task": " \n\t "}, "the task is empty"),
    ("task of half a character", {"task": "x\ud800"}, "half a character"),
    ("task too large", {"task": "x" * 300_000}, "more than 256 KiB"),
    ("task of another type", {"task": 12}, "task"),
    ("timeout zero", {"timeout": 0}, "a length of time is more than 0"),
    ("timeout negative", {"timeout": -1}, "a length of time is more than 0"),
    ("timeout as text", {"timeout": "soon"}, "'soon' is no length of time"),
    ("timeout true", {"timeout": True}, "timeout must be a number"),
    ("timeout endless", {"timeout": float("inf")}, "at most 7 days"),
    ("timeout of another type", {"timeout": [1]}, "timeout"),
    ("bad name", {"name": "a/b"}, "'a/b' can't name a run"),
    ("name like an id", {"name": "r-1"}, "do not begin with r-"),
    ("name with a newline", {"name": "a\n"}, "can't name a run"),
    ("name of another type", {"name": 3}, "name"),
    ("thinking", {"thinking": "hard"}, "there is no thinking level 'hard'; the levels are off, minimal"),
    ("schema of a list", {"schema": {"type": "array"}}, "is no object schema (of type 'array')"),
    ("schema without type", {"schema": {}}, "is no object schema (without a type)"),
    ("schema that is none", {"schema": 12}, "is no object schema: give a pydantic model"),
    ("schema of int", {"schema": int}, "int is no object schema"),
    ("schema broken", {"schema": {"type": "object", "properties": 3}}, "is no valid JSON Schema"),
    ("schema from afar", {"schema": {**OBJECT, "$ref": "http://evil/x"}}, "refers to 'http://evil/x'"),
    ("schema of a file", {"schema": {**OBJECT, "$ref": "file:///etc/passwd"}}, "only references within it"),
    ("schema to nothing", {"schema": {"$ref": "#/$defs/A", "$defs": {}}}, "schema"),
    ("schema within itself", {"schema": {**OBJECT, "items": {"$ref": "#"}}}, "it refers to itself (#)"),
    ("no place", {"max_live": 0}, "max_live is a number of 1 or more"),
    (
        "money without a price",
        {"usage_budget": "$0.01", "model": "ollama:x"},
        "no price is known of ollama:x, so $0.01",
    ),
    ("schema with NaN", {"schema": {**OBJECT, "maximum": float("nan")}}, "schema"),
    ("schema with an object", {"schema": {**OBJECT, "default": object()}}, "schema"),
    ("schema too large", {"schema": {**OBJECT, "description": "x" * 70_000}}, "larger than 64 KiB"),
    ("tags as one word", {"tags": "work"}, "tags"),
]


@pytest.mark.parametrize(("options", "fragment"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_a_launch_is_refused_in_words(options: dict[str, Any], fragment: str) -> None:
    text = refused(**options)
    assert fragment in text
    assert text.startswith("Not launched")
    assert "Traceback" not in text and "pydantic" not in text.replace("give a pydantic model", "")


def test_all_faults_are_told_at_once() -> None:
    text = refused("nobody", "", model="opneai:x", timeout=-1, name="a/b", cwd="nowhere", thinking="hard")
    assert text.startswith("Not launched, for 7 reasons:")
    for fragment in ("No agent", "task is empty", "opneai", "timeout", "can't name", "does not exist", "thinking"):
        assert fragment in text


def test_a_fault_of_the_places_is_told_with_the_others() -> None:
    text = refused(max_live=0, timeout=-1)
    assert "max_live" in text and "timeout" in text


def test_money_is_held_where_the_price_is_known_or_tokens_hold_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    for model, budget in (
        ("openai:gpt-5-mini", "$1"),
        ("scripted:echo", "$1"),
        ("ollama:x", {"cost_usd": 1, "tokens": 9}),
        ("ollama:x", 9),
    ):
        assert preflight("scout", "x", model=model, usage_budget=budget).ok
    assert "openai:gpt-0-none" in refused(model="openai:gpt-0-none", usage_budget="$1")


def test_a_sweep_whose_money_would_hold_nothing_is_refused_before_its_first_run() -> None:
    with pytest.raises(LaunchRefused, match=r"model=ollama:x: usage_budget: no price is known"):
        sweep("scout", "x", grid={"model": ["scripted:echo", "ollama:x"]}, usage_budget="$1")


def test_arguments_that_make_no_sense_are_told_beside_what_planning_has_against_the_rest() -> None:
    text = refused(
        "nobody", "x", schema=int, tags="one", reads=7, inputs={"print": 1}, experiment="", timeout=True, tmeout="4h",
        max_requests=True, params={"p": []}, output="/etc/x", max_live=0, reuse="sometimes", usage_budget="$",
    )  # fmt: skip
    for fragment in (
        "int is no object schema", "tags=['one']", "reads is a list of words, not 7", "input print: ",
        "can't name an experiment", "timeout must be a number, not True", "No agent is named",
        "tmeout is unknown; did you mean timeout?", "max_requests must be a number, not True", "output: ",
        "max_live is a number", "no reuse 'sometimes'", "usage_budget must",
    ):  # fmt: skip
        assert fragment in text


def test_a_file_is_no_directory_to_work_in(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "is not a directory" in refused(cwd=tmp_path / "file")


def test_two_keys_of_one_provider_are_both_named() -> None:
    text = refused(model="google:gemini-2.5-flash")
    assert "GOOGLE_API_KEY or GEMINI_API_KEY is not set" in text or "subagents-nb[google]" in text


def test_the_embedded_model_without_its_weights_is_refused_with_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.setenv("SUBAGENTS_NB_MODELS", str(tmp_path / "models"))
    text = refused(model="local:smollm2")
    assert "smollm2" in text.lower() or "embedded" in text.lower() or "local" in text.lower()


@pytest.mark.row(25, cases=1)
@pytest.mark.parametrize("text", ["../../etc", "/etc/passwd", "..", "r-../../../etc", "a/b", ""])
def test_no_text_with_path_parts_is_attached_to(text: str) -> None:
    with pytest.raises(UnknownRun):
        attach(text)


def test_an_unsafe_store_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "open"))
    with pytest.raises(StoreError, match="Others can write to the run store"):
        launch("scout", "x", model="scripted:echo")
    assert list((tmp_path / "open").iterdir()) == []
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "link"))
    with pytest.raises(StoreError, match="symbolic link"):
        subagents_nb.runs()


def test_an_unknown_way_of_starting_is_refused_and_leaves_no_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "luke")
    with pytest.raises(Exception, match="SUBAGENTS_NB_SPAWN is 'luke'; it can be auto, warm or cold"):
        launch("scout", "x", model="scripted:echo")


def test_an_unknown_state_is_no_filter() -> None:
    with pytest.raises(RequestError, match="There is no state 'dead'"):
        subagents_nb.runs(state="dead")


IN_ANOTHER_PROCESS = """
import os, sys
where = sys.argv[1]
import subagents_nb
subagents_nb.preflight("scout", "x", model="scripted:echo")  # the interpreter's own files may be root's
if sys.argv[2] == "drop":
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
if sys.argv[2] == "gone":
    os.chdir(where); os.rmdir(where); where = None
from subagents_nb.errors import LaunchRefused
try:
    subagents_nb.launch("scout", "x", model="scripted:echo", cwd=where)
except LaunchRefused as refused:
    print("REFUSED", refused)
"""


def in_another_process(where: Path, how: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, str(where), how],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
    )
    assert done.stdout.startswith("REFUSED"), done.stdout + done.stderr
    return done.stdout


def test_a_directory_that_can_be_neither_entered_nor_read_is_refused(tmp_path: Path) -> None:
    import tempfile

    how = "drop" if os.getuid() == 0 else "stay"
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o711)
        closed = Path(place) / "closed"
        closed.mkdir(mode=0o000)
        text = in_another_process(closed, how, HOME=place)
        assert "can't be read; check its permissions" in text
        closed.chmod(0o700)


def test_a_kernel_whose_own_directory_is_gone_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    assert "working directory" in in_another_process(tmp_path / "gone", "gone")
