"""The files of one step: what it is told of them, and how its answer is kept."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support import make_step

from subagents_nb.runner.workspace.step_files import SHOWN_BYTES, SHOWN_LINES, OutputFile

WRITER = ("read", "write")


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


class Notices(list[str]):
    """What was noticed, by codes."""

    def __call__(self, event: Any) -> None:
        self.append(event.code)


def files(
    cwd: Path, path: str | None = "out.md", *, mode: str = "inline", notices: Any = None, **more: Any
) -> OutputFile:
    output = None if path is None else {"path": path, "mode": mode}
    step = make_step(**{"tools": WRITER, "output": output, **more})
    return OutputFile(step, cwd, report=Notices() if notices is None else notices)


# --- keeping the answer -----------------------------------------------------------------------------------------


def test_a_step_without_an_output_keeps_its_text(cwd: Path) -> None:
    file = files(cwd, None)
    assert file.instructions() == ""
    assert file.keep("three rows") == (None, "three rows")
    assert os.listdir(cwd) == []


def test_the_answer_is_written_where_the_step_did_not(cwd: Path) -> None:
    saved, text = files(cwd, "reports/out.md").keep("three rows\nand more")

    assert (cwd / "reports/out.md").read_text() == "three rows\nand more\n"
    assert saved is not None and saved.error is None
    assert (saved.path, saved.bytes, saved.lines, saved.written_by) == ("reports/out.md", 20, 2, "runner")
    assert text == "three rows\nand more\n\n[Saved to reports/out.md: 20 bytes, 2 lines]"


def test_the_file_wins_when_the_step_wrote_it(cwd: Path) -> None:
    file = files(cwd)
    (cwd / "out.md").write_text("the report")
    file.wrote("out.md")

    saved, text = file.keep("I wrote the report.")

    assert saved is not None and (saved.written_by, saved.bytes, saved.lines) == ("step", 10, 1)
    assert text == "the report\n\n[Saved to out.md: 10 bytes, 1 line]"
    assert (cwd / "out.md").read_text() == "the report"


def test_a_file_that_was_there_before_and_was_not_touched_is_replaced(cwd: Path) -> None:
    (cwd / "out.md").write_text("of yesterday")
    saved, text = files(cwd).keep("of today")
    assert (cwd / "out.md").read_text() == "of today\n"
    assert saved is not None and saved.written_by == "runner" and text.startswith("of today\n")


def test_a_changed_file_wins_even_if_its_size_and_time_are_as_before(cwd: Path) -> None:
    (cwd / "out.md").write_text("one")
    about = (cwd / "out.md").stat()
    file = files(cwd)
    (cwd / "out.md").write_text("two")
    file.wrote("out.md")
    os.utime(cwd / "out.md", ns=(about.st_atime_ns, about.st_mtime_ns))
    file.wrote("out.md")

    saved, text = file.keep("said")

    assert saved is not None and saved.written_by == "step" and text.startswith("two\n")


def test_an_empty_file_does_not_swallow_the_answer(cwd: Path) -> None:
    file = files(cwd)
    (cwd / "out.md").touch()
    saved, _ = file.keep("the answer")
    assert saved is not None and saved.written_by == "runner"
    assert (cwd / "out.md").read_text() == "the answer\n"


def test_file_only_returns_the_reference_alone(cwd: Path) -> None:
    saved, text = files(cwd, mode="file-only").keep("a long report")
    assert text == "[Saved to out.md: 14 bytes, 1 line]"
    assert saved is not None and saved.mode == "file-only"


def test_a_structured_answer_is_written_for_reading_and_its_text_stays_json(cwd: Path) -> None:
    value = {"rows": 3, "name": "für"}
    file = files(cwd, "out.json", output_schema={"type": "object"})

    saved, text = file.keep(json.dumps(value))

    assert (cwd / "out.json").read_text() == '{\n  "rows": 3,\n  "name": "für"\n}\n'
    assert json.loads(text) == value
    assert saved is not None and saved.lines == 4


def test_the_whole_answer_is_written_when_its_text_is_cut(cwd: Path) -> None:
    whole = "x" * (SHOWN_BYTES + 50)
    saved, text = files(cwd).keep(whole[:SHOWN_BYTES], whole=whole)
    assert saved is not None and saved.bytes == len(whole) + 1
    assert (cwd / "out.md").read_text() == whole + "\n"
    assert text.startswith(
        f"[Cut: {SHOWN_BYTES:,} of {saved.bytes:,} bytes, 1 of 1 lines; the whole is in out.md]\nxxx"
    )


def test_a_long_file_goes_on_cut_after_a_line_that_says_so(cwd: Path) -> None:
    file = files(cwd)
    (cwd / "out.md").write_text("".join(f"{n}\n" for n in range(SHOWN_LINES + 7)))
    file.wrote("out.md")

    saved, text = file.keep("done")

    first, *rest = text.split("\n")
    assert saved is not None and saved.lines == SHOWN_LINES + 7
    assert (
        first.startswith("[Cut: ") and f"{SHOWN_LINES:,} of {SHOWN_LINES + 7:,} lines; the whole is in out.md]" in first
    )
    assert rest[0] == "0" and rest[SHOWN_LINES - 1] == str(SHOWN_LINES - 1)
    assert rest[SHOWN_LINES:] == ["", f"[Saved to out.md: {saved.bytes:,} bytes, {SHOWN_LINES + 7:,} lines]"]


def test_a_text_of_just_as_many_lines_as_may_be_is_not_cut(cwd: Path) -> None:
    file = files(cwd)
    (cwd / "out.md").write_text("a\n" * SHOWN_LINES)
    file.wrote("out.md")
    assert file.keep("done")[1].startswith("a\n")


def test_a_large_file_is_cut_at_a_whole_character(cwd: Path) -> None:
    file = files(cwd)
    (cwd / "out.md").write_text("a" + "é" * SHOWN_BYTES)
    file.wrote("out.md")
    saved, text = file.keep("done")
    assert saved is not None and saved.bytes == 1 + 2 * SHOWN_BYTES
    body = text.split("\n")[1]
    assert len(body.encode()) == SHOWN_BYTES - 1 and set(body) == {"a", "é"}


def test_a_picture_goes_on_as_what_was_said_about_it(cwd: Path) -> None:
    file = files(cwd, "plot.png")
    (cwd / "plot.png").write_bytes(b"\x89PNG\0\0\1")
    file.wrote("plot.png")
    saved, text = file.keep("a falling line")
    assert saved is not None and saved.written_by == "step"
    assert text == "a falling line\n\n[Saved to plot.png: 7 bytes]"


# --- what goes wrong --------------------------------------------------------------------------------------------


def fell_through(file: OutputFile, mode: str = "inline") -> str:
    saved, text = file.keep("the answer")
    assert text == "the answer", "the answer is not lost, whatever the mode"
    assert saved is not None and saved.error is not None and saved.mode == mode
    return saved.error


def test_a_link_that_was_there_before_is_not_written_through(cwd: Path) -> None:
    (cwd / "out.md").symlink_to(cwd.parent / "elsewhere.md")
    notices = Notices()
    file = files(cwd, notices=notices, mode="file-only")
    assert file.instructions() == ""
    told = fell_through(file, "file-only")
    assert told == "The answer was not saved to out.md: out.md is a symlink or leads through one."
    assert notices == ["output-not-saved"]
    assert not (cwd.parent / "elsewhere.md").exists()


def test_a_folder_that_became_a_link_while_the_step_worked_is_not_followed(cwd: Path) -> None:
    outside = cwd.parent / "outside"
    outside.mkdir()
    file = files(cwd, "reports/out.md")
    (cwd / "reports").symlink_to(outside)
    assert "symlink" in fell_through(file)
    assert list(outside.iterdir()) == []


def test_a_file_that_became_a_link_is_neither_read_nor_written(cwd: Path) -> None:
    (cwd.parent / "secret").write_text("secret")
    file = files(cwd)
    (cwd / "out.md").symlink_to(cwd.parent / "secret")
    assert "symlink" in fell_through(file)
    assert (cwd.parent / "secret").read_text() == "secret"


def test_a_folder_in_the_place_of_the_file_is_an_error_in_words(cwd: Path) -> None:
    (cwd / "out.md").mkdir()
    assert "no plain file" in fell_through(files(cwd))


def test_a_folder_that_takes_no_files_is_an_error_in_words(cwd: Path) -> None:
    (cwd / "closed").write_text("a file, not a folder")
    assert "no folder" in fell_through(files(cwd, "closed/out.md"))


def test_a_workspace_that_is_reached_through_a_link_is_fine(cwd: Path) -> None:
    (cwd.parent / "alias").symlink_to(cwd)
    saved, _ = files(cwd.parent / "alias").keep("x")
    assert saved is not None and saved.error is None and (cwd / "out.md").read_text() == "x\n"


# --- what the step is told --------------------------------------------------------------------------------------


def test_a_step_that_can_write_is_told_where_and_that_this_path_counts(cwd: Path) -> None:
    told = files(cwd, "reports/out.md").instructions()
    assert "exactly this file: reports/out.md" in told and "the one that counts" in told


def test_a_step_that_can_not_write_is_told_to_return_everything(cwd: Path) -> None:
    told = files(cwd, tools=("read",)).instructions()
    assert "return the whole result in your last message" in told and "out.md" in told


def test_a_structured_answer_is_not_written_by_the_step(cwd: Path) -> None:
    assert "don't write that file yourself" in files(cwd, output_schema={"type": "object"}).instructions()


def test_only_files_that_are_there_are_to_be_read_and_none_outside(cwd: Path) -> None:
    (cwd / "a.md").write_text("a")
    (cwd / "folder").mkdir()
    (cwd.parent / "secret").write_text("s")
    (cwd / "link.md").symlink_to(cwd.parent / "secret")
    (cwd / "inner.md").symlink_to("a.md")
    notices = Notices()

    told = files(cwd, None, reads=("a.md", "gone.md", "folder", "link.md", "inner.md"), notices=notices).instructions()

    assert told.startswith("[Read from: a.md, inner.md]\n")
    assert notices == ["read-outside"]
    assert files(cwd, None, reads=("gone.md",)).instructions() == ""


def test_a_step_without_eyes_is_not_told_to_read(cwd: Path) -> None:
    (cwd / "a.md").write_text("a")
    assert files(cwd, None, reads=("a.md",), tools=()).instructions() == ""


def test_the_first_creates_the_progress_file_and_later_ones_update_it(cwd: Path) -> None:
    first = files(cwd, None, progress=True).instructions()
    second = files(cwd, None, progress=True).instructions()

    assert first.startswith("Progress: create and maintain progress.md.")
    assert second.startswith("Progress: update progress.md")
    assert (cwd / "progress.md").read_text().splitlines()[0::2] == [
        "# Progress",
        "## Status",
        "## Tasks",
        "## Files Changed",
        "## Notes",
    ]


def test_what_nobody_asked_for_by_name_lies_with_the_run(cwd: Path) -> None:
    own = cwd.parent / "files"
    step = make_step(tools=WRITER, index=2, output={"path": "a/out.md", "explicit": False}, progress=True)
    file = OutputFile(step, cwd, own=own)
    assert f"exactly this file: {own}/2/a/out.md (outside of the working directory" in file.instructions()
    assert f"maintain {own}/progress.md" in file.instructions() and (own / "progress.md").is_file()
    saved, text = file.keep("three rows")
    assert saved is not None and (saved.place, saved.path) == ("run", "files/2/a/out.md")
    assert text.endswith("[Saved to files/2/a/out.md of the run: 11 bytes, 1 line]")
    assert (own / "2/a/out.md").read_text() == "three rows\n" and os.listdir(cwd) == []

    again = OutputFile(step, cwd, own=own)
    (own / "2/a/out.md").write_text("by the step, whatever it wrote it with")
    saved, _ = again.keep("done")
    assert saved is not None and saved.written_by == "step", "nobody else writes there"


@pytest.mark.parametrize("changed", [False, True])
def test_what_a_step_wrote_before_it_went_on_is_its_answer_and_not_replaced(cwd: Path, changed: bool) -> None:
    step = make_step(tools=WRITER, output={"path": "out.md"})
    first = OutputFile(step, cwd, step_dir=cwd.parent / "first")
    (cwd / "out.md").write_text("the long report")
    first.wrote("out.md")
    if changed:
        (cwd / "out.md").write_text("a person's, while it was paused")
    second = OutputFile(step, cwd, step_dir=cwd.parent / "second", earlier=cwd.parent / "first")
    third = OutputFile(step, cwd, step_dir=cwd.parent / "third", earlier=cwd.parent / "second")
    for one in (second, third):
        saved, text = one.keep("done")
        assert saved is not None and saved.written_by == ("runner" if changed else "step")
        assert text.startswith("done" if changed else "the long report")


def test_a_step_that_changed_its_output_and_others_too_knows_nothing_of_it_when_it_goes_on(cwd: Path) -> None:
    step = make_step(tools=WRITER, output={"path": "out.md"})
    first = OutputFile(step, cwd, step_dir=cwd.parent / "first")
    (cwd / "out.md").write_text("the long report")
    first.wrote("out.md")
    first.changed_meanwhile("out.md")
    saved, _ = OutputFile(step, cwd, earlier=cwd.parent / "first").keep("done")
    assert saved is not None and saved.written_by == "runner"


@pytest.mark.parametrize("after", ["", "then the step once more"])
def test_what_others_wrote_is_neither_taken_for_the_answer_nor_replaced(cwd: Path, after: str) -> None:
    notices = Notices()
    file = files(cwd, notices=notices)
    if after:
        (cwd / "out.md").write_text("the step's own")
        file.wrote("out.md")
    (cwd / "out.md").write_text("a person's")
    saved, text = file.keep("three rows")
    assert text == "three rows" and (cwd / "out.md").read_text() == "a person's"
    assert saved is not None and "by the step or by others" in (saved.error or "")
    assert notices == ["output-not-saved"]


def test_what_a_command_and_a_tool_wrote_is_nobodys(cwd: Path) -> None:
    file = files(cwd)
    (cwd / "out.md").write_text("by both")
    file.wrote("out.md")
    file.changed_meanwhile("out.md")
    saved, _ = file.keep("three rows")
    assert saved is not None and saved.error is not None


def test_a_step_whose_writing_nobody_would_know_is_told_to_answer(cwd: Path) -> None:
    told = files(cwd, tools=("read", "bash")).instructions()
    assert "whole result in your last message, which is saved to out.md" in told


def test_a_progress_file_that_leads_elsewhere_is_none(cwd: Path) -> None:
    (cwd / "progress.md").symlink_to(cwd.parent / "elsewhere.md")
    notices = Notices()
    assert files(cwd, None, progress=True, notices=notices).instructions() == ""
    assert notices == ["no-progress-file"]
    assert not (cwd.parent / "elsewhere.md").exists()
