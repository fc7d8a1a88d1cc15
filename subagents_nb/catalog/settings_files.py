"""Read and merge the settings: defaults < user file < project file < environment.

For the time limit of tools the environment comes before the files: what a file says of it stands.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, create_model

from subagents_nb.catalog import fields
from subagents_nb.catalog.scopes.override_tables import read_overrides
from subagents_nb.catalog.scopes.policy_table import (
    MANAGED,
    PolicyTable,
    ceiling_of,
    managed_ceiling,
    narrowed_to,
    widened,
)
from subagents_nb.catalog.scopes.project_limits import beyond, lower_of
from subagents_nb.catalog.search_paths import SearchPath, not_counted, project_root, settings_files
from subagents_nb.catalog.trust import MAX_SETTINGS_BYTES
from subagents_nb.domain.agents.attention import AttentionSettings
from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.agents.override import AgentOverride
from subagents_nb.domain.agents.settings import Endpoint, ReusePolicy, Settings
from subagents_nb.domain.mcp.definitions import read_servers
from subagents_nb.domain.plans.bounds import OutputBound
from subagents_nb.domain.plans.budgets import WrittenUsageBudget
from subagents_nb.domain.plans.options import OPTIONS, setting_keys
from subagents_nb.domain.policy.policy import Ceiling
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.given import Count, Seconds, Text
from subagents_nb.domain.values.reading import mapping, matching, read
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.errors import RequestError
from subagents_nb.store.files.opener import read_plain

# A cloned repository must not be able to send the user's keys or variables elsewhere.
_USER_ONLY = frozenset(
    {
        "endpoints",
        "python_memory_mb",
        "tool_env",
        "notify_command",
        "keep_days",
        "max_live_runs",
        "trusted_folders",
        "response_aliases",
    }
)


class SettingsProblem(RequestError):
    """Settings that can't be used; `reasons` holds every fault found, each with its file and key."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


def load_settings(
    cwd: Path,
    *,
    home: Path | None = None,
    environ: Mapping[str, str],
    reserved: frozenset[str] = frozenset(),
    managed: Path = MANAGED,
    root: Path | None = None,
) -> Settings:
    """Return the effective settings for a launch from `cwd`.

    Args:
        cwd: the working directory; the project file is looked for at its project root.
        home: the home folder, for tests.
        environ: the environment, of which `SUBAGENTS_NB_REUSE` and the variables of options count; empty ones do not.
        reserved: provider names that an endpoint may not take.
        managed: the administrator's policy, for tests.
        root: the project root, where it is known already.

    Raises:
        SettingsProblem: any fault; the message lists all of them.
    """
    merged = _Merge(reserved)
    merged.add_ceiling(*managed_ceiling(managed))
    merged.add_environment(environ, _BELOW_THE_FILES)
    for place in settings_files(root or project_root(cwd, home=home), home=home, cwd=cwd):
        merged.add_file(place)
    merged.add_environment(environ, _ABOVE_THE_FILES)
    if merged.reasons:
        raise SettingsProblem(merged.reasons)
    origins = merged.origins | {f"agents.{one.name}": one.origin for one in merged.agents}
    whole = {
        "agents": tuple(merged.agents),
        "mcp": tuple(merged.mcp.values()),
        "ceilings": tuple(merged.ceilings),
        "origins": origins,
        "held_back": tuple(merged.held_back.values()),
        "raised": tuple(merged.raised.values()),
    }
    return Settings.model_validate({**merged.values, **whole})


