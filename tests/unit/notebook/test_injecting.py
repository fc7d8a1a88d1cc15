"""What a run made comes into the user's variables by an explicit call, and hides nothing."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import Any

import pandas
import pytest
from IPython.core.interactiveshell import InteractiveShell
from support import make_plan, make_recovery, make_result, make_status, run_id

from subagents_nb.domain.runs.records import Artifact
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RequestError, StoreError
from subagents_nb.launching import Run
from subagents_nb.store import StoreHome, create_run

PARQUET = "application/vnd.apache.parquet"


def parquet() -> bytes:
    file = io.BytesIO()
    pandas.DataFrame({"a": [1, 2]}).to_parquet(file)
    return file.getvalue()


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The variables of a notebook."""
    shell: Any = type("Shell", (), {"user_ns": {"mine": 1}})()
    monkeypatch.setattr(InteractiveShell, "initialized", classmethod(lambda _: True))
    monkeypatch.setattr(InteractiveShell, "instance", classmethod(lambda _: shell))
    found: dict[str, Any] = shell.user_ns
    return found


@pytest.fixture
def run(store_home: StoreHome) -> Callable[..., Run]:
    """A run that left artifacts of these names."""

    def make(*names: str) -> Run:
        paths = create_run(store_home, make_plan(), make_recovery()).paths
        writer_status = make_status(state=RunState.COMPLETE)
        (paths.root / "artifacts").mkdir(mode=0o700)
        records = []
        for number, name in enumerate(names):
            table = name.startswith("table")
            data, kind = (parquet(), "table") if table else (b"text", "file")
            path = f"artifacts/{number}"
            (paths.root / path).write_bytes(data)
            media = PARQUET if table else "text/plain"
            digest = hashlib.sha256(data).hexdigest()
            fields = {"path": path, "size": len(data), "sha256": digest, "media_type": media, "kind": kind}
            records.append(Artifact.model_validate({**fields, "name": name, "step": 0}))
        paths.status.write_text(writer_status.model_dump_json())
        paths.result.write_text(make_result(artifacts=tuple(records)).model_dump_json())
        return Run(store_home, run_id())

    return make


def test_tables_are_bound_under_their_names(run: Any, variables: dict[str, Any]) -> None:
    assert run("table1", "table2", "notes.txt").inject() == ["table1", "table2"]
    assert variables["table1"].a.tolist() == [1, 2]
    assert "notes" not in variables


def test_one_artifact_gets_the_name_that_the_person_gives(run: Any, variables: dict[str, Any]) -> None:
    made = run("table1", "out/notes.txt")
    assert made.inject("table1", as_="df") == ["df"]
    assert made.inject("out/notes.txt") == ["notes"]
    assert variables["notes"] == "text"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("print.txt", "would hide the builtin"),
        ("class.txt", "is no Python name"),
        ("2.txt", "is no Python name"),
        ("get_ipython.py", "IPython uses the name"),
        ("_.txt", "IPython uses the name"),
        ("mine.txt", "There is a variable mine already"),
    ],
)
def test_a_name_that_the_run_chose_hides_nothing(run: Any, variables: dict[str, Any], name: str, why: str) -> None:
    before, made = dict(variables), run(name)
    with pytest.raises(RequestError, match=why):
        made.inject(name, force=name.startswith("print"))
    assert variables == before
    assert made.inject(name, as_="fine") == ["fine"]


def test_a_variable_that_is_there_is_replaced_on_the_persons_word_only(run: Any, variables: dict[str, Any]) -> None:
    made = run("table1")
    with pytest.raises(RequestError, match="There is a variable mine already; choose another name, or say force=True"):
        made.inject("table1", as_="mine")
    assert made.inject("table1", as_="mine", force=True) == ["mine"]


def test_nothing_is_bound_when_something_is_wrong(run: Any, variables: dict[str, Any]) -> None:
    made = run("table1", "a/n.txt", "b/n.txt")
    for arguments, why in [
        (("table1", "gone"), "has no artifact 'gone'; it has: table1, a/n.txt, b/n.txt"),
        (("a/n.txt", "b/n.txt"), "would get the same name"),
    ]:
        with pytest.raises(RequestError, match=why):
            made.inject(*arguments)
    with pytest.raises(RequestError, match="names one variable, and 2 artifacts are meant"):
        made.inject("table1", "a/n.txt", as_="x")
    made.artifacts["a/n.txt"].path.write_text("changed")
    with pytest.raises(StoreError, match="is not what the run left"):
        made.inject("table1", "a/n.txt")
    assert variables == {"mine": 1}


def test_a_run_without_tables_says_what_there_is(run: Any, variables: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=r"has no table to inject; name an artifact: n\.txt"):
        run("n.txt").inject()


def test_without_a_notebook_there_is_nothing_to_bind_in(run: Any) -> None:
    with pytest.raises(RequestError, match="There is no notebook"):
        run("table1").inject()
