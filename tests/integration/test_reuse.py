"""A launch like an earlier one finds that run instead of starting another, if the run would see the same again."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas
import pyarrow
import pytest
from support import script, until

from subagents_nb import Run, attach, chain, launch, parallel, preflight, runs, step
from subagents_nb.domain.plans.plan import Draft
from subagents_nb.domain.runs.reads import FileRead, ReadLog
from subagents_nb.launching.handle import Run as Handle
from subagents_nb.store import StoreHome

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def _reusing(shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch) -> None:
    del shared_home
    monkeypatch.delenv("SUBAGENTS_NB_REUSE")
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")


def begin(task: str = "say this back", model: str = "scripted:echo", **options: object) -> Run:
    return launch("scout", task, model=model, **options)  # type: ignore[arg-type]


def done(task: str = "say this back", model: str = "scripted:echo", **options: object) -> Run:
    run = begin(task, model, **options)
    assert run.wait(20)
    return run


def reads_of(run: Handle) -> ReadLog:
    result = run.status.result
    assert result is not None
    assert result.reads is not None
    return result.reads


def test_the_same_launch_finds_the_run_it_has() -> None:
    first = done()
    before = len(runs())
    second = done()
    assert second.id == first.id
    assert (first.reused, second.reused) == (False, True)
    assert len(runs()) == before
    assert second.output == "say this back"


def test_another_task_model_or_directory_is_another_run(tmp_path: Path) -> None:
    ids = {done().id, done("say that back").id, done(model="scripted:refused").id, done(cwd=tmp_path).id}
    assert len(ids) == 4


def test_names_tags_and_deadlines_are_no_part_of_the_contract() -> None:
    assert done().id == done(name="again", tags=["x"], timeout="5m").id


def test_fresh_and_never_launch_anew() -> None:
    first = done()
    assert len({first.id, done(fresh=True).id, done(reuse="never").id}) == 3


def test_the_newest_of_several_is_found() -> None:
    done()
    newest = done(fresh=True)
    assert done().id == newest.id


def test_a_live_run_is_attached_to() -> None:
    first = begin(model="scripted:slow")
    second = begin(model="scripted:slow")
    assert (second.id, second.reused) == (first.id, True)
    first.stop()
    assert second.wait(10)


def test_a_live_run_is_not_attached_to_when_a_file_it_has_read_has_changed() -> None:
    Path("data.csv").write_text("1")
    model = script("reader", {"python": "open('data.csv').read()"}, {"sleep": 600})

    def begin() -> Run:
        return launch("delegate", "go", model=model)

    first = begin()
    path = first.home.run(first.id).reads
    until(lambda: path.exists() and b"data.csv" in path.read_bytes(), what="its account of what it read")
    assert begin().id == first.id
    Path("data.csv").write_text("2")
    second = begin()
    assert second.id != first.id
    assert second.reuse_note == f"data.csv changed since {first.name}."
    assert preflight("delegate", "go", model=model).reuses == second.id
    for run in (first, second):
        run.stop()
        assert run.wait(10)


def test_what_a_live_run_changes_itself_keeps_nobody_from_attaching() -> None:
    Path("notes.md").write_text("old")
    write = "from pathlib import Path; Path('notes.md').write_text(Path('notes.md').read_text() + ' new')"
    first = launch("delegate", "go", model=script("own", {"python": write}, {"sleep": 600}))
    path = first.home.run(first.id).reads
    until(lambda: path.exists() and b"notes.md" in path.read_bytes(), what="its account of what it changed")
    assert launch("delegate", "go", model="scripted:own").id == first.id
    first.stop()
    assert first.wait(10)


@pytest.mark.parametrize("model", ["scripted:fail", "scripted:crash"])
def test_what_went_wrong_is_launched_anew_and_said(model: str) -> None:
    first = done(model=model)
    second = done(model=model)
    assert second.id != first.id
    assert second.reuse_note == f"{first.name} is {first.state}."
    assert second.status.notes[-1] == f"Launched anew: {second.reuse_note}"


def test_a_stopped_run_is_launched_anew() -> None:
    first = begin(model="scripted:slow")
    until(lambda: first.state == "running", what="its work")
    first.stop()
    assert first.wait(10)
    second = begin(model="scripted:slow")
    assert second.id != first.id
    second.stop()
    assert second.wait(10)


def test_a_changed_file_means_no_match_and_is_named() -> None:
    Path("data.csv").write_text("a,b\n1,2\n")
    first = done(model="scripted:tools")
    assert [one.path for one in reads_of(first).files] == ["data.csv"]
    assert done(model="scripted:tools").id == first.id
    Path("data.csv").write_text("a,b\n1,3\n")
    second = done(model="scripted:tools")
    assert second.reuse_note == f"data.csv changed since {first.name}."
    Path("data.csv").unlink()
    assert done(model="scripted:tools").reuse_note == f"data.csv is gone since {second.name}."


def test_a_new_name_in_a_directory_that_was_listed_means_no_match() -> None:
    Path("data.csv").write_text("a\n")
    first = done(model="scripted:tools")
    Path("zeta.csv").write_text("b\n")
    assert done(model="scripted:tools").reuse_note == f"the names in the workspace changed since {first.name}."


def test_a_file_that_was_to_be_read_and_was_not_there_is_missed_too() -> None:
    first = done(reads=["notes.md"])
    assert reads_of(first).files == (FileRead(path="notes.md"),)
    assert done(reads=["notes.md"]).id == first.id
    Path("notes.md").write_text("here now")
    assert done(reads=["notes.md"]).reuse_note == f"notes.md is there since {first.name}."


def test_a_file_that_was_only_touched_still_matches() -> None:
    Path("data.csv").write_text("a\n")
    first = done(model="scripted:tools")
    os.utime("data.csv", (1_000_000_000, 1_000_000_000))
    assert done(model="scripted:tools").id == first.id


def test_another_script_of_the_same_name_is_other_work() -> None:
    first = done(model=script("mine", {"text": "one"}))
    assert done(model="scripted:mine").id == first.id
    script("mine", {"text": "two"})
    second = done(model="scripted:mine")
    assert (second.output, second.reuse_note) == ("two", f".subagents/scripts/mine.json changed since {first.name}.")


def test_a_run_that_changed_files_is_reused_only_when_asked_for_by_id() -> None:
    model = script("writer", {"tool": "write", "args": {"path": "new.txt", "content": "x"}}, {"text": "done"})
    first = done(model=model)
    for policy in ("tracked", "complete"):
        second = done(model=model, reuse=policy)
        assert "changed new.txt, so it is reused only when asked for by its id" in second.reuse_note
    assert attach(first.id).output == "done"


def test_its_output_file_is_its_own_as_long_as_it_lies_there_unchanged() -> None:
    first = done(output="out/answer.md")
    assert reads_of(first).changed == ()
    assert done(output="out/answer.md").id == first.id
    Path("out/answer.md").write_text("mine now\n")
    assert done(output="out/answer.md").reuse_note == f"out/answer.md changed since {first.name}."


def test_a_chain_is_reused_as_a_whole() -> None:
    Path("data.csv").write_text("a\n")
    flow = chain(
        step("scout", "look", model="scripted:tools"),
        parallel(step("scout", "one {previous}", model="scripted:echo"), step("scout", "two", model="scripted:tools")),
    )
    first = launch(flow)
    assert first.wait(20)
    again = launch(flow)
    assert (again.id, again.reused) == (first.id, True)
    Path("data.csv").write_text("b\n")
    other = launch(flow)
    assert other.id != first.id
    assert other.wait(20)


def test_what_goes_on_from_a_session_is_never_reused() -> None:
    first = done()
    second, third = first.resume("go on"), first
    assert second.wait(20)
    third = second.resume("go on")
    assert third.wait(20)
    assert len({first.id, second.id, third.id}) == 3


def test_a_run_of_the_same_plan_again_is_another_run_and_found_from_then_on() -> None:
    first = done()
    again = first.launch_again()
    assert again.wait(20)
    assert again.id != first.id
    assert done().id == again.id


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_what_a_gate_reads_counts_too() -> None:
    Path("data.csv").write_text("fine")
    first = done(gate="grep -q fine data.csv")
    assert first.state == "complete"
    assert done(gate="grep -q fine data.csv").id == first.id
    Path("data.csv").write_text("fine as well")
    assert done(gate="grep -q fine data.csv").reuse_note == f"data.csv changed since {first.name}."


def test_steering_makes_a_run_one_of_a_kind() -> None:
    first = begin(model="scripted:steerable")
    until(lambda: first.state == "running", what="its work")
    assert first.steer("finish") is not None
    assert first.wait(20)
    second = begin(model="scripted:steerable")
    assert second.reuse_note == f"what {first.name} read is not known (it was steered)."
    second.stop()
    assert second.wait(10)
    assert begin(model="scripted:steerable", reuse="complete").id == first.id


def test_many_launchers_at_once_come_to_one_run() -> None:
    with ThreadPoolExecutor(8) as pool:
        together = threading.Barrier(8)

        def one(_: int) -> str:
            together.wait()
            return begin(model="scripted:slow").id

        ids = set(pool.map(one, range(8)))
    assert len(ids) == 1
    run = attach(ids.pop())
    run.stop()
    assert run.wait(10)


def test_the_index_may_be_deleted(shared_home: StoreHome) -> None:
    first = done()
    shutil.rmtree(shared_home.root / "contracts")
    assert done().id == first.id


def test_a_deleted_run_is_launched_anew(shared_home: StoreHome) -> None:
    first = done()
    gone = shared_home.runs / ".gone-by-hand"  # its supervisor may be writing into it just now
    shared_home.run(first.id).root.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
    second = done()
    assert second.id != first.id
    assert second.reuse_note == ""


def test_preflight_says_what_would_be_reused_and_starts_nothing() -> None:
    assert preflight("scout", "say this back", model="scripted:echo").reuses is None
    first, failed = done(), done(model="scripted:fail")
    before = len(runs())
    assert preflight("scout", "say this back", model="scripted:echo").reuses == first.id
    assert preflight("scout", "say this back", model="scripted:echo", fresh=True).reuses is None
    assert preflight("scout", "say this back", model="scripted:fail").reuse_note == f"{failed.name} is failed."
    assert len(runs()) == before


def test_a_table_written_by_a_later_version_of_its_library_is_the_same_table() -> None:
    table = pyarrow.Table.from_pandas(pandas.DataFrame({"a": [1, 2]}))
    noted = json.loads(table.schema.metadata[b"pandas"]) | {"pandas_version": "99.0"}
    first = done(inputs={"table": table})
    later = table.replace_schema_metadata({b"pandas": json.dumps(noted).encode()})
    assert done(inputs={"table": later}).id == first.id
    assert done(inputs={"table": table.slice(1)}).id != first.id


def test_a_run_of_a_version_that_knew_a_table_by_its_file_is_found(shared_home: StoreHome) -> None:
    table = pandas.DataFrame({"a": [1, 2]})
    first = done(inputs={"table": table})
    path = shared_home.run(first.id).plan
    plan = json.loads(path.read_text())
    del plan["inputs"][0]["content_sha256"]
    kept = {name: plan[name] for name in Draft.model_fields if name in plan}
    path.write_text(json.dumps(plan | {"digest": Draft.model_validate(kept).digest}))
    shutil.rmtree(shared_home.root / "contracts")
    assert done(inputs={"table": table}).id == first.id


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(Exception, match="there is no reuse 'always'; it is one of never, tracked, complete"):
        begin(reuse="always")


def test_a_run_of_a_version_that_noted_nothing_is_reused_only_as_complete(shared_home: StoreHome) -> None:
    first = done()
    path = shared_home.run(first.id).result
    record = json.loads(path.read_text())
    del record["reads"]
    path.write_text(json.dumps(record))
    assert begin(reuse="complete").id == first.id
    assert done().reuse_note == f"nobody noted what {first.name} read."
