"""An option of a launch is one row: it is found wherever one can be said, and the rows are all there is."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import subagents_nb
from subagents_nb.catalog import fields
from subagents_nb.catalog import settings_files as settings
from subagents_nb.cli import main
from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.flow import Step, StepOptions
from subagents_nb.domain.plans.options import OPTIONS, Option, reference
from subagents_nb.domain.plans.request import LaunchRequest
from subagents_nb.launching import launch
from subagents_nb.notebook.magics.parsers import magic_parser
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.store import StoreHome

PACKAGE = Path(subagents_nb.__file__).parent
# The three places, each by what the new line stands before; and the fields that keep it: of agents, settings, plans.
PLACES = {
    "domain/plans/options.py": (
        '    Option("temperature"',
        '    Option("quiet_time", "duration", "how long it may say nothing", "TIME",\n'
        '           file=("quiet_time_ms",), setting="quiet", variable="above", trait="quiet_time"),\n',
    ),
    "domain/plans/flow.py": ("    temperature: Real", "    quiet_time: Time | None = None\n"),
    "launching/front.py": ("    temperature: float", "    quiet_time: float | str | None = None,\n"),
    "domain/agents/agent.py": ("    timeout_s:", "    quiet_time_s: float | None = None\n"),
    "domain/agents/settings.py": ("    timeout_s:", "    quiet_s: float | None = None\n"),
    "domain/plans/plan.py": ("    tool_timeout_s:", "    quiet_time_s: float | None = None\n"),
}
FLAGS = {verb.name: magic_parser(verb).flags() for verb in VERBS if verb.launches}
CHILD = Path(__file__).parents[2] / "children" / "made_up_option.py"
REFUSED = "quiet_time: 'never' is no length of time; write seconds (90) or 90s, 30m, 1.5h"


@pytest.fixture(scope="module")
def changed_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("changed")
    shutil.copytree(PACKAGE, place / "subagents_nb", copy_function=os.symlink)
    for name, (before, line) in PLACES.items():
        path = place / "subagents_nb" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, (name, before)
        path.unlink()
        path.write_text(text.replace(before, line + before), encoding="utf-8")
    return place


def test_an_option_that_is_made_up_in_its_places_can_be_said_wherever_an_option_can(
    changed_package: Path, store_home: StoreHome
) -> None:
    environ = {**os.environ, "PYTHONPATH": str(changed_package)}
    child = subprocess.run(
        [sys.executable, CHILD], env=environ, stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    of_the_first_step = f"stage 1 (scout): {REFUSED}"
    assert found == {
        "python": [REFUSED],
        "step": "2m",
        "signatures": True,
        "cell": [REFUSED],
        "chain": [f"line 2: {of_the_first_step}"],
        "key": [f"line 3: {of_the_first_step}"],
        "sweep": [REFUSED],
        "terminal": f"subagents-nb: Not launched: line 1: {of_the_first_step}\n",
        "help": True,
        "default": ["the default of quiet_time: 'never' is no length of time; write seconds (90) or 90s, 30m, 1.5h"],
        "files": {"a": 1.5, "b": 120.0},
        "settings": 180.0,
        "plans": [120.0, 1.5, 180.0],
        "environment": 240.0,
    }


@pytest.mark.parametrize("option", OPTIONS, ids=lambda one: one.name)
def test_each_row_is_known_wherever_its_scope_says(option: Option) -> None:
    assert option.name in inspect.signature(launch).parameters and option.name in LaunchRequest.model_fields
    for kind in (Step, LaunchRequest):
        assert issubclass(kind, StepOptions) and not set(vars(kind)["__annotations__"]) & {*StepOptions.model_fields}
    assert (option.name in StepOptions.model_fields) == (option.scope != "run")
    assert (option.flag in FLAGS["chain"]) == (option.scope != "step" and option.line)
    assert (option.flag in FLAGS["launch"]) == (option.single and option.line)
    if option.file is not None:
        assert option.name in fields.KEYS and option.stored in AgentDefinition.model_fields
    if option.setting:
        assert option.setting in settings._KEYS
    if option.setting or (option.trait and option.behind):
        assert option.in_settings in Settings.model_fields


def test_no_option_of_a_step_is_without_a_row() -> None:
    given: dict[str, Any] = StepOptions.model_fields
    assert given.keys() - {one.name for one in OPTIONS} == {"agent", "label", "output_schema", "schema_name"}


def test_the_reference_page_is_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "options.md").read_text(encoding="utf-8")
    made = f"{page.partition('| flag')[0]}{reference()}"
    assert page == made, "write the table anew: python .ci/pages.py"


def test_the_terminal_says_which_flag_can_not_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = tmp_path / "chain.yaml"
    body.write_text("- scout: Look around\n", encoding="utf-8")
    for flag, value, said in (
        ("--max-requests", "0", "'0' is no number of 1 or more"), ("--max-output", "{lines: ", "bad YAML"),
    ):  # fmt: skip
        assert main(["chain", str(body), flag, value]) == 1
        assert f"{flag}: {said}" in capsys.readouterr().err
