"""The room's door."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from subagents_nb import local_model
from subagents_nb.errors import SubagentsError


def test_the_door_has_these_names_and_each_opens() -> None:
    assert local_model.__all__ == [
        "WINDOW_TOKENS",
        "Endpoint",
        "LocalModelError",
        "available",
        "ensure",
        "install",
        "stop",
        "uninstall",
        "weights_path",
    ]
    assert all(getattr(local_model, name) for name in local_model.__all__)
    assert dir(local_model) == sorted(local_model.__all__)
    assert issubclass(local_model.LocalModelError, SubagentsError)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = local_model.nonsense


def test_importing_the_package_loads_no_engine_and_nothing_heavy() -> None:
    code = (
        "import sys, json, subagents_nb.errors; before = set(sys.modules); import subagents_nb.local_model; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(finished.stdout) == ["subagents_nb.local_model", "subagents_nb.local_model.model_errors"]
