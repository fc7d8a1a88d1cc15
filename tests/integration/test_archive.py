"""Runs are carried to another machine in a file, and what such a file says of itself is not believed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from support import CHILDREN

from subagents_nb import Run, attach, chain, launch, preflight, runs, step
from subagents_nb.cli import main
from subagents_nb.errors import LaunchRefused, RequestError, StoreError
from subagents_nb.experiments import Sweep, sweep
from subagents_nb.experiments.sweeps.sweep_spec import plan_sweep
from subagents_nb.launching.archive import export_runs, import_runs
from subagents_nb.store import StoreHome, open_home

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def project(shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    del shared_home
    monkeypatch.delenv("SUBAGENTS_NB_REUSE")
    here = tmp_path / "here"
    here.mkdir()
    (here / "data.csv").write_text("a\n1\n")
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], StoreHome]:
    """Go to another machine: an empty store, and the project in another place."""

    def go() -> StoreHome:
        there = tmp_path / "there"
        there.mkdir()
        (there / "data.csv").write_bytes((project / "data.csv").read_bytes())
        monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path / "other"))
        monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "cold")
        monkeypatch.chdir(there)
        return open_home()

    return go


@pytest.fixture(scope="module")
def _kept() -> dict[str, bytes]:
    return {}


@pytest.fixture
def exported(project: Path, _kept: dict[str, bytes]) -> str:
    """Lay an archive of one run into the project, made by the first test that wants it; return the run's id."""
    if not _kept:
        run = done()
        export_runs([run.id], "made.zip")
        _kept[run.id] = (project / "made.zip").read_bytes()
    run_id, data = next(iter(_kept.items()))
    (project / "runs.zip").write_bytes(data)
    return run_id


def done(model: str = "scripted:tools", **options: Any) -> Run:
    run = launch("scout", "look around", model=model, **options)
    assert run.wait(20)
    return run


