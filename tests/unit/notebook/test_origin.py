"""Where a cell says that it stands."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from subagents_nb.notebook.cells import origin


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


def test_a_server_names_the_notebook_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "look.ipynb"))
    assert origin(SimpleNamespace(user_ns={})).notebook == "look.ipynb"


def test_visual_studio_code_names_it_in_the_namespace(tmp_path: Path) -> None:
    shell = SimpleNamespace(user_ns={"__vsc_ipynb_file__": str(tmp_path / "below" / "look.ipynb")})
    assert origin(shell).notebook == "below/look.ipynb"


@pytest.mark.parametrize("named", ["/elsewhere/secret-folder/look.ipynb"])
def test_a_path_outside_is_told_by_its_last_name(named: str) -> None:
    assert origin(SimpleNamespace(user_ns={"__vsc_ipynb_file__": named})).notebook == "look.ipynb"


@pytest.mark.parametrize("named", [None, "", 7, "a console"])
def test_what_is_no_notebook_is_not_named(named: object) -> None:
    assert origin(SimpleNamespace(user_ns={"__vsc_ipynb_file__": named})).notebook is None
