"""An option of a launch is one row: it is found wherever one can be said, and the rows are all there is."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.catalog import fields, parse
from subagents_nb.catalog import settings_files as settings
from subagents_nb.cli import main
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.flow import Step, StepOptions
from subagents_nb.domain.plans.options import (
    OPTIONS,
    Option,
    by_name,
    of_launch,
    of_step,
    reference,
    setting_keys,
    spellings,
)
from subagents_nb.domain.plans.request import LaunchRequest
from subagents_nb.launching import launch
from subagents_nb.launching.composing.planned import in_settings
from subagents_nb.notebook.magics.cells import Faults
from subagents_nb.notebook.magics.experiment_flags import grid_of
from subagents_nb.notebook.magics.parsers import magic_parser
from subagents_nb.notebook.magics.work_flags import launch_options
from subagents_nb.notebook.verbs.table import VERBS

# The three places: a row, a field that steps and requests inherit, and the parameter of `launch`.
MADE_UP = Option(
    "quiet_time", "duration", "how long it may say nothing", "TIME", file=("quiet_time_ms",), setting="quiet"
)
TABLE = (*OPTIONS, MADE_UP)


def _parser(name: str, options: Any = OPTIONS) -> Any:
    return magic_parser(next(verb for verb in VERBS if verb.name == name), options)


class MadeUp(StepOptions):
    quiet_time: float | str | None = None


def test_a_row_is_a_flag_of_both_cells_and_an_argument_of_launch() -> None:
    for parser, chain in ((_parser("launch", TABLE), False), (_parser("chain", TABLE), True)):
        said = launch_options(parser.read("--quiet-time 2m"), parser, Faults(), chain=chain, options=TABLE)
        assert said["quiet_time"] == "2m"
        assert "--quiet-time" in parser.flags() and "how long it may say nothing" in parser.format_help()


def test_a_row_is_a_flag_of_the_terminal() -> None:
    parser = argparse.ArgumentParser()
    for option in of_launch(TABLE, chain=True):
        option.add_to(parser.add_argument, chain=True)
    assert parser.parse_args(["--quiet-time", "2m"]).quiet_time == "2m"


def test_a_row_is_a_key_of_a_step_in_a_cell_and_in_an_agent_file_and_of_the_settings() -> None:
    assert "quiet_time" in of_step(TABLE)
    in_file = {key: (one.stored, fields.reader_of(one, key)) for key, one in spellings(TABLE).items()}
    assert {key: read(1500) for key, (name, read) in in_file.items() if name == "quiet_time_s"} == {
        "quiet_time": 1500.0, "quiet_time_ms": 1.5,
    }  # fmt: skip
    assert {key: one.in_settings for key, one in setting_keys(TABLE).items() if one is MADE_UP} == {
        "quiet": "quiet_s", "quiet_s": "quiet_s",
    }  # fmt: skip
    assert in_settings(TABLE)["quiet_time"] == "quiet_s"


def test_a_row_says_how_a_sweep_reads_its_values() -> None:
    parser = _parser("launch", TABLE)
    given = parser.read("--sweep quiet_time=1,2m --sweep max_requests=3,4")
    grid = grid_of(given, {}, parser, frozenset({"quiet_time", "max_requests"}), by_name(TABLE))
    assert grid == {"quiet_time": ["1", "2m"], "max_requests": [3, 4]}


def test_a_field_of_the_options_is_one_of_steps_and_of_requests() -> None:
    assert MadeUp(quiet_time="2m").quiet_time == "2m"
    for kind in (Step, LaunchRequest):
        assert issubclass(kind, StepOptions) and not set(vars(kind)["__annotations__"]) & {*StepOptions.model_fields}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda one: one.name)
def test_each_row_is_known_wherever_its_scope_says(option: Option) -> None:
    parameters = inspect.signature(launch).parameters
    assert option.name in parameters and option.name in LaunchRequest.model_fields
    assert (option.name in StepOptions.model_fields) == (option.scope != "run")
    assert (option.flag in _parser("chain").flags()) == (option.scope != "step")
    assert (option.flag in _parser("launch").flags()) == option.single
    if option.file is not None:
        assert option.name in parse.FIELDS
    if option.setting:
        assert option.setting in settings._READERS and option.in_settings in Settings.model_fields


def test_no_option_of_a_step_is_without_a_row() -> None:
    given: dict[str, Any] = StepOptions.model_fields
    assert given.keys() - {one.name for one in OPTIONS} == {"agent", "label", "output_schema", "schema_name"}


def test_the_reference_page_is_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "options.md").read_text(encoding="utf-8")
    made = f"{page.partition('| flag')[0]}{reference()}"
    assert page == made, (
        "write the table anew: python -c 'from subagents_nb.domain.plans import options as o; print(o.reference())'"
    )


def test_the_terminal_says_which_flag_can_not_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = tmp_path / "chain.yaml"
    body.write_text("- scout: Look around\n", encoding="utf-8")
    for flag, value, said in (
        ("--max-requests", "0", "'0' is no number of 1 or more"), ("--max-output", "{lines: ", "bad YAML"),
    ):  # fmt: skip
        assert main(["chain", str(body), flag, value]) == 1
        assert f"{flag}: {said}" in capsys.readouterr().err
