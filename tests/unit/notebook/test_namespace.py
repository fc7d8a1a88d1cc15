"""Names that are bound, looked up and filled in."""

from __future__ import annotations

import math
from typing import Any

import pytest
from IPython.core.error import UsageError

from subagents_nb.notebook.bodies.namespace import check_bindable, fill_template, lookup


@pytest.mark.parametrize("name", ["found", "_found", "größe", "run2"])
def test_an_ordinary_name_can_be_bound(name: str) -> None:
    check_bindable(name, {name: 1}, force=False)


@pytest.mark.parametrize("name", ["1a", "a-b", "a.b", "", "class", "None", "a b", "x;y"])
@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_name_is_refused_even_by_force(name: str, force: bool) -> None:
    with pytest.raises(UsageError, match="no Python name"):
        check_bindable(name, {}, force=force)


@pytest.mark.parametrize("name", ["In", "Out", "_", "__", "___", "_7", "_i", "_i7", "_ii", "_oh", "get_ipython"])
def test_names_that_the_shell_itself_writes_are_refused_even_by_force(name: str) -> None:
    with pytest.raises(UsageError, match="IPython uses that name"):
        check_bindable(name, {}, force=True)


@pytest.mark.parametrize(("name", "variables"), [("list", {}), ("print", {}), ("math", {"math": math})])
def test_builtins_and_modules_are_hidden_by_force_only(name: str, variables: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="--force"):
        check_bindable(name, variables, force=False)
    check_bindable(name, variables, force=True)


def test_a_variable_that_is_not_there_is_named_with_the_nearest_of_the_users_own() -> None:
    variables = {"Findings": dict, "open": open, "Out": {}, "_i3": ""}
    assert lookup("Findings", variables, "--schema") is dict
    with pytest.raises(
        UsageError, match=r"--schema Finding: there is no variable of this name\. Did you mean Findings\?"
    ):
        lookup("Finding", variables, "--schema")
    with pytest.raises(UsageError, match=r"Define it in a cell first\."):
        lookup("nope", variables, "--schema")  # never "Did you mean open?"


def test_a_template_is_filled_with_names_and_everything_else_stays() -> None:
    text = "{x} $y %z {{ n }} {{n}} {a: {b}} 100%"
    assert fill_template(text, {"n": 3}) == "{x} $y %z 3 3 {a: {b}} 100%"


@pytest.mark.parametrize("field", ["1 + 1", "a.b", "f()", "a[0]", ""])
def test_a_template_evaluates_nothing(field: str) -> None:
    with pytest.raises(UsageError, match="is no name"):
        fill_template("{{ " + field + " }}", {"a": 1})


def test_a_value_that_looks_like_a_field_is_not_filled_again() -> None:
    assert fill_template("{{ a }}", {"a": "{{ b }}", "b": "no"}) == "{{ b }}"


def test_a_missing_name_in_a_template_is_named() -> None:
    with pytest.raises(UsageError, match="--template missing"):
        fill_template("{{ missing }}", {})


@pytest.mark.timeout(20)
def test_a_template_that_is_never_closed_costs_no_time() -> None:
    text = "{{" + " " * 20_000
    assert fill_template(text, {}) == text and fill_template("{{\n a }}{{a}}", {"a": "{{a}}"}) == "{{a}}{{a}}"
