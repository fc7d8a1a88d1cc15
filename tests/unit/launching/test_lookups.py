"""What is looked up before a launch is planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.launching.gathering.lookups import look_up_environment
from subagents_nb.store import StoreHome


def test_a_store_in_the_working_directory_is_known_through_links_too(store_home: StoreHome, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert look_up_environment(tmp_path / "link", environ={}).store == "store"
    assert look_up_environment(tmp_path / "work", environ={}).store is None


@pytest.mark.parametrize("inner", ["", "runs", "runs/r-x"])
def test_nothing_works_in_the_run_store(store_home: StoreHome, inner: str) -> None:
    place = store_home.root / inner
    place.mkdir(exist_ok=True)
    assert "lies in the run store" in (look_up_environment(place, environ={}).cwd_problem or "")
