"""Where a cell says that it stands."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from subagents_nb.domain.values.base import sha256_text
from subagents_nb.launching.gathering.lineage import origin_here
from subagents_nb.notebook.magics.cells import origin


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


def test_a_launch_from_python_says_where_it_stands_as_a_magic_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "look.ipynb")
    parent = {"metadata": {"cellId": "c-1"}, "content": {"code": "launch('x')"}}
    shell = SimpleNamespace(user_ns={}, get_parent=lambda: parent)
    said = origin_here(shell=shell)
    assert (said.surface, said.notebook, said.cell_id) == ("python", "look.ipynb", "c-1")
    assert said.source_sha256 == sha256_text("launch('x')")
    assert said == origin(shell).model_copy(update={"surface": "python"})


def test_a_cell_id_that_holds_the_notebooks_path_is_told_without_it() -> None:
    parent = {"metadata": {"cellId": "vscode-notebook-cell:/home/ada/look.ipynb#W2sZmlsZQ"}}
    assert origin_here(shell=SimpleNamespace(user_ns={}, get_parent=lambda: parent)).cell_id == "W2sZmlsZQ"


def test_a_host_whose_shell_can_not_say_keeps_no_launch_from_beginning() -> None:
    def broken() -> None:
        raise LookupError("no parent in this thread")

    assert origin_here(shell=SimpleNamespace(user_ns={}, get_parent=broken)).cell_id is None


@pytest.mark.parametrize("named", [None, "", 7, "a console"])
def test_what_is_no_notebook_is_not_named(named: object) -> None:
    assert origin(SimpleNamespace(user_ns={"__vsc_ipynb_file__": named})).notebook is None