def rewritten(archive: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """Return a copy of an archive whose members were changed; its manifest is made to fit where it can be."""
    with zipfile.ZipFile(archive) as old:
        members = {one.filename: old.read(one) for one in old.infolist()}
    change(members)
    target = archive.with_name("changed.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            new.writestr(name, data)
    return target


def fitting(members: dict[str, bytes]) -> None:
    """Make the manifest say what the members are."""
    manifest = json.loads(members["manifest.json"])
    for run in manifest["runs"]:
        head = f"runs/{run['run_id']}/"
        run["files"] = [
            {"path": name.removeprefix(head), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
            if name.startswith(head)
        ]
    members["manifest.json"] = json.dumps(manifest).encode()


def test_a_reviewer_executes_the_notebook_again_without_running_anything(
    project: Path, elsewhere: Callable[[], StoreHome]
) -> None:
    run = done()
    export_runs([run.id], "runs.zip")
    other = elsewhere()
    assert import_runs(project / "runs.zip") == ([run.id], [])
    found = launch("scout", "look around", model="scripted:tools")
    assert (found.id, found.reused) == (run.id, True)
    assert found.output == "The workspace has 1 entries. data.csv has 2 lines."
    assert found.home.root == other.root
    assert found.status.notes == ("Imported from an archive.",)
    Path("data.csv").write_text("other")
    anew = launch("scout", "look around", model="scripted:tools")
    assert anew.reuse_note == f"data.csv changed since {run.name}."
    assert anew.wait(20)


class Rows(BaseModel):
    rows: int


@pytest.fixture
def lab(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str | None], None]]:
    """A model on loopback, an endpoint of the user's with a key; call it to add settings, with None to take all away.

    What it answers is written in the task behind `SAY: `.
    """
    del project
    settings = Path.home() / ".subagents/settings.toml"
    settings.parent.mkdir(exist_ok=True)
    command = [sys.executable, str(CHILDREN / "chat.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        url = f"http://127.0.0.1:{int(peer.stdout.readline())}/v1"
        endpoint = f'[endpoints.lab]\nbase_url = "{url}"\nkey_env = "LAB_KEY"\noutput_mode = "prompted"\n'

        def have(top: str | None) -> None:
            if top is None:
                settings.unlink()
                monkeypatch.delenv("LAB_KEY")
            else:
                monkeypatch.setenv("LAB_KEY", "key-1234567890")
                settings.write_text(f"{top}\n{endpoint}")

        have("")
        yield have
        peer.stdin.close()


TASK = 'SAY: {"rows": 3}'


@pytest.mark.parametrize("kind", ["plain", "chain"])
def test_a_reviewer_has_neither_the_key_nor_the_endpoint(
    project: Path, elsewhere: Callable[[], StoreHome], lab: Callable[[str | None], None], kind: str
) -> None:
    def asked(**more: Any) -> Run:
        if kind == "chain":
            return launch(chain(step("scout", TASK, model="lab:m"), step("scout", TASK, model="lab:m", schema=Rows)))
        return launch("scout", TASK, model="lab:m", schema=Rows, **more)

    run = asked()
    assert run.wait(60)
    assert run.output == Rows(rows=3), run.error
    export_runs([run.id], "runs.zip")
    elsewhere()
    lab(None)
    assert import_runs(project / "runs.zip") == ([run.id], [])
    found = asked()
    assert (found.id, found.reused, found.output) == (run.id, True, Rows(rows=3))
    assert len(runs()) == 1
    if kind == "plain":
        foreseen = preflight("scout", TASK, model="lab:m", schema=Rows)
        assert (foreseen.ok, foreseen.reuses, foreseen.digest) == (True, run.id, run.plan.digest)
        with pytest.raises(LaunchRefused, match="no provider or endpoint named 'lab'"):
            asked(fresh=True)
        with pytest.raises(LaunchRefused, match="no provider or endpoint named 'lab'"):
            launch("scout", "another task", model="lab:m")
    assert len(runs()) == 1


def test_a_reviewer_has_no_key_and_the_cell_names_no_model(
    project: Path, elsewhere: Callable[[], StoreHome], lab: Callable[[str | None], None]
) -> None:
    lab('default_model = "lab:m:high"')
    run = launch("scout", TASK, schema=Rows)
    assert run.wait(60)
    assert run.output == Rows(rows=3), run.error
    export_runs([run.id], "runs.zip")
    elsewhere()
    lab(None)
    import_runs(project / "runs.zip")
    found = launch("scout", TASK, schema=Rows)
    assert (found.id, found.reused, found.output) == (run.id, True, Rows(rows=3))
    assert preflight("scout", TASK, schema=Rows).reuses == run.id
    # A named model stays what it is, and so does the default of somebody who has a key.
    assert not preflight("scout", TASK, schema=Rows, model="local:smollm2").reuses
    lab('default_model = "lab:other"')
    assert not preflight("scout", TASK, schema=Rows).reuses


@pytest.mark.parametrize("model", ["openai:gpt-5-mini", None])
def test_a_reviewer_has_no_key_of_the_provider(
    project: Path,
    elsewhere: Callable[[], StoreHome],
    exported: str,
    monkeypatch: pytest.MonkeyPatch,
    model: str | None,
) -> None:
    """The answer is not the provider's, which can't be asked in a test: it is said to be."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1234567890")
    planned = preflight("scout", "look around", model=model).plan
    assert planned is not None
    monkeypatch.delenv("OPENAI_API_KEY")

    def by_openai(members: dict[str, bytes], run_id: str) -> None:
        name = f"runs/{run_id}/plan.json"
        plan = json.loads(members[name])
        plan["steps"][0]["model"] = planned.steps[0].model.model_dump(mode="json", exclude_none=True)
        plan["digest"] = planned.digest
        members[name] = json.dumps(plan).encode()
        fitting(members)

    made = rewritten(project / "runs.zip", lambda members: by_openai(members, exported))
    elsewhere()
    import_runs(made)
    found = launch("scout", "look around", model=model)
    assert (found.id, found.reused) == (exported, True)
    assert preflight("scout", "look around", model=model).reuses == exported
    named = preflight("scout", "another task", model="openai:gpt-5-mini")
    assert (named.ok, named.plan) == (False, None)
    assert "OPENAI_API_KEY is not set" in named.reasons[0]
    with pytest.raises(LaunchRefused, match="OPENAI_API_KEY is not set"):
        launch("scout", "look around", model="openai:gpt-5-mini", reuse="never")
    assert len(runs()) == 1


def test_a_run_of_the_users_own_comes_before_one_from_an_archive(
    project: Path, elsewhere: Callable[[], StoreHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    del elsewhere
    here = os.environ["SUBAGENTS_NB_HOME"]
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "cold")
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(project.parent / "mine"))
    mine = done()
    monkeypatch.setenv("SUBAGENTS_NB_HOME", here)
    newer = done()
    export_runs([newer.id], "runs.zip")
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(project.parent / "mine"))
    import_runs("runs.zip")
    Path("runs.zip").unlink()
    assert done().id == mine.id


def test_nobody_waits_for_an_imported_run_that_never_ends(
    project: Path, elsewhere: Callable[[], StoreHome], exported: str
) -> None:
    """An earlier version took such runs in."""
    other = elsewhere()
    import_runs(project / "runs.zip")
    other.run(exported).result.unlink()
    found = done()
    assert found.id != exported
    assert found.reuse_note == f"{attach(exported).name} is queued."


def test_what_is_taken_in_is_private_and_taken_in_once(project: Path, elsewhere: Callable[[], StoreHome]) -> None:
    run = done()
    export_runs([run.name], "runs.zip")
    other = elsewhere()
    assert import_runs(project / "runs.zip") == ([run.id], [])
    assert import_runs(project / "runs.zip") == ([], [run.id])
    root = other.run(run.id).root
    for place in (root, *root.rglob("*")):
        mode = stat.S_IMODE(place.lstat().st_mode)
        assert mode == (0o700 if place.is_dir() else 0o600), place
    assert [entry.name for entry in other.runs.iterdir()] == [run.id]


def test_an_archive_holds_no_place_no_process_and_no_key_of_this_machine(
    project: Path, shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1234567890")
    run = done()
    session = run.home.run(run.id).step(0) / "session.json"
    kept = session.read_text()
    printed = ["sk-canary-1234567890", "://a:b@c"]  # what a tool printed, as a model is told it
    session.write_text(json.dumps([*json.loads(kept), {"kind": "request", "parts": [], "told": printed}]))
    export_runs([run.id], "runs.zip")
    assert stat.S_IMODE(Path("runs.zip").stat().st_mode) == 0o600
    with zipfile.ZipFile("runs.zip") as archive:
        told = json.loads(archive.read(f"runs/{run.id}/steps/0/session.json"))[-1]["told"]
        assert told == ["[redacted]", "://[redacted]@c"]
        names = {name.rpartition("/")[2] for name in archive.namelist()}
        content = b"\n".join(archive.read(name) for name in archive.namelist())
    assert names == {"manifest.json", "plan.json", "result.json", "events.jsonl", "session.json"}
    for word in (str(project), str(shared_home.root), run.plan.token, "sk-canary", '"pid"'):
        assert word.encode() not in content, word


def test_the_same_runs_give_the_same_bytes(project: Path) -> None:
    run = done()
    export_runs([run.id], "one.zip")
    export_runs([run.id], "two.zip")
    assert (project / "one.zip").read_bytes() == (project / "two.zip").read_bytes()


def test_what_can_not_be_exported_is_refused_and_leaves_no_file(project: Path, tmp_path: Path) -> None:
    live = launch("scout", "tick", model="scripted:slow")
    with pytest.raises(RequestError, match=f"{live.name} is (queued|running): wait for its end"):
        export_runs([live.id], "runs.zip")
    live.stop()
    assert live.wait(10)
    (tmp_path / "far").mkdir()
    far = done(cwd=tmp_path / "far")
    with pytest.raises(RequestError, match="worked outside of here; name its project with --project"):
        export_runs([far.id], "runs.zip")
    (project / "mine.zip").write_text("mine")
    with pytest.raises(RequestError, match="is there already"):
        export_runs([done().id], "mine.zip")
    assert sorted(path.name for path in project.iterdir()) == ["data.csv", "mine.zip"]


def test_an_imported_run_is_neither_gone_on_from_nor_launched_again(
    project: Path, elsewhere: Callable[[], StoreHome]
) -> None:
    run = done()
    export_runs([run.id], "runs.zip")
    elsewhere()
    import_runs(project / "runs.zip")
    for go_on in (lambda: attach(run.id).resume("more"), attach(run.id).launch_again):
        with pytest.raises(LaunchRefused, match="was taken in from an archive"):
            go_on()


def test_the_terminal_does_both(
    project: Path, elsewhere: Callable[[], StoreHome], capsys: pytest.CaptureFixture[str]
) -> None:
    run = done()
    assert main(["export", run.name, "-o", "runs.zip"]) == 0
    elsewhere()
    assert main(["import", str(project / "runs.zip")]) == 0
    assert main(["import", str(project / "data.csv")]) == 1
    said = capsys.readouterr()
    assert f"taken in: {run.id}" in said.out
    assert "data.csv is no archive of runs" in said.err


def around(home: StoreHome) -> set[str]:
    """Return what lies beside a store, but for other stores."""
    return {str(path) for path in home.root.parent.rglob("*") if not {"store", "other"} & set(path.parts)}


def _rename(old: str, new: str) -> Callable[[dict[str, bytes], str], None]:
    def change(members: dict[str, bytes], run_id: str) -> None:
        members[f"runs/{run_id}/{new}"] = members.pop(f"runs/{run_id}/{old}")
        fitting(members)

    return change


def _patch(document: str, **fields: Any) -> Callable[[dict[str, bytes], str], None]:
    def change(members: dict[str, bytes], run_id: str) -> None:
        name = f"runs/{run_id}/{document}"
        members[name] = json.dumps(json.loads(members[name]) | fields).encode()
        fitting(members)

    return change


def _manifest(**fields: Any) -> Callable[[dict[str, bytes], str], None]:
    def change(members: dict[str, bytes], run_id: str) -> None:
        del run_id
        manifest = json.loads(members["manifest.json"])
        manifest["runs"][0] |= fields
        members["manifest.json"] = json.dumps(manifest).encode()

    return change


def _flip(members: dict[str, bytes], run_id: str) -> None:
    name = f"runs/{run_id}/events.jsonl"
    members[name] = members[name].replace(b"run", b"RUN", 1)


def _other_task(members: dict[str, bytes], run_id: str) -> None:
    name = f"runs/{run_id}/plan.json"
    plan = json.loads(members[name])
    plan["steps"][0]["task"] = "something else"
    members[name] = json.dumps(plan).encode()
    fitting(members)


def _at_work(members: dict[str, bytes], run_id: str) -> None:
    name = f"runs/{run_id}/result.json"
    result = json.loads(members[name])
    result["steps"][0]["state"] = "running"
    members[name] = json.dumps(result).encode()
    fitting(members)


def _bomb(members: dict[str, bytes], run_id: str) -> None:
    members[f"runs/{run_id}/artifacts/zeros.bin"] = b"\0" * (80 * 1024**2)
    fitting(members)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_rename("events.jsonl", "../../../evil.json"), "is no file of a run"),
        (_rename("events.jsonl", "steps/../../evil"), "is no file of a run"),
        (_rename("events.jsonl", "steps/.hidden"), "is no file of a run"),
        (_rename("events.jsonl", "control/stop-1.json"), "is no file of a run"),
        (_rename("events.jsonl", "recovery.json"), "is no file of a run"),
        (_rename("plan.json", "steps/0/plan.json"), "has no plan"),
        (_manifest(run_id="../../etc"), "is no run id"),
        (_manifest(cwd="../up"), "leads out of the project"),
        (_manifest(cwd="/etc"), "leads out of the project"),
        (_manifest(more=1), "its manifest.json is wrong"),
        (_manifest(files=[]), "don't agree"),
        (_patch("result.json", state="great"), "result.json of r-.* is refused"),
        (_patch("result.json", state="running"), "result.json of r-.* is refused: it says that the run is running"),
        (_patch("result.json", state="queued"), "result.json of r-.* is refused: it says that the run is queued"),
        (_rename("result.json", "steps/0/kept.json"), "says how run r-.* ended"),
        (_at_work, "it says that a step is at work"),
        (_patch("result.json", run_id="r-000000000000000000"), "it names another run"),
        (_patch("plan.json", kind="status"), "plan.json of r-.* is refused"),
        (_other_task, "its plan is not the one that its digest names"),
        (_flip, "is not what the manifest says"),
        (_bomb, "unfolds to more than 100 times its size"),
    ],
)
def test_a_forged_archive_is_refused_and_nothing_is_taken(
    project: Path,
    exported: str,
    elsewhere: Callable[[], StoreHome],
    change: Callable[[dict[str, bytes], str], None],
    said: str,
) -> None:
    forged = rewritten(project / "runs.zip", lambda members: change(members, exported))
    other = elsewhere()
    before = around(other)
    with pytest.raises(RequestError, match=said):
        import_runs(forged)
    assert list(other.runs.iterdir()) == []
    assert around(other) == before


def test_links_doubled_names_and_other_packings_are_refused(
    project: Path, exported: str, elsewhere: Callable[[], StoreHome]
) -> None:
    elsewhere()
    link = zipfile.ZipInfo(f"runs/{exported}/artifacts/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(project / "runs.zip", "a") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(RequestError, match="something else than plain files"):
        import_runs(project / "runs.zip")
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(project / "runs.zip", "a") as archive:
        archive.writestr("manifest.json", "{}")
    with pytest.raises(RequestError, match="two files of one name"):
        import_runs(project / "runs.zip")
    with zipfile.ZipFile(project / "odd.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("manifest.json", "{}")
    with pytest.raises(RequestError, match="packed otherwise"):
        import_runs(project / "odd.zip")


def test_a_member_that_is_larger_than_it_says_is_refused(
    project: Path, exported: str, elsewhere: Callable[[], StoreHome]
) -> None:
    elsewhere()
    path = project / "runs.zip"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RequestError, match="is no archive of runs"):
        import_runs(path)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_no_archive_and_nobody_waits_for_it(shared_home: StoreHome, kind: str) -> None:
    place = Path("x.zip")
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    else:
        place = Path("/dev/zero")
    with pytest.raises(RequestError, match="is no file"):
        import_runs(place)


def _huge(members: dict[str, bytes], run_id: str) -> None:
    head = f"runs/{run_id}"
    result = json.loads(members[f"{head}/result.json"])
    artifact = {"size": 10**12, "sha256": "0" * 64, "media_type": "image/png", "step": 0, "kind": "figure"}
    result["artifacts"] = [
        {**artifact, "path": "artifacts/a.png", "name": "kept"},
        {**artifact, "path": "", "name": "named", "workspace": "data.csv"},
        {**artifact, "path": "../../../etc/passwd", "name": "far"},
        {**artifact, "path": "", "name": "whole", "workspace": "/etc/passwd"},
    ]
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    members[f"{head}/result.json"] = json.dumps(result).encode()
    members[f"{head}/artifacts/a.png"] = b"png"
    members[f"{head}/events.jsonl"] += deep + b"\n" + b"9" * 5_000_000 + b"\n" + b'{"type": "last"}\n'
    members[f"{head}/steps/0/session.json"] = b"[" + deep + b"]"
    fitting(members)


def test_values_of_an_archive_make_no_room_and_break_no_reader(
    project: Path, exported: str, elsewhere: Callable[[], StoreHome]
) -> None:
    forged = rewritten(project / "runs.zip", lambda members: _huge(members, exported))
    elsewhere()
    import_runs(forged)
    run = attach(exported)
    for artifact in run.artifacts:
        said = "is not what the run left" if artifact.name in ("kept", "named") else "lies in no place of the run's"
        with pytest.raises(StoreError, match=said):
            _ = artifact.bytes
    events = list(run.events())
    assert events[-1] == {"type": "last"} and len(events) > 2
    assert "can't be read" in run.transcript().read_text()
    assert run.output and repr(run.artifacts)


def test_commands_of_the_other_machine_do_not_come_along(
    project: Path, exported: str, elsewhere: Callable[[], StoreHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = rewritten(
        project / "runs.zip",
        lambda members: _patch("plan.json", notify_command=["touch", "evil"], tool_env=["AWS_SECRET"])(
            members, exported
        ),
    )
    elsewhere()
    import_runs(forged)
    plan = attach(exported).plan
    assert (plan.notify_command, plan.tool_env, plan.cwd) == ((), (), os.getcwd())
    assert len(runs()) == 1


def test_a_reviewer_sweeps_again_without_the_key(
    project: Path, elsewhere: Callable[[], StoreHome], lab: Callable[[str | None], None]
) -> None:
    options: dict[str, Any] = {"grid": {"model": ["lab:m", "scripted:echo"], "word": ["a", "b"]}}

    def swept() -> Sweep:
        found = sweep("scout", "SAY: {{word}}", **options)
        assert found.wait(60)
        return found

    ids = swept().ids
    export_runs(ids, "runs.zip")
    elsewhere()
    lab(None)
    with pytest.raises(LaunchRefused, match=r"model=lab:m.*no provider or endpoint named 'lab'"):
        swept()
    assert len(runs()) == 0
    import_runs(project / "runs.zip")
    order = plan_sweep("scout", "SAY: {{word}}", **options)
    first = order.preflight(order.cells[0])
    assert (first.ok, first.reuses, Sweep(open_home(), order).foresee()) == (True, ids[0], 4)
    found = swept()
    assert found.ids == ids and (found.found, found.launched) == (4, 0)
    assert [run.output for run in found.runs][:2] == ["a", "b"]
    assert len(runs()) == 4


def test_a_notebook_from_an_archive_can_do_nothing(
    project: Path, elsewhere: Callable[[], StoreHome], exported: str
) -> None:
    script = "<script>alert(1)</script>"
    shown = {"output_type": "display_data", "data": {"text/html": script, "text/plain": "words"}, "metadata": {}}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": script},
        {"cell_type": "code", "metadata": {}, "source": "1", "execution_count": 1, "outputs": [shown]},
    ]

    def forge(members: dict[str, bytes]) -> None:
        notebook = {"cells": cells, "metadata": {"widgets": script}, "nbformat": 4, "nbformat_minor": 5}
        members[f"runs/{exported}/steps/0/python.ipynb"] = json.dumps(notebook).encode()
        fitting(members)

    forged = rewritten(project / "runs.zip", forge)
    other = elsewhere()
    import_runs(forged)
    kept = (other.run(exported).step(0) / "python.ipynb").read_text()
    assert "script" not in kept and "words" in kept
