"""Runs are carried to another machine in a file, and what such a file says of itself is not believed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subagents_nb import Run, attach, launch, runs
from subagents_nb.cli import main
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.launching.archive import export_runs, import_runs
from subagents_nb.store import StoreHome, open_home

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def project(store_home: StoreHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    del store_home
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
    project: Path, store_home: StoreHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1234567890")
    run = done()
    export_runs([run.id], "runs.zip")
    with zipfile.ZipFile("runs.zip") as archive:
        names = {name.rpartition("/")[2] for name in archive.namelist()}
        content = b"\n".join(archive.read(name) for name in archive.namelist())
    assert names == {"manifest.json", "plan.json", "result.json", "events.jsonl", "session.json"}
    for word in (str(project), str(store_home.root), run.plan.token, "sk-canary", str(os.getpid()) + ","):
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
        with pytest.raises(LaunchRefused, match="recovery record"):
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


def test_links_and_doubled_names_are_refused(project: Path, exported: str, elsewhere: Callable[[], StoreHome]) -> None:
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


def test_a_member_that_is_larger_than_it_says_is_refused(
    project: Path, exported: str, elsewhere: Callable[[], StoreHome]
) -> None:
    elsewhere()
    path = project / "runs.zip"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RequestError, match="is no archive of runs"):
        import_runs(path)


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
