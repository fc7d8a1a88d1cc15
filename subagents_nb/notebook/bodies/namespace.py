"""What the magics take from the user's variables and put there: names to bind, schemas, templates."""

from __future__ import annotations

import builtins
import keyword
import re
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from subagents_nb.domain.values.faults import nearest

if TYPE_CHECKING:
    from subagents_nb.launching import Run

# What IPython keeps in the user's variables for its own use.
_SHELL_OWN = frozenset({"In", "Out", "exit", "quit", "open", "get_ipython", "display"})
_FIELD = re.compile(r"\{\{([^{}]*)\}\}")


def check_bindable(name: str, variables: Mapping[str, Any], *, force: bool) -> None:
    """Refuse a name that no result should be bound to.

    Raises:
        UsageError: no identifier, a keyword, IPython's own, or the name of a builtin or module (unless forced).
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"-o {name}: that is no Python name; use letters, digits and _, for example -o findings.")
    if name in _SHELL_OWN or re.fullmatch(r"_+(\d+|i+\d*|dh|oh|ih)?", name):
        raise UsageError(f"-o {name}: IPython uses that name itself; choose another, for example -o findings.")
    if force:
        return
    if hasattr(builtins, name):
        raise UsageError(f"-o {name}: that would hide the builtin {name}; choose another name or add --force.")
    if isinstance(variables.get(name), types.ModuleType):
        raise UsageError(f"-o {name}: that is a module of yours; choose another name or add --force.")


def lookup(name: str, variables: Mapping[str, Any], flag: str) -> Any:
    """Return the variable that a flag names.

    Raises:
        UsageError: there is none; the nearest is named.
    """
    if name in variables:
        return variables[name]
    own = [key for key in variables if not key.startswith("_") and key not in _SHELL_OWN]
    near = nearest(name, own)
    hint = f" Did you mean {near}?" if near else " Define it in a cell first."
    raise UsageError(f"{flag} {name}: there is no variable of this name.{hint}")


def fill_template(text: str, variables: Mapping[str, Any]) -> str:
    """Replace each `{{ name }}` by the text of that variable. Names only: nothing is evaluated.

    Raises:
        UsageError: a field is no name, or no such variable exists.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1].strip()
        if not name.isidentifier():
            raise UsageError(f"--template: {{{{ {name} }}}} is no name; only names of variables can stand there.")
        return str(lookup(name, variables, "--template"))

    return _FIELD.sub(value, text)


def typed(run: Run, variables: Mapping[str, Any]) -> Run:
    """Return the run with the user's type that it was launched with, if one of that name still has that schema."""
    from subagents_nb import launching
    from subagents_nb.errors import RequestError, StoreError
    from subagents_nb.launching.gathering.output_types import output_type

    try:
        if run.plan.is_flow:
            return _typed_chain(run, variables)
        step = run.plan.steps[-1]
        candidate = variables.get(step.schema_name or "")
        if candidate is not None and output_type(candidate).schema_ == step.output_schema:
            return launching.attach(run.id, schema=candidate)
    except (RequestError, StoreError):
        return run
    return run


def _typed_chain(run: Run, variables: Mapping[str, Any]) -> Run:
    """Do the same for the outputs of a chain, by the numbers and the names of its steps."""
    from subagents_nb import launching
    from subagents_nb.launching.gathering.output_types import OutputType, output_type

    types: dict[str | int, OutputType] = {}
    for step in run.plan.steps:
        candidate = variables.get(step.schema_name or "")
        if candidate is not None and output_type(candidate).schema_ == step.output_schema:
            types[step.index] = output_type(candidate)
            if step.output_name:
                types[step.output_name] = types[step.index]
    return launching.Run(run.home, run.id, output_types=types)
