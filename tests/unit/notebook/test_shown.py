"""What is shown stays as it looks: each sample's page, element by element, and its text, as they are stored."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from shown_samples import dom, shown, stored

import subagents_nb
from subagents_nb.blocks import Column, DescriptionList, Table, to_text
from subagents_nb.notebook.page.html import element, note, to_page

STORED = stored()
Shown = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def samples() -> Shown:
    return {name: (page, text) for name, page, text in shown()}


def test_every_sample_is_stored(samples: Shown) -> None:
    assert list(samples) == list(STORED) and len(STORED) >= 40


@pytest.mark.parametrize("name", STORED)
def test_a_sample_looks_and_reads_as_it_is_stored(samples: Shown, name: str) -> None:
    page, text = samples[name]
    assert dom(page) == STORED[name]["page"]
    assert text.split("\n") == STORED[name]["text"]


def test_nothing_is_described_twice() -> None:
    package = Path(subagents_nb.__file__).parent
    texts = {path.relative_to(package).as_posix(): path.read_text("utf-8") for path in package.rglob("*.py")}
    defined = {name for text in texts.values() for name in re.findall(r"^ *def (\w+)", text, re.MULTILINE)}
    twins = [name for name in defined if name.endswith("_html") and f"{name.removesuffix('_html')}_text" in defined]
    assert not twins, "describe it once, and let the two writers print it"
    naming = {name: ast.parse(text) for name, text in texts.items() if re.search(r"\bhtml\b", text)}
    escaping = {name for name, tree in naming.items() for node in ast.walk(tree) if _imports_html(node)}
    assert escaping == {"notebook/page/html.py", "notebook/page/markdown.py"}, (
        "only these write HTML and escape texts for it"
    )


def _imports_html(node: ast.AST) -> bool:
    return isinstance(node, ast.Import) and any(one.name == "html" for one in node.names)


def test_a_text_is_safe_in_a_terminal_and_a_page_on_a_page() -> None:
    evil = "\x1b[31m<img src=x>\u202e"
    part = element("section", None, Table([Column(evil)], [[evil]]), DescriptionList([(evil, evil)], evil), note(evil))
    assert "\x1b" not in to_text(part) and "\u202e" not in to_text(part) and "<img src=x>" in to_text(part)
    assert "<img" not in to_page(part)
