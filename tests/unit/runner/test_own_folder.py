"""Paths of a step that works in a folder of its own: as it writes them, and as others are told."""

from __future__ import annotations

import pytest

from subagents_nb.domain.acceptance.reports import Report
from subagents_nb.domain.acceptance.verdict import Evaluation, Observed, evaluate
from subagents_nb.domain.plans.acceptance import Acceptance
from subagents_nb.runner.workspace.own_folder import from_folder, from_root


@pytest.mark.parametrize(
    ("path", "folder", "inside"),
    [
        ("sub/out.txt", "sub", "out.txt"),
        ("out.txt", None, "out.txt"),
        ("subs/a", "sub", "subs/a"),
        ("/a/b", "sub", "/a/b"),
    ],
)
def test_a_path_is_told_as_the_step_writes_it(path: str, folder: str | None, inside: str) -> None:
    assert from_folder(path, folder) == inside
    if path.startswith("sub/"):
        assert from_root(inside, folder) == path


@pytest.mark.parametrize("said", ["out.txt", "sub/out.txt", "/work/sub/out.txt"])
def test_a_report_names_what_was_changed_from_the_folder_or_from_the_root(said: str) -> None:
    asked = Acceptance(level="checked", explicit=True, evidence=("changed-files",), report="required")
    seen = Observed(changed_files=(from_folder("sub/out.txt", "sub"),))
    assert not evaluate(asked, Evaluation(report=Report(changed_files=(said,)), observed=seen)).rejected
