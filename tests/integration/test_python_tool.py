"""The python tool with real kernels: in a desk's own process, and in whole runs."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import numpy
import pandas
import polars
import pytest
from support import alive, marked_processes, script, until

from subagents_nb import Run, launch
from subagents_nb.domain.runs.events import ArtifactMade, ChangedMeanwhile, EngineEvent, FileChanged, Noticed
from subagents_nb.domain.runs.reads import FileRead, ReadLog
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import LaunchRefused, RequestError, StoreError
from subagents_nb.launching.inputs.input_values import gather
from subagents_nb.runner.engines.engine import InputFiles, PythonEnd
from subagents_nb.runner.engines.kernel import cell_files as files
from subagents_nb.runner.engines.kernel.tool import PythonTool, Surroundings
from subagents_nb.runner.tracking import ReadRecorder
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter
from subagents_nb.store import StoreHome
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.runs.left import LeftFiles

pytestmark = pytest.mark.timeout(150)
linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@dataclass
class Place:
    """A workspace and a step, and what the tool reported there."""

    root: Path
    events: list[EngineEvent] = field(default_factory=list)
    memory_mb: int = 1024
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ["PATH"]})
    inputs: InputFiles | None = None
    reads: ReadRecorder = field(default_factory=ReadRecorder)

    def give(self, **values: Any) -> None:
        given = gather(values)
        (self.root / "inputs").mkdir()
        for one in given:
            (self.root / one.record.file).write_bytes(one.data)
        self.inputs = InputFiles(self.root / "inputs", "inputs", tuple(one.record for one in given))

    def work(self, body: Callable[[PythonTool], Coroutine[Any, Any, Any]]) -> Any:
        around = Surroundings(step=0, cwd=self.root / "work", step_dir=self.root / "step", environ=self.environ,
                              inputs=self.inputs, memory_mb=self.memory_mb, disk=DISK)  # fmt: skip
        tool = PythonTool(around, ArtifactWriter(self.root, DISK), self.events.append, self.reads)

        async def main() -> Any:
            try:
                return await body(tool)
            finally:
                await tool.close()
                self.reads.watch.close()

        return asyncio.run(main())

    def run(self, *cells: str, seconds: float = 60) -> list[PythonEnd]:
        async def body(tool: PythonTool) -> list[PythonEnd]:
            return [await tool.run(cell, seconds=seconds) for cell in cells]

        return list(self.work(body))

    def told(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def made(self) -> list[tuple[str, str]]:
        """The artifacts that were told of, by name, and what each holds now."""
        kept = [event.artifact for event in self.told(ArtifactMade)]
        return [(one.name, (self.root / one.path).read_text()) for one in kept]

    @property
    def log(self) -> ReadLog:
        log = self.reads.log()
        assert log is not None
        return log


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("work", "step"):
        (tmp_path / name).mkdir(mode=0o700)
    return Place(tmp_path)


@pytest.fixture
def watched(place: Place) -> Place:
    """The same, with an account of what is read."""
    place.reads = ReadRecorder(place.root / "work")
    return place


def later(work: str) -> str:
    """Return a cell whose thread does this work once there is a file `go` beside the workspace, then leaves `over`."""
    return (
        "import pathlib, threading, time\n"
        "def wait_and_work():\n"
        "    while not pathlib.Path('../go').exists(): time.sleep(0.01)\n"
        f"    {work}\n"
        "    pathlib.Path('../over').touch()\n"
        "threading.Thread(target=wait_and_work, daemon=True).start()"
    )


async def let_it_work(root: Path) -> None:
    (root / "go").touch()
    async with asyncio.timeout(20):
        while not (root / "over").exists():
            await asyncio.sleep(0.01)


def test_variables_stay_from_cell_to_cell_the_last_value_is_shown_and_nobody_is_asked(place: Place) -> None:
    cells = ["x = 20\nprint('set')", "x + 1", "1/0", "x", "input('name?')"]
    ends = place.run(*cells)
    assert [end.text for end in ends[:2]] == ["set", "21"]
    assert (ends[2].ok, "ZeroDivisionError: division by zero" in ends[2].text) == (False, True)
    assert "\x1b" not in ends[2].text
    assert ends[3].text == "20"
    assert not ends[4].ok and "does not support input requests" in ends[4].text

    notebook = nbformat.read(place.root / "step/python.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells] == cells
    shown = [[output.output_type for output in cell.outputs] for cell in notebook.cells]
    assert shown == [["stream"], ["execute_result"], ["error"], ["execute_result"], ["error"]]


def test_inputs_are_there_under_their_names_but_for_one_whose_file_was_changed(place: Place) -> None:
    place.give(df=pandas.DataFrame({"a": [1, 2]}), s=pandas.Series([1.5], name="p"), p=polars.DataFrame({"b": [3]}),
               array=numpy.eye(2), config={"k": [1]}, text="hi", raw=b"\0", other="there")  # fmt: skip
    (place.root / "inputs/other.txt").write_text("changed")
    ends = place.run(
        "print(type(df).__module__.split('.')[0], df.a.sum(), type(s).__name__, s.name, type(p).__module__[:6])\n"
        "print(array.shape, config, text, raw)",
        "other",
    )
    assert "pandas 3 Series p polars\n(2, 2) {'k': [1]} hi b'\\x00'" in ends[0].text
    assert "The input other could not be loaded: its file is not what was put in" in ends[0].text
    assert "NameError" in ends[1].text


def test_a_figure_and_a_table_are_kept_and_named(place: Place) -> None:
    ends = place.run(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);\nplt.show()",
        "import pandas as pd\npd.DataFrame({'a': [1, 2]})",
    )
    assert "[Kept as fig1: figure, artifacts/0-fig-1.png]" in ends[0].text
    assert "[Kept as table1: table, artifacts/0-table-1.parquet]" in ends[1].text
    figure, table = [event.artifact for event in place.told(ArtifactMade)]
    assert (place.root / figure.path).read_bytes().startswith(b"\x89PNG")
    assert pandas.read_parquet(place.root / table.path).a.tolist() == [1, 2]


def test_new_files_are_artifacts_and_changed_ones_are_told(place: Place) -> None:
    (place.root / "work/old.txt").write_text("old")
    place.run("open('new.csv', 'w').write('a,b'); open('old.txt', 'a').write('er')")
    assert [event.path for event in place.told(FileChanged)] == ["new.csv", "old.txt"]
    [made] = [event.artifact for event in place.told(ArtifactMade)]
    assert (made.name, (place.root / made.path).read_text()) == ("new.csv", "a,b")


@pytest.mark.parametrize("kind", ["place", "watched"])
def test_a_file_that_a_later_cell_writes_again_is_kept_again(kind: str, request: pytest.FixtureRequest) -> None:
    place = request.getfixturevalue(kind)
    place.run("open('out.csv', 'w').write('v1')", "open('out.csv', 'w').write('version 2')", "1")
    assert place.made == [("out.csv", "version 2")] * 2, "kept twice, in one place"


@linux
def test_an_artifact_that_is_written_again_is_noted_as_it_was_left(watched: Place) -> None:
    cells = ("open('out.csv', 'w').write('v1'); open('b', 'w').write('b')", "open('out.csv', 'w').write('version 2')")
    watched.run(*cells, "import os; os.unlink('b')")
    assert watched.log.left == (
        FileRead(path="b"),
        FileRead(path="out.csv", sha256=hashlib.sha256(b"version 2").hexdigest()),
    )
    assert watched.log.changed == ()


def test_an_artifact_that_changes_after_its_cell_is_kept_as_it_was_when_the_kernel_ended(place: Place) -> None:
    async def body(tool: PythonTool) -> None:
        await tool.run("open('out.csv', 'w').write('v1')\n" + later("open('out.csv', 'w').write('version 2')"))
        await let_it_work(place.root)

    place.work(body)
    assert place.made == [("out.csv", "version 2")] * 2


@linux
def test_what_a_thread_reads_and_writes_after_its_cell_is_noted_and_the_steps_own(watched: Place) -> None:
    (watched.root / "work/data.csv").write_text("a")

    async def body(tool: PythonTool) -> None:
        await tool.run(later("open('late.csv', 'w').write(open('data.csv').read())"))
        await let_it_work(watched.root)
        await tool.run("1")

    watched.work(body)
    assert watched.log.files == (FileRead(path="data.csv", sha256=hashlib.sha256(b"a").hexdigest()),)
    assert watched.log.tracked
    assert (watched.made, watched.log.untracked, watched.log.beside) == ([("late.csv", "a")], (), ())


@linux
def test_what_somebody_else_writes_while_a_cell_is_at_work_is_nobodys(watched: Place) -> None:
    """A neighbour in the same workspace, or the person: the watch sees both and knows neither."""
    root, work = watched.root, watched.root / "work"
    cell = (
        "import os, pathlib, pandas, time\npathlib.Path('../began').touch()\n"
        "while not pathlib.Path('../go').exists(): time.sleep(0.01)\n"
        "open('mine.csv', 'w').write('m'); open('both.csv', 'w').write('b')\n"
        "os.makedirs('made/deep'); pandas.DataFrame({'a': [1]}).to_parquet('made/deep/t.parquet')"
    )

    async def body(tool: PythonTool) -> None:
        running = asyncio.ensure_future(tool.run(cell))
        async with asyncio.timeout(60):
            while not (root / "began").exists():
                await asyncio.sleep(0.01)
        (work / "results.csv").write_text("a person's")
        (work / "both.csv").write_text("a person's")
        (root / "go").touch()
        assert (await running).ok

    watched.work(body)
    made = [event.artifact.name for event in watched.told(ArtifactMade)]
    assert made == ["made/deep/t.parquet", "mine.csv"], "compiled code opened the first, and Python the second"
    assert [event.path for event in watched.told(ChangedMeanwhile)] == ["both.csv", "results.csv"]
    assert [event.path for event in watched.told(FileChanged)] == ["both.csv", "made/deep/t.parquet", "mine.csv"]


@linux
def test_what_an_earlier_run_left_is_written_over_as_an_output_and_added_to_as_a_source(watched: Place) -> None:
    root, work = watched.root, watched.root / "work"
    home = StoreHome(root / "store")
    earlier, now = (make_run_id(number, 1) for number in (1, 2))
    (root / "store/runs" / earlier).mkdir(parents=True)
    for name in ("report.csv", "rows.csv", "mended.csv"):
        (work / name).write_text("v1")
        LeftFiles(home, work, earlier).note(name, hashlib.sha256(b"v1").hexdigest())
    (work / "mended.csv").write_text("by a person since")
    watched.reads = ReadRecorder(work, left=LeftFiles(home, work, now))
    watched.run(
        "open('report.csv', 'w').write('v2'); open('mended.csv', 'w').write('v2')\n"
        "rows = open('rows.csv').read(); open('rows.csv', 'w').write(rows + '2')"
    )
    assert watched.made == [("report.csv", "v2")]
    assert [event.path for event in watched.told(FileChanged)] == ["mended.csv", "report.csv", "rows.csv"]
    last = LeftFiles(home, work).last("report.csv")
    assert last is None, "the run that left it is not in the store"


@linux
def test_our_own_looks_at_the_workspace_are_no_interest_in_its_names(watched: Place) -> None:
    (watched.root / "work/data").mkdir()
    watched.run(
        "open('a.txt', 'w').write('a')", "1", "open('data/b.txt', 'w').write('b')", "import os; os._exit(3)", "1"
    )
    assert watched.made == [("a.txt", "a"), ("data/b.txt", "b")]
    assert watched.log.names == ()


@linux
def test_in_a_workspace_too_large_to_look_through_the_watch_tells_what_is_new(
    watched: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST", 2)
    for name in ("1", "2", "old.txt"):
        (watched.root / "work" / name).write_text(name)
    [end, _] = watched.run(
        "import os\nopen('tmp', 'w').write('moved'); os.rename('tmp', 'new.csv'); open('.hidden', 'w').write('h')\n"
        "open('old.txt', 'a').write('er')",
        "open('new.csv', 'w').write('again')",
    )
    assert end.text == "2" and watched.told(Noticed) == []
    assert watched.made == [("new.csv", "again")] * 2
    assert [event.path for event in watched.told(FileChanged)] == [".hidden", "new.csv", "old.txt", "new.csv"]


def test_where_nobody_can_know_what_is_new_the_model_and_the_person_are_told(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST", 2)
    for name in ("1", "2", "3"):
        (place.root / "work" / name).touch()
    ends = place.run("open('new.csv', 'w').write('a')", "1")
    assert "so nobody knows which files are new: none of them is kept as an artifact. Show a table" in ends[0].text
    assert ends[1].text == "1", "once is enough"
    assert [event.code for event in place.told(Noticed)] == ["files-not-kept"]
    assert place.told(ArtifactMade) == []


def test_a_cell_past_its_limit_is_interrupted_a_call_is_cancelled_and_the_variables_stay(place: Place) -> None:
    async def body(tool: PythonTool) -> list[PythonEnd]:
        past = await tool.run("x = 5\nwhile True: pass", seconds=0.5)
        call = asyncio.ensure_future(tool.run("import pathlib, time\npathlib.Path('begun').touch()\ntime.sleep(600)"))
        async with asyncio.timeout(60):
            while not (place.root / "work/begun").exists():
                await asyncio.sleep(0.02)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        return [past, await tool.run("x")]

    ends = place.work(body)
    assert not ends[0].ok and "Interrupted after 0.5 seconds, its time limit; the variables are" in ends[0].text
    assert ends[1].text == "5"


def test_a_kernel_that_cannot_be_interrupted_or_dies_is_followed_by_a_new_one_with_the_inputs(place: Place) -> None:
    place.give(text="hi")

    async def body(tool: PythonTool) -> list[PythonEnd]:
        stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 1\ntime.sleep(600)"
        ends = [await tool.run(stubborn, seconds=0.5)]
        return ends + [await tool.run(cell) for cell in ("'x' in globals(), text", "import os; os._exit(3)", "1 + 1")]

    ends = place.work(body)
    assert "It could not be interrupted, so all variables are gone, but for the inputs" in ends[0].text
    assert ends[1].text == "(False, 'hi')"
    assert "The kernel ended, perhaps for want of memory" in ends[2].text and not ends[2].ok
    assert ends[3].text == "2"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no limit on this system")
def test_memory_beyond_the_limit_is_an_error_that_says_so(place: Place) -> None:
    place.memory_mb = 512
    ends = place.run("x = bytearray(700_000_000)", "len(bytearray(10_000_000))")
    assert "MemoryError" in ends[0].text
    assert "may use at most 512 MB, python_memory_mb in the settings" in ends[0].text
    assert ends[1].text == "10000000"


def test_a_flood_of_output_neither_hangs_nor_fills_the_memory_and_one_in_a_message_is_said_to_be_lost(
    place: Place,
) -> None:
    lines, message, after = place.run(
        "for n in range(200_000): print('line', n)", "a = 1; print('x' * 40_000_000)", "print(a + 1)"
    )
    assert lines.ok and len(lines.text) < 52_000
    assert "Output was lost" in message.text and "xxxx" not in message.text
    assert (after.text, after.ok) == ("2", True)
    assert (place.root / "step/python.ipynb").stat().st_size < 1_000_000


def test_a_file_of_the_workspace_does_not_stand_in_for_a_module_of_the_kernel(place: Place) -> None:
    for name in ("ipykernel", "zmq", "subagents_nb"):
        (place.root / f"work/{name}.py").write_text("raise SystemExit('shadowed')")
    assert place.run("1 + 1")[0].text == "2"


def test_nothing_is_left_when_the_tool_is_closed(place: Place) -> None:
    [end] = place.run(
        "import os, subprocess\nchild = subprocess.Popen(['sleep', '600'])\nprint(os.getpid(), child.pid)"
    )
    pids = [int(pid) for pid in end.text.split()]
    assert not [pid for pid in pids if alive(pid)]
    assert sorted(path.name for path in (place.root / "step").iterdir()) == ["python.ipynb"]


# --- in whole runs ---


@pytest.fixture
def work(shared_home: StoreHome) -> Path:
    return Path.cwd()


def ended(run: Run) -> Run:
    assert run.wait(60)
    return run


FRAME = pandas.DataFrame({"g": list("aab"), "v": [1, 2, 3]})


def test_a_run_works_with_values_of_the_notebook_without_its_secrets_and_leaves_a_table(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    code = (
        "import os, pathlib\n"
        "folder = pathlib.Path(os.environ['SUBAGENTS_INPUTS'])\n"
        "print([v for v in os.environ.values() if 'planted' in v], sorted(p.name for p in folder.iterdir()))"
    )
    steps = {"python": code, "say": True}, {"python": "df.groupby('g').v.sum().reset_index()"}, {"text": "Done."}
    run = ended(launch("delegate", "sum", model=script("sums", *steps), inputs={"df": FRAME, "a": 1, "b": "t"}))
    assert run.output == "[] ['a.json', 'b.txt', 'df.parquet']Done."
    assert run.artifacts["table1"].to_pandas().v.tolist() == [3, 3]
    assert run.artifacts["table1"].to_polars()["v"].to_list() == [3, 3]
    assert run.artifacts["table1"].to_arrow().num_rows == 2
    assert [record.name for record in run.plan.inputs] == ["df", "a", "b"]
    assert run.status.result is not None and run.status.result.steps[0].tools[0].name == "python"


def test_the_digest_binds_what_the_inputs_hold(work: Path) -> None:
    from subagents_nb import preflight

    def digest(**inputs: Any) -> str | None:
        return preflight("delegate", "sum", model="scripted:echo", inputs=inputs or None).digest

    assert digest(df=FRAME) == digest(df=FRAME.copy())
    assert len({digest(), digest(df=FRAME), digest(df=FRAME.head(1)), digest(other=FRAME)}) == 4


def test_the_task_is_told_of_the_inputs_and_people_see_the_task_alone(work: Path) -> None:
    run = ended(launch("delegate", "Say it.", model="scripted:echo", inputs={"df": FRAME}))
    assert run.text.startswith("Say it.\n\nInputs: values you were given.")
    assert "| columns: g (" in run.text
    assert run.plan.steps[0].task == "Say it."


def test_the_same_plan_again_has_the_same_inputs(work: Path) -> None:
    run = ended(launch("delegate", "sum", model=script("n", {"python": "len(df)", "say": True}), inputs={"df": FRAME}))
    assert ended(run.launch_again()).text.strip() == "3"
    assert ended(run.resume("again")).text.strip() == "3"
    path = run.home.run(run.id).root / "inputs/df.parquet"
    path.chmod(0o600)
    path.write_bytes(b"changed")
    with pytest.raises(LaunchRefused, match=r"The input df of run .* it was changed"):
        run.launch_again()


def test_an_agent_without_the_tool_runs_no_python(work: Path) -> None:
    run = ended(launch("scout", "x", model=script("no", {"python": "1"})))
    assert (run.state, "this agent has no such tool" in str(run.error)) == ("failed", True)


def test_stopping_a_run_takes_its_kernel_along(work: Path) -> None:
    code = "import os, pathlib\npathlib.Path('pid').write_text(str(os.getpid()))\nwhile True: pass"
    run = launch("delegate", "x", model=script("loop", {"python": code}))
    pid = int(until(lambda: (work / "pid").exists() and (work / "pid").read_text(), 60, what="the kernel"))
    assert alive(pid)
    run.stop()
    assert ended(run).state == "stopped"
    until(lambda: not alive(pid), 10, what="the end of the kernel")
    until(lambda: not marked_processes([run.id]), 10, what="the end of all that the run started")


@pytest.mark.usefixtures("spawn")
def test_a_runner_that_is_killed_takes_its_kernel_along() -> None:
    code = "import os, pathlib\npathlib.Path('pid').write_text(str(os.getpid()))\nwhile True: pass"
    run = launch("delegate", "x", model=script("loop", {"python": code}))
    pid = int(until(lambda: Path("pid").exists() and Path("pid").read_text(), 60, what="the kernel"))
    assert run.status.status is not None and run.status.status.runner is not None
    os.kill(run.status.status.runner.pid, signal.SIGKILL)
    assert ended(run).state == "lost"
    until(lambda: not alive(pid), 10, what="the end of the kernel")


def test_a_file_that_was_written_twice_is_one_artifact_and_the_run_can_be_reused(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUBAGENTS_NB_REUSE")
    cells = [{"python": f"open('out.csv', 'w').write('{text}')"} for text in ("v1", "version 2")]
    model = script("twice", *cells, {"text": "."})
    run = ended(launch("delegate", "x", model=model))
    assert [(one.name, one.text) for one in run.artifacts] == [("out.csv", "version 2")]
    again = ended(launch("delegate", "x", model=model))
    assert (again.id, again.reuse_note) == (run.id, run.reuse_note)


def test_artifacts_can_be_read_while_the_run_works_and_none_that_was_changed_is_handed_out(work: Path) -> None:
    cell = (
        "import pandas as pd\nopen('plot.png', 'wb').write(b'png'); open('n.txt', 'w').write('x')\n"
        "pd.DataFrame({'a': [1]})"
    )
    live = launch("delegate", "x", model=script("makes", {"python": cell}, {"await_steer": True}))
    until(lambda: len(live.artifacts) == 3, 60, what="the files and the table")
    assert live.artifacts["table1"].to_pandas().a.tolist() == [1]
    assert [one.name for one in live.artifacts.figures] == ["plot.png"]
    live.stop()
    run = ended(live)
    assert run.artifacts["table1"].shape == (1, 1)
    assert [one.name for one in run.artifacts.figures] == ["plot.png"]
    assert set(run.artifacts.figures[0]._repr_mimebundle_()) == {"text/plain", "image/png"}

    artifact = run.artifacts["n.txt"]
    assert (artifact.text, artifact.bytes, artifact.load()) == ("x", b"x", "x")
    with pytest.raises(RequestError, match="is no table"):
        artifact.to_pandas()
    artifact.path.write_text("changed")
    with pytest.raises(StoreError, match="is not what the run left"):
        _ = artifact.path
    with pytest.raises(KeyError, match="has no artifact"):
        _ = run.artifacts["m.txt"]


def test_the_limit_of_a_tool_call_interrupts_a_cell_and_the_run_goes_on(work: Path) -> None:
    model = script("long", {"python": "import time; time.sleep(600)", "say": True}, {"text": " over"})
    began = time.monotonic()
    run = ended(launch("delegate", "x", model=model, tool_timeout=1))
    assert run.state == "complete" and "Interrupted after 1 seconds" in run.text and run.text.endswith(" over")
    assert time.monotonic() - began < 60
