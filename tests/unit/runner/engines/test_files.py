"""Files as agents read and search them: the same words as the harness's, at no cost of memory or for ever."""

from __future__ import annotations

import asyncio
import os
import time
import tracemalloc
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai_harness.filesystem import FileSystemToolset

from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.runner.engines.tools.file_tools import Files

ENVIRON = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files.confined(tmp_path)


def search(files: Files, pattern: str, *, path: str = ".", include: str | None = None, seconds: float = 30.0) -> str:
    return asyncio.run(files.search(pattern, path=path, include=include, environ=ENVIRON, seconds=seconds))


def harness(files: Files, name: str, *args: Any, **options: Any) -> Any:
    return asyncio.run(getattr(FileSystemToolset, name)(files, *args, **options))


def large(path: Path, *, first: str, last: str) -> None:
    """Make a file with a line of 40 MB in its middle that takes no room on the disk."""
    with open(path, "wb") as file:
        file.write(first.encode() + b"x" * 10_000)
        file.truncate(40_000_000)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + last.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "one",
        "one\n",
        "one\ntwo",
        "a\r\nb\r\n",
        "\n\n\n",
        "é\nü\n",
        "x" * 49_000 + "\ny\n",
        "x\n" * 9000,
        "y" * 99_000,
    ],
)
@pytest.mark.parametrize(("offset", "limit"), [(0, None), (1, None), (0, 1), (1, 1), (2, 5), (9000, None)])
def test_a_window_of_a_file_is_the_harnesss(files: Files, tmp_path: Path, text: str, offset: int, limit: int) -> None:
    (tmp_path / "a.txt").write_text(text, newline="")

    def said(read: Any) -> str:
        try:
            return str(read()).replace(" characters and", " bytes and")
        except ModelRetry as refused:
            return str(refused)

    mine = said(lambda: asyncio.run(files.read_file("a.txt", offset=offset, limit=limit)))
    assert mine == said(lambda: harness(files, "read_file", "a.txt", offset=offset, limit=limit))


def test_a_large_file_costs_no_memory_to_read(files: Files, tmp_path: Path) -> None:
    large(tmp_path / "a.csv", first="one\ntwo\n", last="four\nfive\n")
    tracemalloc.start()
    try:
        head = asyncio.run(files.read_file("a.csv"))
        tail = asyncio.run(files.read_file("a.csv", offset=3))
        middle = asyncio.run(files.read_file("a.csv", offset=2))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (
        head == "[a.csv | 5 lines]\n     1\tone\n     2\ttwo\n... (3 more lines. Use offset=2 to continue reading.)\n"
    )
    assert tail == "[a.csv | 5 lines]\n     4\tfour\n     5\tfive\n"
    assert "Line 3 is 39,999,993 bytes and does not fit the read window. Use offset=3 to skip it" in middle
    assert peak < 8_000_000


def test_a_large_file_is_searched_to_its_end_without_being_held(files: Files, tmp_path: Path) -> None:
    large(tmp_path / "a.csv", first="one\ntwo\n", last="four\nfive\n")
    assert search(files, "f...\\Z") == "a.csv:4:four\na.csv:5:five"
    assert search(files, "five") == "a.csv:5:five"


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("one", {}),
        ("^t.o$", {}),
        ("^$", {}),
        ("a|b", {"include": "*.md"}),
        ("one", {"path": "sub"}),
        ("one", {"path": "sub/c.txt"}),
        ("üm", {}),
        ("root", {}),
        ("x", {}),
        ("zzz", {}),
        ("line", {}),
    ],
)
def test_a_search_finds_what_the_harness_finds(
    files: Files, tmp_path: Path, pattern: str, options: dict[str, str]
) -> None:
    texts = {
        "a.txt": "one\ntwo\r\n\nümlaut",
        "b.md": "a\nb\nc\n",
        "sub/c.txt": "one more\n",
        "sub/deep/d.py": "x" * 900,
    }
    texts |= {".hidden/e": "one", "sub/.f": "one", ".env": "one", "sub/key.pem": "one", "bin": "one\0two", "empty": ""}
    texts |= {"many": "line\n" * 400}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, newline="")
    (tmp_path / "link.txt").symlink_to("a.txt")
    (tmp_path / "out.txt").symlink_to("/etc/passwd")
    (tmp_path / "secret.txt").symlink_to(".env")
    given = {"include_glob": options["include"]} if "include" in options else options
    theirs = "\n".join(line[:500] for line in str(harness(files, "search_files", pattern, **given)).split("\n"))
    mine = "\n".join(line[:500] for line in search(files, pattern, **options).split("\n"))
    assert sorted(mine.split("\n")) == sorted(theirs.split("\n"))


