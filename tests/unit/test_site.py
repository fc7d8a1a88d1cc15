"""The site shows every page, and every kind of document that lies on disk is told of."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = runpy.run_path(str(ROOT / ".ci" / "site.py"))
PAGES = runpy.run_path(str(ROOT / ".ci" / "pages.py"))


def test_every_page_and_notebook_has_its_place_in_the_site() -> None:
    shown = {page for pages in SITE["SECTIONS"].values() for page in pages.split()}
    there = {f"docs/{page.stem}" for page in ROOT.glob("docs/*.md")} | {
        f"notebooks/{book.stem}" for book in ROOT.glob("notebooks/*.ipynb")
    }
    assert there <= shown and shown - there == {"reference", "CONTRIBUTING", "CHANGELOG"}


def test_the_table_of_hosts_says_what_the_tests_say() -> None:
    page = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    assert PAGES["with_hosts"](page) == page, "run: .venv/bin/python .ci/pages.py"
    assert page.count("| `tests/") >= 8 and page.count("| not run |\n") == len(PAGES["NOT_RUN"])


def test_what_lies_on_disk_is_told_of_and_has_a_schema() -> None:
    page = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    kinds = {kind.__name__: kind for kind in SITE["documents"]()}
    told = {one.model_fields["kind"].default for one in kinds.values() if not one.__name__.startswith("Tomb")}
    assert {kind for kind in told if f"`{kind}`" not in page} == set()
    assert {"LaunchPlan", "RunStatus", "RunResult", "Question"} <= set(kinds)
    assert all(json.dumps(kind.model_json_schema()) for kind in kinds.values())


def test_what_python_code_may_call_is_on_one_page() -> None:
    assert "autofunction:: subagents_nb.launch\n" in SITE["reference"]()
