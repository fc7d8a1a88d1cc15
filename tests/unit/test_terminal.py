"""What leaves for a terminal is plain, whoever wrote it, and leaves in one way."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

import subagents_nb
from subagents_nb.cli import main
from subagents_nb.errors import LaunchRefused, RequestError
from subagents_nb.store.processes.notice import send_notice
from subagents_nb.terminal import complain, hand_over, say

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[8mna\u202eme\x9b31m\r\x08\x00\u2066!"
PLAIN = "name31m!"


def test_what_is_said_and_complained_of_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"{EVIL}\n\tkept")
    complain(RequestError(EVIL))
    out, err = capsys.readouterr()
    assert (out, err) == (f"{PLAIN}\n\tkept\n", f"{PLAIN}\n")


def test_an_error_is_plain_wherever_it_is_shown() -> None:
    error = LaunchRefused([f"there is no model {EVIL}"])
    assert str(error) == f"Not launched: there is no model {PLAIN}"
    assert error._render_traceback_() == [f"LaunchRefused: Not launched: there is no model {PLAIN}"]


def test_a_terminal_of_few_letters_gets_the_rest_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    say("é \udce9")
    narrow.seek(0)
    assert narrow.read() == "\\xe9 \\udce9\n"


def test_what_a_program_reads_is_given_letter_by_letter(capsys: pytest.CaptureFixture[str]) -> None:
    hand_over(EVIL)
    assert capsys.readouterr().out == EVIL


def test_a_reason_names_what_is_typed_in_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(tmp_path))
    assert main(["steer", "nobody", "--", "x"]) == 1
    assert capsys.readouterr().err.endswith("see subagents-nb status for the runs there are.\n")


def test_a_projects_agents_and_settings_can_not_steer_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    (work / ".subagents" / "agents").mkdir(parents=True)
    for name in ("HOME", "SUBAGENTS_NB_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(work)
    (work / ".subagents" / "agents" / "a\x1b[2J.md").write_text(f"---\nname: a{EVIL!r}\ndescription: d\n---\nx\n")
    (work / ".subagents" / "settings.toml").write_text('"\\u001b]0;owned\\u0007" = 1\n')
    main(["agents"])
    main(["list", "--state", EVIL])
    out, err = capsys.readouterr()
    assert out and err and not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out + err)


def test_who_is_told_of_an_end_gets_plain_words(tmp_path: Path) -> None:
    told = tmp_path / "told"
    process = send_notice(["tee", str(told)], run_id="r-1", name=EVIL, text=EVIL)
    assert process is not None and process.wait(10) == 0
    assert "\\u001b" not in told.read_text() and PLAIN in told.read_text()


def test_the_faces_for_people_write_in_this_way_alone() -> None:
    package = Path(subagents_nb.__file__).parent
    writes = re.compile(r"(?<![\w.\"])print\(|std(?:out|err)\.(?:write|buffer)|__std(?:out|err)__")
    faces = [*package.glob("cli*.py"), *(package / "notebook").rglob("*.py")]
    assert len(faces) > 40
    bundles = re.compile(r'"text/plain": (?!plain\(|to_text\()')  # both writers are safe in a terminal
    texts = {path.name: path.read_text("utf-8") for path in faces}
    assert [name for name, text in texts.items() if writes.search(text) or bundles.search(text)] == []