@pytest.mark.parametrize("pattern", ["(", "(?P<a>x)(?P<a>y)", "(" * 5000, "x" * 20_000])
def test_a_pattern_that_is_none_is_said_to_be(files: Files, tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(ModelRetry, match=r"Invalid regex|too large|at most"):
        search(files, pattern)


def test_a_pattern_that_takes_for_ever_costs_its_time_alone(files: Files, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 34 + "\n")
    ticks = 0

    async def both() -> None:
        nonlocal ticks

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.ensure_future(tick())
        try:
            await files.search("(x+x+)+y", path=".", include=None, environ=ENVIRON, seconds=0.5)
        finally:
            ticking.cancel()

    began = time.monotonic()
    with pytest.raises(ModelRetry, match=r"ended after 0\.5 s, its time limit"):
        asyncio.run(both())
    assert time.monotonic() - began < 5 and ticks >= 5


def test_a_glob_finds_what_the_harness_finds(files: Files, tmp_path: Path) -> None:
    for name in ("a.py", "sub/b.py", "sub/deep/c.py", ".h/d.py", "key.pem", "sub/x.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "gone").symlink_to("nowhere")
    for pattern in ("*", "**/*.py", "sub/*", "*.pem", "none*", ".h/*"):
        assert asyncio.run(files.find_files(pattern)) == harness(files, "find_files", pattern)
    with pytest.raises(ModelRetry, match="must be relative"):
        asyncio.run(files.find_files("/etc/*"))


def test_a_file_that_is_too_large_for_an_edit_is_said_to_be(files: Files, tmp_path: Path) -> None:
    large(tmp_path / "a.csv", first="one\n", last="two\n")
    with pytest.raises(ModelRetry, match="only files of up to 8,388,608 can be edited"):
        asyncio.run(files.edit_file("a.csv", "two", "three"))


# --- what a policy hides ---


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "proj"
    for folder in ("inner", "open", "deep/er/key", unicodedata.normalize("NFD", "geh\u00e9im")):
        (root / folder).mkdir(parents=True)
        (root / folder / "a.txt").write_text("needle")
    (root / "open/in.txt").symlink_to(root / "inner/a.txt")
    return root


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(
    ("rule", "folder"),
    [
        ("read(inner/**)", "inner"),
        ("read(Inner)", "inner"),
        ("read(~/proj/inner/**)", "inner"),
        ("read({root}/**/key/**)", "deep/er/key"),
        ("read({root}/inner/a.txt)", "inner"),
        ("read(key)", "deep/er/key"),
        ("read(deep/*/key/*)", "deep/er/key"),
        ("read(geh\u00e9im/**)", "geh"),
        ("read(GEH\u00c9IM/**)", "geh"),
        ("read(**/a.txt)", ""),
    ],
)
def test_what_a_rule_on_files_is_about_is_in_no_search(hidden: Path, kind: str, rule: str, folder: str) -> None:
    policy = Policy.of(Ceiling.model_validate({kind: (rule.format(root=hidden),)}))
    files = Files.confined(hidden, policy=policy)
    found = asyncio.run(files.find_files("**/*.txt")).splitlines()
    searched = [line.partition(":")[0] for line in search(files, "needle").splitlines()]
    for names in (found, searched):
        if folder:
            assert "open/a.txt" in names and not any(name.startswith(folder) for name in names)
        else:
            assert names == ["No matches found."] or names == ["No matches found"]


@pytest.mark.parametrize(("tool", "shows"), [("grep", "find"), ("find", "grep")])
def test_a_rule_about_one_search_hides_from_that_one_alone(hidden: Path, tool: str, shows: str) -> None:
    files = Files.confined(hidden, policy=Policy.of(Ceiling(deny=(f"{tool}(inner/**)",))))
    seen = {
        "find": "inner/a.txt" in asyncio.run(files.find_files("**/*.txt")),
        "grep": "inner/a.txt" in search(files, "needle"),
    }
    assert seen == {tool: False, shows: True} and "needle" in asyncio.run(files.read_file("inner/a.txt"))


def test_what_is_asked_about_can_be_read_listed_and_searched_once_it_is_named(hidden: Path) -> None:
    files = Files.confined(hidden, policy=Policy.of(Ceiling(ask=("read(inner/**)",))))
    assert "needle" in asyncio.run(files.read_file("inner/a.txt"))
    assert "a.txt" in asyncio.run(files.list_directory("inner"))
    assert "inner/a.txt" in asyncio.run(files.find_files("*", path="inner"))
    assert "inner/a.txt" in search(files, "needle", path="inner")
    assert "inner" not in asyncio.run(files.list_directory("."))


def test_what_is_denied_is_not_read_or_written_whoever_asks(hidden: Path) -> None:
    files = Files.confined(hidden, policy=Policy.of(Ceiling(deny=("read(~/proj/inner/**)",))))
    with pytest.raises(ModelRetry, match="denied"):
        asyncio.run(files.read_file("inner/a.txt"))
    with pytest.raises(ModelRetry, match="denied"):
        asyncio.run(files.write_file("inner/a.txt", "x"))


def test_a_link_of_a_protected_name_protects_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "tools/claude").mkdir(parents=True)
    (tmp_path / ".claude").symlink_to("tools/claude")
    (tmp_path / "plain.txt").write_text("TOKEN=1\n", encoding="utf-8")
    (tmp_path / ".env").symlink_to("plain.txt")
    files = Files.confined(tmp_path)

    for path in (".claude/settings.json", "tools/claude/settings.json", "tools/../.claude/a.md", ".env", "plain.txt"):
        with pytest.raises((ModelRetry, PermissionError), match="protected"):
            asyncio.run(files.write_file(path, "{}"))
    with pytest.raises((ModelRetry, PermissionError), match="denied"):
        asyncio.run(files.read_file(".env"))
    assert list((tmp_path / "tools/claude").iterdir()) == []
    asyncio.run(files.write_file("tools/other", "x"))
    assert "TOKEN" in asyncio.run(files.read_file("plain.txt")), "by its own name it is no secret"
