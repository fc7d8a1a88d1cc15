"""The limits that hold for all launches of a user."""

from __future__ import annotations

import os
from pathlib import Path

from subagents_nb.catalog import load_settings
from subagents_nb.domain.agents.models import PROVIDER_NAMES


def live_limit() -> int:
    """Return how many runs may be live at once, by the settings.

    Raises:
        SettingsProblem: they can't be used.
    """
    return load_settings(Path.cwd(), environ=os.environ, reserved=PROVIDER_NAMES).max_live_runs