@dataclass(slots=True)
class _Merge:
    reserved: frozenset[str]
    values: dict[str, object] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    agents: list[AgentOverride] = field(default_factory=list)
    ceilings: list[Ceiling] = field(default_factory=list)
    mcp: dict[str, McpServer] = field(default_factory=dict)
    held_back: dict[str, str] = field(default_factory=dict)  # by field, what a project says beyond the person's word
    raised: dict[str, str] = field(default_factory=dict)  # ... and beyond what holds where nobody says anything

    def add_ceiling(self, ceiling: Ceiling | None, reasons: Iterable[Reason], *, project: bool = False) -> None:
        """Take what one source allows at most."""
        self.reasons.extend(reasons)
        if ceiling is not None and project:
            wider = widened(ceiling, self.ceilings)
            self.reasons.extend(Reason(text, place=ceiling.origin) for text in wider)
        if ceiling is not None:
            self.ceilings.append(ceiling)

    def add_file(self, place: SearchPath) -> None:
        try:
            if place.guarded and not_counted(place) is not None:
                return None  # said with the agents
            data = read_plain(place.path, MAX_SETTINGS_BYTES, within=place.root)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return self._refuse(place.where, f"the file can't be read: {error.strerror or error}")
        if len(data) > MAX_SETTINGS_BYTES:
            return self._refuse(place.where, f"the file is larger than {MAX_SETTINGS_BYTES // 1024} KiB")
        try:
            table = tomllib.loads(data.decode("utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._refuse(place.where, f"not TOML: {error}")
        if place.source != "user":
            for key in [key for key in table if key in _USER_ONLY]:
                del table[key]
                why = "a project must not decide about your keys, your commands and your other runs"
                self._refuse(place.where, f"`{key}` is for ~/.subagents/settings.toml only: {why}")
        if (tables := table.pop("agents", None)) is not None:
            by_project = place.source != "user"
            said = read_overrides(tables, origin=place.where, by_project=by_project, reasons=self.reasons)
            self.agents += said
        if isinstance(tables := table.pop("mcp", {}), dict):
            servers, problems = read_servers(tables, where=place.where, source=place.source)
            self.mcp = {**self.mcp, **{one.name: one for one in servers}}
            for name, text in problems.items():
                self._refuse(place.where, f"`mcp.{name}`: {text}")
        else:
            self._refuse(place.where, f"`mcp` must be tables: [mcp.files], not {shown(tables)}")
        policy = table.pop("policy", None)
        if isinstance(policy, dict):
            self.add_ceiling(*ceiling_of(policy, place.where), project=place.source != "user")
        elif policy is not None:
            table["policy"] = policy  # told as what it is
        written = self._add(table, place.where, by_project=place.source != "user")
        return self._narrow(written, place) if written is not None else None

    def _narrow(self, written: Value, place: SearchPath) -> None:
        """Take what a file says of sandboxes for all agents: what it forbids stands, whatever others say after it.

        It is what was read of the file, in whatever spelling: `network = "no"` forbids as much.
        """
        sandbox, network = getattr(written, "sandbox", None), getattr(written, "network", None)
        if place.source != "user":
            above = next((one for one in self.ceilings if one.sandbox is not None), None)
            if sandbox == "none" and above is not None:
                text = f"project settings can't widen: sandbox is none, and workspace in {above.origin}"
                self.reasons.append(Reason(text, place=place.where))
            if network is True:
                text = "project settings can't widen: network is true"
                self.reasons.append(Reason(text, place=place.where))
        limits = narrowed_to(sandbox, network)
        if limits:
            self.ceilings.append(Ceiling(origin=place.where, **limits))

    def add_environment(self, environ: Mapping[str, str], variables: Mapping[str, str]) -> None:
        for variable, key in variables.items():
            if value := environ.get(variable, "").strip():
                self._add({key: value}, variable, called="its value")

    def _refuse(self, origin: str, text: str) -> None:
        self.reasons.append(Reason(text, lead=origin, place=origin))

    def _add(
        self, table: Mapping[str, Any], origin: str, called: str = "", *, by_project: bool = False
    ) -> Value | None:
        """Take what one file or variable says over what those before it said; of limits a project only lowers it.

        Return what it says, as it was read; None if it can't be.
        """
        written, faults = read(_SettingsFile, table)
        for fault in faults:
            self.reasons.append(Reason(fault.about(f"{origin}: {called or f'`{fault.where}`'}"), place=origin))
        spelled: dict[str, str] = {}
        for key in (key for key in table if key in _KEYS):
            target = _KEYS[key][0]
            if target in spelled:
                self._refuse(origin, f"`{spelled[target]}` and `{key}` mean the same: keep one")
            spelled[target] = key
            if written is None:
                continue
            setting = getattr(written, key)
            before = self.values.get(target)
            if by_project and self._is_held_back(target, setting, origin):
                continue
            if key == "endpoints":
                for name in sorted(self.reserved & setting.keys()):
                    self._refuse(origin, f"`endpoints.{name}`: this is the name of a known provider; choose another")
                self.origins |= {f"endpoints.{name}": origin for name in setting}
            else:
                self.origins[target] = origin
            if isinstance(before, AttentionSettings):  # a nearer file need not say all of it
                setting = before.model_copy(update=setting.model_dump(exclude_none=True))
            self.values[target] = lower_of(target, before, setting) if by_project else setting
        return written

    def _is_held_back(self, target: str, setting: object, origin: str) -> bool:
        """Say whether nothing of what a project says of a limit holds; note the rest, and what is above ours."""
        own = self.values.get(target)
        if own is None:
            if said := beyond(target, Settings.model_fields[target].get_default(), setting):
                self.raised[target] = said
            return False
        if said := beyond(target, own, setting):
            self.held_back[target] = f"{origin}: {said}, which {self.origins[target]} says and which counts."
        return bool(said) and lower_of(target, own, setting) == lower_of(target, own, own)


class _Attention(Value):
    """When to point at a run, as it is written."""

    idle: Seconds | None = None
    long_tool: Seconds | None = None
    failing_edits: Count | None = None
    failing_within: Seconds | None = None

    def settings(self) -> AttentionSettings:
        within, edits = self.failing_within, self.failing_edits
        return AttentionSettings(idle_s=self.idle, tool_s=self.long_tool, failing_edits=edits, failing_window_s=within)


_Table = mapping('a table: [attention] with idle = "2m"')
_Patience = Annotated[_Attention, _Table, AfterValidator(_Attention.settings)]
_EndpointName = Annotated[str, matching("[a-z][a-z0-9_-]*", "lower-case letters, digits, _ and -, a letter first")]
_Endpoints = dict[_EndpointName, Annotated[Endpoint, mapping("a table with base_url")]]
_NAMED = 'a table: [response_aliases] with "openai:gpt-5-mini" = ["another-name"]'
_Aliases = Annotated[dict[Text, Annotated[tuple[Text, ...], BeforeValidator(fields.text_list)]], mapping(_NAMED)]
_Variable = Annotated[str, matching("[A-Za-z_][A-Za-z0-9_]*", "the name of a variable")]
_Folder = Annotated[str, matching("(?s)/.*|~(/.*)?", "a whole path, or one that begins with ~/")]
# Where a setting is read otherwise than the same option in an agent's file.
_OWN: Mapping[str, Any] = {
    "model": Text,
    "usage_budget": Annotated[Any, fields.well_formed(WrittenUsageBudget)],
    "max_output": Annotated[Any, fields.well_formed(OutputBound)],
}
# Key in a file -> the field of Settings that it fills and what it may hold.
_KEYS: Mapping[str, tuple[str, Any]] = {
    **{key: (one.in_settings, _OWN.get(one.name) or fields.type_of(one)) for key, one in setting_keys().items()},
    **{key: (key, Count) for key in ("max_live_runs", "max_parallel", "group_concurrency", "python_memory_mb",
                                     "keep_days", "max_items")},
    "default_agent": ("default_agent", fields.AgentName),
    "notify_command": ("notify_command", Annotated[tuple[Text, ...], Field(min_length=1)]),
    "tool_env": ("tool_env", tuple[_Variable, ...]),
    "reuse": ("reuse", ReusePolicy),
    "attention": ("patience", _Patience),
    "trusted_folders": ("trusted_folders", tuple[_Folder, ...]),
    "agents": ("agents", Any),  # read apart, since who says it decides what it may say
    "mcp": ("mcp", Any),
    "response_aliases": ("response_aliases", _Aliases),
    "endpoints": ("endpoints", Annotated[_Endpoints, mapping("a table: [endpoints.lab]")]),
    "policy": ("ceilings", PolicyTable),
}  # fmt: skip
_SettingsFile: type[Value] = create_model(  # type: ignore[call-overload]
    "SettingsFile", __base__=Value, **{key: (kind, None) for key, (_, kind) in _KEYS.items()}
)
_BELOW_THE_FILES: Mapping[str, str] = {one.environ: one.setting for one in OPTIONS if one.variable == "below"}
_ABOVE_THE_FILES: Mapping[str, str] = {
    **{one.environ: one.setting for one in OPTIONS if one.variable == "above"},
    "SUBAGENTS_NB_REUSE": "reuse",
}
