"""Globs as a walk of each directory once: they find what Python's find, in a time that the tree alone decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.store.files.globbing import Allowance, TooMuch, walk

PATTERNS = """
* *.py **/* **/*.py sub/*.py sub/** */c.py **/sub/* sub/**/c.py **/**/*.py [ab].py ?.md ./*.py sub//c.py **/deep/**/d.py
none/* a.py */*/* **/link/* link/* link/**/*.py sub/*.PY
""".split()  # noqa: SIM905


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("a.py", "b.md", "sub/c.py", "sub/deep/d.py", "sub/deep/e/f.py", "other/g.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("sub")
    (tmp_path / "sub" / "round").symlink_to("..")
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_glob_finds_what_pythons_does(tree: Path, pattern: str) -> None:
    found = {str(path.relative_to(tree)) for path in tree.glob(pattern)}
    if pattern.endswith("**"):  # since 3.13 this means files too
        found |= {str(path.relative_to(tree)) for path in tree.glob(f"{pattern}/*")}
    assert set(walk(str(tree), pattern, Allowance())) == found - {"."}


@pytest.mark.parametrize("pattern", ["", ".", "..", "../*", "/etc/*", "sub/../*", "a\0b"])
def test_what_leads_out_or_is_no_pattern_finds_nothing(tree: Path, pattern: str) -> None:
    assert list(walk(str(tree), pattern, Allowance())) == []


def test_no_pattern_makes_a_walk_longer_than_the_tree(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * 40)).mkdir(parents=True)
    found = list(walk(str(tmp_path), "/".join(["**"] * 12) + "/*", Allowance(entries=41 * 100)))
    assert len(found) == 40


@pytest.mark.parametrize(
    ("allowance", "why"),
    [
        (Allowance(entries=150), "too many"),
        (Allowance(seconds=-1), "longer than"),
        (Allowance(ended=lambda: True), "it was ended"),
    ],
)
def test_a_walk_ends_with_its_allowance(tmp_path: Path, allowance: Allowance, why: str) -> None:
    for number in range(300):
        (tmp_path / str(number)).touch()
    with pytest.raises(TooMuch, match=why):
        list(walk(str(tmp_path), "*", allowance))


def test_links_in_each_directory_do_not_multiply_a_walk_beyond_its_allowance(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).symlink_to(".")
    with pytest.raises(TooMuch, match="too many"):
        list(walk(str(tmp_path), "/".join(["*"] * 30), Allowance(entries=10_000)))
