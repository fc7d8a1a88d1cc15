"""Bring what a run made into the user's variables, by an explicit call and under names that hide nothing."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

from subagents_nb.errors import RequestError
from subagents_nb.launching import Run
from subagents_nb.launching.results.artifacts import RunArtifact, RunArtifacts

_SHELL_OWN = frozenset({"In", "Out", "exit", "quit", "open", "get_ipython", "display"})


def inject(run: Run, names: Sequence[str], *, as_: str | None = None, force: bool = False) -> list[str]:
    """Bind the artifacts of these names; all tables, if none is named. Return the variables.

    Raises:
        RequestError: there is no such artifact or notebook, or a name should not be bound; nothing is bound then.
        StoreError: an artifact is gone or was changed.
    """
    variables = _variables()
    chosen = _chosen(run, run.artifacts, names)
    if as_ is not None and len(chosen) != 1:
        raise RequestError(f"as_={as_!r} names one variable, and {len(chosen)} artifacts are meant; name one artifact.")
    bound = {as_ if as_ is not None else _variable_of(one): one for one in chosen}
    if len(bound) < len(chosen):
        raise RequestError("Two of these artifacts would get the same name; inject them one by one, with as_=.")
    for name in bound:
        _check(name, variables, given=as_ is not None, force=force)
    loaded = {name: one.load() for name, one in bound.items()}
    variables.update(loaded)
    return list(loaded)


def show_figures(run: Run) -> None:
    """Show the figures of a run as pictures."""
    import IPython.display

    show: Any = IPython.display.display
    for figure in run.artifacts.figures:
        show(figure)


def _chosen(run: Run, artifacts: RunArtifacts, names: Sequence[str]) -> list[RunArtifact]:
    if not names:
        tables = list(artifacts.tables)
        if not tables:
            raise RequestError(f"{run.name} has no table to inject; name an artifact: {_there(artifacts)}.")
        return tables
    missing = [name for name in names if not any(one.name == name for one in artifacts)]
    if missing:
        words = ", ".join(map(repr, missing))
        raise RequestError(f"{run.name} has no artifact {words}; it has: {_there(artifacts)}.")
    return [artifacts[name] for name in dict.fromkeys(names)]


def _there(artifacts: RunArtifacts) -> str:
    return ", ".join(one.name for one in artifacts) or "none"


def _variable_of(artifact: RunArtifact) -> str:
    """Return what to call the variable of an artifact: of a file, its name without folders and ending."""
    stem = artifact.name.rpartition("/")[2].partition(".")[0]
    return re.sub(r"\W", "_", stem)


def _check(name: str, variables: Mapping[str, Any], *, given: bool, force: bool) -> None:
    """Refuse a name that would hide something. What a run chose is refused where a person's own word would do."""
    advice = "choose another name" if given else "give it a name with as_="
    if not name.isidentifier() or keyword.iskeyword(name):
        raise RequestError(f"{name!r} is no Python name; {advice}.")
    if name in _SHELL_OWN or re.fullmatch(r"_+(\d+|i+\d*|dh|oh|ih)?", name):
        raise RequestError(f"IPython uses the name {name} itself; {advice}.")
    if hasattr(builtins, name) and not (given and force):
        raise RequestError(f"{name} would hide the builtin of that name; {advice}.")
    if name in variables and not force:
        raise RequestError(f"There is a variable {name} already; {advice}, or say force=True.")


def _variables() -> dict[str, Any]:
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    if shell is None:
        raise RequestError("There is no notebook to bind variables in; use run.artifacts[NAME].load().")
    return shell.user_ns  # type: ignore[no-any-return]
