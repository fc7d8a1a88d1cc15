"""What a run reads of its workspace is noted: by the file tools themselves, and by watching where programs read."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from subagents_nb.domain.agents.environment import comparable_environ
from subagents_nb.domain.agents.models import parse_model, server_variables
from subagents_nb.domain.runs.reads import FileRead, MemoryRead, ReadLog
from subagents_nb.runner.tracking import ReadRecorder, mentions_of_command
from subagents_nb.runner.tracking.folder_accounts import FolderReads
from subagents_nb.runner.tracking.inotify import CannotWatch, Watch

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def files_of(recorder: ReadRecorder) -> dict[str, str | None]:
    return {one.path: one.sha256 for one in log_of(recorder).files}


def log_of(recorder: ReadRecorder) -> ReadLog:
    log = recorder.log()
    assert log is not None
    return log


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "data").mkdir(parents=True)
    (root / "data" / "a.csv").write_text("a")
    (root / "data" / "b.csv").write_text("b")
    (root / "notes.md").write_text("n")
    return root


def shell(recorder: ReadRecorder, work: Path, *commands: str) -> list[str]:
    """Run commands under watch, one after the other, and return what they changed."""

    async def carry_out() -> list[str]:
        changed: list[str] = []
        for command in commands:
            async with recorder.watch.during() as seen:
                await asyncio.to_thread(subprocess.run, command, shell=True, cwd=work, check=True)
            changed += seen
        recorder.watch.close()
        return changed

    return asyncio.run(carry_out())


# --- the file tools ---


def test_a_read_is_noted_with_the_hash_of_the_content(work: Path) -> None:
    recorder = ReadRecorder(work)
    with recorder.reading("data/a.csv"):
        pass
    with recorder.reading(f"{work}/data/../notes.md"):
        pass
    assert files_of(recorder) == {"data/a.csv": sha("a"), "notes.md": sha("n")}
    assert log_of(recorder).tracked


def test_a_file_that_is_not_there_is_noted_as_that_even_when_the_tool_fails(work: Path) -> None:
    recorder = ReadRecorder(work)
    with pytest.raises(FileNotFoundError), recorder.reading("none.txt"):
        raise FileNotFoundError
    assert files_of(recorder) == {"none.txt": None}


@pytest.mark.parametrize("path", ["../other.txt", "/etc/passwd", ".env", "keys/id_rsa", "a\0b"])
def test_nothing_outside_and_no_secret_is_noted(work: Path, path: str) -> None:
    recorder = ReadRecorder(work)
    with recorder.reading(path):
        pass
    assert files_of(recorder) == {}


def test_a_file_that_changes_while_it_is_read_is_noted_as_unknown(work: Path) -> None:
    recorder = ReadRecorder(work)
    with recorder.reading("notes.md"):
        (work / "notes.md").write_text("other")
    assert log_of(recorder).untracked == ("notes.md changed while it was read",)


def test_a_file_that_changes_between_two_reads_is_noted_as_unknown(work: Path) -> None:
    recorder = ReadRecorder(work)
    for text in ("one", "two"):
        (work / "notes.md").write_text(text)
        with recorder.reading("notes.md"):
            pass
    assert log_of(recorder).untracked == ("notes.md changed while the run was at work",)


def test_what_the_run_wrote_itself_is_no_input(work: Path) -> None:
    recorder = ReadRecorder(work)
    recorder.changed("notes.md")
    with recorder.reading("notes.md"):
        pass
    log = log_of(recorder)
    assert (log.files, log.changed) == ((), ("notes.md",))


def test_what_was_read_before_it_was_written_stays_an_input(work: Path) -> None:
    recorder = ReadRecorder(work)
    with recorder.reading("notes.md"):
        pass
    recorder.changed("notes.md")
    assert files_of(recorder) == {"notes.md": sha("n")}


def test_a_search_notes_every_file_that_it_looked_through(work: Path) -> None:
    (work / "data" / ".hidden").write_text("h")
    (work / "data" / "secrets.csv").write_text("s")
    recorder = ReadRecorder(work)
    with recorder.searching("data", "*.csv"):
        pass
    assert files_of(recorder) == {"data/a.csv": sha("a"), "data/b.csv": sha("b")}
    assert [(one.path, one.pattern, one.include) for one in log_of(recorder).names] == [("data", "**/*", "*.csv")]


def test_its_own_files_are_no_names_that_were_seen(work: Path) -> None:
    before, after = ReadRecorder(work), ReadRecorder(work)
    for recorder in (before, after):
        recorder.own("out/answer.md")
        with recorder.listing("."):
            pass
        (work / "out").mkdir(exist_ok=True)
        (work / "out" / "answer.md").write_text("x")
    assert log_of(before).names == log_of(after).names


def test_a_recorder_without_a_workspace_notes_nothing(work: Path) -> None:
    recorder = ReadRecorder()
    with recorder.reading(str(work / "notes.md")), recorder.listing("."), recorder.searching("."):
        recorder.changed("x")
    assert recorder.log() is None
    assert shell(recorder, work, "touch new") == []


# --- under watch ---


@linux
def test_a_program_that_reads_is_seen_and_so_is_a_directory_that_it_lists(work: Path) -> None:
    recorder = ReadRecorder(work)
    assert shell(recorder, work, "cat data/a.csv; ls data") == []
    assert files_of(recorder) == {"data/a.csv": sha("a")}
    assert [one.path for one in log_of(recorder).names] == ["data"]
    assert log_of(recorder).tracked


@linux
def test_a_read_by_memory_map_is_seen(work: Path) -> None:
    code = "import mmap; f = open('data/b.csv', 'rb'); mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)[0]"
    recorder = ReadRecorder(work)
    shell(recorder, work, f'{sys.executable} -c "{code}"')
    assert files_of(recorder) == {"data/b.csv": sha("b")}


@linux
def test_what_programs_change_is_seen(work: Path) -> None:
    commands = (
        "echo x > new.txt",
        "echo y >> notes.md",
        "rm data/a.csv",
        "mv data/b.csv data/c.csv",
        "mkdir -p made/deep; echo z > made/deep/z.txt",
        "sh -c 'echo t > t.tmp; rm t.tmp'",
    )
    recorder = ReadRecorder(work)
    changed = shell(recorder, work, *commands)
    assert sorted(changed) == [
        "data/a.csv", "data/b.csv", "data/c.csv", "made/deep/z.txt", "new.txt", "notes.md",
    ]  # fmt: skip
    log = log_of(recorder)
    assert (log.changed, sorted(log.meanwhile)) == ((), sorted(changed)), "the system doesn't say by whom"


@linux
def test_a_file_replaced_by_a_rename_and_then_removed_is_a_change(work: Path) -> None:
    recorder = ReadRecorder(work)
    assert shell(recorder, work, "echo x > .tmp; mv .tmp notes.md; rm notes.md") == ["notes.md"]


@linux
def test_a_new_directory_is_watched_too(work: Path) -> None:
    recorder = ReadRecorder(work)
    changed = shell(recorder, work, "mkdir new", "echo x > new/x.txt")
    assert changed == ["new/", "new/x.txt"]


@linux
def test_what_happens_between_two_calls_is_not_the_runs_doing(work: Path) -> None:
    async def carry_out() -> list[str]:
        recorder = ReadRecorder(work)
        async with recorder.watch.during():
            pass
        (work / "notes.md").write_text("by somebody else")
        async with recorder.watch.during() as changed:
            pass
        recorder.watch.close()
        return changed

    assert asyncio.run(carry_out()) == []


@linux
def test_while_a_program_stands_by_what_it_reads_between_two_calls_is_seen(work: Path) -> None:
    async def carry_out() -> ReadRecorder:
        recorder = ReadRecorder(work)
        async with recorder.watch.during(idle=True):
            async with recorder.watch.during():
                pass
            (work / "notes.md").read_text()
        recorder.watch.close()
        return recorder

    recorder = asyncio.run(carry_out())
    assert files_of(recorder) == {"notes.md": sha("n")}
    assert log_of(recorder).tracked


@linux
def test_what_changes_is_nobodys_unless_somebody_is_known_to_have_done_it(work: Path) -> None:
    async def carry_out() -> ReadLog:
        recorder = ReadRecorder(work)
        recorder.own("mine.md")
        async with recorder.watch.during(idle=True):
            (work / "notes.md").write_text("by the program or by somebody else")
            (work / "mine.md").write_text("the answer")
            async with recorder.watch.during() as changed:
                (work / "new.txt").write_text("by the call")
                (work / "other.txt").write_text("by the call or by somebody else")
            assert list(changed) == ["new.txt", "other.txt"]
            recorder.changed("new.txt")
        recorder.watch.close()
        return log_of(recorder)

    log = asyncio.run(carry_out())
    assert log.changed == ("new.txt",)
    assert (log.meanwhile, log.beside, log.untracked) == (("other.txt",), ("notes.md",), ())


@linux
def test_calls_at_the_same_time_are_each_told_what_changed_in_theirs_and_a_moment_tells_which_names_are_new(
    work: Path,
) -> None:
    async def carry_out() -> None:
        recorder = ReadRecorder(work)
        async with recorder.watch.during() as whole:
            (work / "new.txt").write_text("x")
            async with recorder.watch.during() as part:
                moment = recorder.watch.moment()
                (work / "notes.md").write_text("y")
                (work / "made").mkdir()
                (work / "made/z.txt").write_text("z")
                (work / "data/a.csv").rename(work / "data/c.csv")
                (work / "gone.tmp").write_text("t")
                (work / "gone.tmp").unlink()
                since = recorder.watch.since(moment)
        recorder.watch.close()
        assert list(part) == ["data/a.csv", "data/c.csv", "made/z.txt", "notes.md"]
        assert list(whole) == sorted({"new.txt", *part})
        assert since is not None
        assert since.changed == {"data/a.csv": False, "data/c.csv": True, "made/z.txt": True, "notes.md": False}
        assert since.writes == {"notes.md": 1, "data/c.csv": 1, "gone.tmp": 1}, "a new folder is watched a little later"
        assert recorder.watch.since(moment) is None, "nothing is watched any more"

    asyncio.run(carry_out())


@linux
def test_a_look_of_our_own_is_nobodys_interest_unless_a_call_is_at_work(work: Path) -> None:
    async def carry_out(*, call: bool) -> list[str]:
        recorder = ReadRecorder(work)
        async with recorder.watch.during(idle=not call):
            os.listdir(work / "data")
            with recorder.watch.looking_around():
                os.listdir(work)
        recorder.watch.close()
        return [one.path for one in log_of(recorder).names]

    assert asyncio.run(carry_out(call=False)) == ["data"]
    assert asyncio.run(carry_out(call=True)) == [".", "data"]


@linux
def test_a_file_that_changes_while_it_is_hashed_is_noted_as_unknown(work: Path) -> None:
    class Slow(ReadRecorder):
        def _hash(self, name: str) -> str | None:
            found = super()._hash(name)
            (work / name).write_text("changed behind our back")
            return found

    recorder = Slow(work)
    shell(recorder, work, "cat data/a.csv > /dev/null")
    assert log_of(recorder).untracked == ("data/a.csv changed while the run was at work",)


@linux
def test_a_link_is_noted_beside_what_it_leads_to(work: Path) -> None:
    (work / "latest.csv").symlink_to("data/a.csv")
    (work / "now").symlink_to("data")
    recorder = ReadRecorder(work)
    shell(recorder, work, "cat latest.csv")
    assert files_of(recorder) == {"data/a.csv": sha("a"), "latest.csv": sha("a"), "now/a.csv": sha("a")}


@linux
def test_a_link_that_leads_out_makes_what_was_read_unknown(work: Path, tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    (work / "big").symlink_to(tmp_path / "big")
    recorder = ReadRecorder(work)
    shell(recorder, work, "true")
    assert log_of(recorder).untracked == ("the link big leads out of the workspace",)


@linux
def test_a_secret_that_a_program_reads_makes_what_was_read_unknown(work: Path) -> None:
    (work / ".env").write_text("KEY=1")
    recorder = ReadRecorder(work)
    shell(recorder, work, "cat .env")
    assert log_of(recorder).untracked == (".env was read, and no hash of a secret is kept",)
    assert files_of(recorder) == {}


@linux
def test_packages_caches_and_what_others_keep_writing_are_left_out(work: Path) -> None:
    for folder in (".venv", "node_modules", "__pycache__", ".ipynb_checkpoints", "store"):
        (work / folder).mkdir()
    recorder = ReadRecorder(work, skip=["store", "nb.ipynb"])
    places = ".venv/x node_modules/x __pycache__/x .ipynb_checkpoints/x store/x nb.ipynb"
    assert shell(recorder, work, f"for f in {places}; do echo 1 > $f; cat $f; done") == []
    assert files_of(recorder) == {}


@linux
def test_a_module_that_is_imported_from_its_bytecode_was_read(work: Path) -> None:
    (work / "mod.py").write_text("OK = 1\n")
    (work / "pack").mkdir()
    (work / "pack" / "__init__.py").write_text("")
    run = [sys.executable, "-c", "import mod, pack"]
    subprocess.run(run, cwd=work, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    assert (work / "__pycache__").is_dir()
    recorder = ReadRecorder(work)
    shell(recorder, work, f"{sys.executable} -c 'import mod, pack'")
    assert files_of(recorder) == {"mod.py": sha("OK = 1\n"), "pack/__init__.py": sha("")}
    assert log_of(recorder).tracked and not log_of(recorder).changed


@linux
def test_what_a_tool_answers_from_its_own_cache_is_not_known(work: Path) -> None:
    recorder = ReadRecorder(work)
    shell(recorder, work, "mkdir -p .ruff_cache/1; echo x > .ruff_cache/1/a; cat .ruff_cache/1/a")
    assert log_of(recorder).tracked  # what it made itself it has from the files
    again = ReadRecorder(work)
    shell(again, work, "cat .ruff_cache/1/a; echo y > .ruff_cache/1/b; cat .ruff_cache/1/b")
    assert [why for why in log_of(again).untracked if ".ruff_cache" in why]


@linux
def test_git_commands_depend_on_the_last_commit(work: Path) -> None:
    git = "git -c user.name=x -c user.email=x@example.org"
    subprocess.run(f"git init -q && git add . && {git} commit -qm one", shell=True, cwd=work, check=True)
    recorder = ReadRecorder(work)
    assert shell(recorder, work, "git log > /dev/null") == []
    assert {".git/HEAD", ".git/logs/HEAD"} <= set(files_of(recorder))
    recorder = ReadRecorder(work)
    assert ".git/logs/HEAD" in shell(recorder, work, f"{git} commit -q --allow-empty -m two")


@linux
def mentioned(recorder: ReadRecorder, work: Path, command: str, **environ: str) -> None:
    async def carry_out() -> None:
        async with recorder.asked.by(mentions_of_command(command), environ), recorder.watch.during():
            await asyncio.to_thread(subprocess.run, command, shell=True, cwd=work, check=False, env=environ)
        recorder.watch.close()

    asyncio.run(carry_out())


@linux
def test_what_a_command_asks_without_opening_it_is_noted_by_its_text(work: Path) -> None:
    recorder = ReadRecorder(work)
    mentioned(recorder, work, "cat later.txt; test -s notes.md; echo made > new.txt; $STAGE", STAGE="true", API_KEY="k")
    assert files_of(recorder) == {"later.txt": None, "notes.md": sha("n")}, "what it made is no input"
    log = log_of(recorder)
    assert [(one.name, one.sha256) for one in log.variables] == [("STAGE", sha("true"))]
    assert log.compared == "2 files, 1 variable" and log.tracked
    mentioned(secret := ReadRecorder(work), work, "$API_KEY", API_KEY="true")
    assert not log_of(secret).variables, "no hash of a secret is kept"


def test_which_server_answers_for_a_model_is_noted_unless_a_password_stands_in_it(work: Path) -> None:
    names = server_variables([parse_model("openai:gpt-5", origin="call", endpoints={})])
    recorder, hidden = ReadRecorder(work), ReadRecorder(work)
    recorder.asked.note_variables(names, {"OPENAI_BASE_URL": "http://lab/v1"})
    hidden.asked.note_variables(names, {"OPENAI_BASE_URL": "http://me:word@lab/v1"})
    assert [(one.name, one.sha256) for one in log_of(recorder).variables] == [("OPENAI_BASE_URL", sha("http://lab/v1"))]
    assert not log_of(hidden).variables
    assert comparable_environ({"OPENAI_BASE_URL": "http://lab/v1", "OPENAI_API_KEY": "k", "COLUMNS": "80"}).keys() == {
        "OPENAI_BASE_URL",
        "PYDANTIC_AI_NO_BANNER",
    }


@linux
def test_a_folder_that_was_listed_has_the_sizes_of_its_files_but_of_notebooks(work: Path) -> None:
    (work / "a.ipynb").write_text("{}")

    def seen() -> set[str]:
        recorder = ReadRecorder(work)
        shell(recorder, work, "ls -l")
        with recorder.listing(".", sizes=True):
            pass
        return {one.sha256 for one in log_of(recorder).names if one.sizes}

    before = seen()
    assert len(before) == 1, "the tool and the program saw the same"
    (work / "a.ipynb").write_text("{    }")
    assert seen() == before
    (work / "notes.md").write_text("longer")
    assert seen() != before


@linux
def test_what_git_compares_is_noted_without_what_others_keep_writing(work: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=work, check=True, capture_output=True)

    def seen(command: str) -> str | None:
        recorder = ReadRecorder(work, skip=["notes.md", "../store"])
        shell(recorder, work, command)
        found = log_of(recorder).git
        return found.sha256 if found is not None else None

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "x")
    assert seen("git log") is None
    before = seen("git diff")
    (work / "notes.md").write_text("saved")
    assert before is not None and seen("git diff") == before
    (work / "data" / "a.csv").write_text("edited")
    edited = seen("git diff")
    git("add", "data")
    git("branch", "other")
    staged = seen("git branch")
    assert len({before, edited, staged, None}) == 4


@linux
def test_an_environment_of_any_name_is_left_out(work: Path, tmp_path: Path) -> None:
    (work / "env" / "bin").mkdir(parents=True)
    (work / "env" / "pyvenv.cfg").write_text("")
    (work / "env" / "bin" / "python").symlink_to(tmp_path)
    recorder = ReadRecorder(work)
    shell(recorder, work, "cat env/pyvenv.cfg data/a.csv")
    assert files_of(recorder) == {"data/a.csv": sha("a")} and log_of(recorder).tracked


def test_a_workspace_that_is_too_large_is_not_watched(work: Path) -> None:
    with pytest.raises(CannotWatch, match="too large to watch: more than 1 directories"):
        Watch(work, most=1)


@linux
def test_a_watch_that_fails_leaves_no_descriptor(work: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(CannotWatch):
            Watch(work, most=1)
    assert len(os.listdir("/proc/self/fd")) == before


@linux
def test_more_events_than_the_system_keeps_make_what_was_read_unknown(work: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())

    async def carry_out() -> ReadLog:
        recorder = ReadRecorder(work)
        async with recorder.watch.during():
            for number in range(limit + 10):  # without ever giving the event loop a turn
                (work / ("a" if number % 2 else "b")).write_bytes(b"")
        return log_of(recorder)

    assert asyncio.run(carry_out()).untracked == ("too much happened in the workspace to be watched",)


def test_what_a_child_read_counts_as_read_by_its_parent_its_memory_too(work: Path) -> None:
    reads = FolderReads(ReadRecorder(work), work)
    memory = MemoryRead(scope="user", path="leaf", sha256="0" * 64)
    child = ReadLog(files=(FileRead(path="a.csv", sha256=sha("a")),), memory=(memory,), untracked=("a kernel",))
    reads.take("data", child, who="leaf")
    log = reads.log()
    assert log is not None
    assert log.files == (FileRead(path="data/a.csv", sha256=sha("a")),)
    assert (log.memory, log.untracked) == ((memory,), ("leaf: a kernel",))
