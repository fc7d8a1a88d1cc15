"""What the steps of a chain were planned with where they said nothing, so that what is appended is planned likewise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.values.base import Value

# As the launch named them. What is not here a chain says at its steps, or it holds for the run as a whole.
ASKED = tuple(one.name for one in OPTIONS if one.scope == "both")
# Those of the settings by which steps are planned.
_SETTINGS = {one.in_settings for one in OPTIONS if one.scope != "run"} & Settings.model_fields.keys() | {
    "default_agent", "group_concurrency", "max_items",
}  # fmt: skip


class LaunchDefaults(Value):
    """Recorded beside the contract and no part of it: the steps of the plan are what it came to."""

    asked: dict[str, Any] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def of(cls, asked: Mapping[str, Any], settings: Settings, *, fallback: str | None) -> LaunchDefaults:
        """Return those of a launch; `fallback` is the model of a step for which nobody names one."""
        named = {name: value for name, value in asked.items() if name in ASKED and value is not None}
        own = settings.model_dump(mode="json", include=_SETTINGS, exclude_none=True)
        return cls(asked=named, settings=own | ({"default_model": fallback} if fallback else {}))

    def settings_of(self, now: Settings) -> Settings:
        """Return the settings of today with those that the launch was planned by."""
        unset = dict.fromkeys(name for name in _SETTINGS if Settings.model_fields[name].default is None)
        known = {name: value for name, value in self.settings.items() if name in Settings.model_fields}
        return Settings.model_validate({**now.model_dump(), **unset, **known})
