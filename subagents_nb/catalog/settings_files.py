"""Read and merge the settings: defaults < user file < project file < environment.

For the time limit of tools the environment comes before the files: what a file says of it stands.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from subagents_nb.catalog import fields
from subagents_nb.catalog.search_paths import SearchPath, not_counted, project_root, settings_files
from subagents_nb.catalog.trust import MAX_SETTINGS_BYTES
from subagents_nb.domain.agents.attention import AttentionSettings
from subagents_nb.domain.agents.settings import REUSE_POLICIES, Endpoint, Settings
from subagents_nb.domain.plans.options import OPTIONS, setting_keys
from subagents_nb.domain.values.faults import nearest, said_of, shown
from subagents_nb.domain.values.given import parse_amount
from subagents_nb.errors import RequestError
from subagents_nb.store.files.opener import read_plain

# A cloned repository must not be able to send the user's keys or variables elsewhere.
_USER_ONLY = frozenset(
    {"endpoints", "python_memory_mb", "tool_env", "notify_command", "keep_days", "max_live_runs", "trusted_folders"}
)
_ENDPOINT_NAME = re.compile(r"[a-z][a-z0-9_-]*\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


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
) -> Settings:
    """Return the effective settings for a launch from `cwd`.

    Args:
        cwd: the working directory; the project file is looked for at its project root.
        home: the home folder, for tests.
        environ: the environment, of which `SUBAGENTS_NB_REUSE` and the variables of options count; empty ones do not.
        reserved: provider names that an endpoint may not take.

    Raises:
        SettingsProblem: any fault; the message lists all of them.
    """
    merged = _Merge(reserved)
    merged.add_environment(environ, _BELOW_THE_FILES)
    for place in settings_files(project_root(cwd, home=home), home=home, cwd=cwd):
        merged.add_file(place)
    merged.add_environment(environ, _ABOVE_THE_FILES)
    if merged.reasons:
        raise SettingsProblem(merged.reasons)
    return Settings.model_validate({**merged.values, "origins": merged.origins})


@dataclass(slots=True)
class _Merge:
    reserved: frozenset[str]
    values: dict[str, object] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def add_file(self, place: SearchPath) -> None:
        try:
            if place.guarded and not_counted(place) is not None:
                return  # said with the agents
            data = read_plain(place.path, MAX_SETTINGS_BYTES, within=place.root)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.reasons.append(f"{place.where}: the file can't be read: {error.strerror or error}")
            return
        if len(data) > MAX_SETTINGS_BYTES:
            self.reasons.append(f"{place.where}: the file is larger than {MAX_SETTINGS_BYTES // 1024} KiB")
            return
        try:
            table = tomllib.loads(data.decode("utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            self.reasons.append(f"{place.where}: not TOML: {error}")
            return
        for key in (one.setting for one in OPTIONS if one.setting and one.kind == "duration"):
            if key in table and f"{key}_s" in table:
                self.reasons.append(f"{place.where}: `{key}` and `{key}_s` mean the same: keep one")
        for key, value in table.items():
            self._add_key(key, value, place)

    def add_environment(self, environ: Mapping[str, str], variables: Mapping[str, str]) -> None:
        for variable, key in variables.items():
            if value := environ.get(variable, "").strip():
                self._set(key, value, variable, f"{variable}: its value")

    def _add_key(self, key: str, value: object, place: SearchPath) -> None:
        if key not in _READERS and key != "endpoints":
            self.reasons.append(f"{place.where}: unknown key `{key}`{_nearest(key, (*_READERS, 'endpoints'))}")
        elif key in _USER_ONLY and place.source != "user":
            self.reasons.append(
                f"{place.where}: `{key}` is for ~/.subagents/settings.toml only: a project must not decide about your "
                "keys, your commands and your other runs"
            )
        elif key == "endpoints":
            self._add_endpoints(value, place.where)
        else:
            self._set(key, value, place.where, f"{place.where}: `{key}`")

    def _set(self, key: str, value: object, origin: str, subject: str) -> None:
        target, read = _READERS[key]
        try:
            made, before = read(value), self.values.get(target)
            # A nearer file need not say all of it.
            if isinstance(made, AttentionSettings) and isinstance(before, AttentionSettings):
                made = before.model_copy(update=made.model_dump(exclude_none=True))
            self.values[target] = made
        except fields.FieldError as error:
            self.reasons.append(f"{subject} {error}")
        else:
            self.origins[target] = origin

    def _add_endpoints(self, table: object, where: str) -> None:
        if not isinstance(table, dict):
            self.reasons.append(f"{where}: `endpoints` must be a table: [endpoints.lab]")
            return
        endpoints: dict[str, Endpoint] = {}
        for name, value in table.items():
            key = f"{where}: `endpoints.{name}`"
            if not _ENDPOINT_NAME.match(name):
                self.reasons.append(f"{key}: a name is lower-case letters, digits, _ and -, and starts with a letter")
            elif name in self.reserved:
                self.reasons.append(f"{key}: this is the name of a known provider; choose another")
            else:
                try:
                    endpoints[name] = Endpoint.model_validate(value)
                except ValidationError as error:
                    self.reasons.extend(_endpoint_faults(key, error))
                else:
                    self.origins[f"endpoints.{name}"] = where
        self.values["endpoints"] = endpoints


def _endpoint_faults(key: str, error: ValidationError) -> Iterable[str]:
    for fault in error.errors():
        part = ".".join(str(step) for step in fault["loc"])
        if fault["type"] == "extra_forbidden":
            yield f"{key}: unknown key `{part}`{_nearest(part, Endpoint.model_fields)}"
        elif fault["type"] == "missing":
            yield f"{key}: `{part}` is missing"
        elif not part:
            yield f"{key} must be a table with base_url"
        else:
            yield f"{key}: `{part}`: {said_of(fault)}"


def _nearest(key: str, known: Iterable[str]) -> str:
    known = list(known)
    near = nearest(key, known)
    return f"; did you mean `{near}`?" if near else f" (known: {', '.join(sorted(known))})"


def _some_text(value: object) -> str:
    text = fields.plain_text(value)
    if not text:
        raise fields.FieldError("must not be empty")
    return text


def _variables(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise fields.FieldError(f"must be a list of variable names, not {shown(value)}")
    for name in value:
        if not isinstance(name, str) or not _VARIABLE.match(name):
            raise fields.FieldError(f"must hold names of variables, not {shown(name)}")
    return tuple(value)


def _command(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise fields.FieldError(f'must be a list of words, as in ["notify-send", "done"], not {shown(value)}')
    return tuple(value)


def _folders(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise fields.FieldError(f'must be a list of folders, as in ["~/work"], not {shown(value)}')
    for folder in value:
        if not isinstance(folder, str) or not (Path(folder).is_absolute() or folder == "~" or folder.startswith("~/")):
            raise fields.FieldError(f"must hold whole paths, or such that begin with ~/, not {shown(folder)}")
    return tuple(value)


def _usage_budget(value: object) -> object:
    if isinstance(value, str):
        try:
            parse_amount(value)
        except ValueError as error:
            raise fields.FieldError(f"must be an amount such as 200k or $2, not {shown(value)}") from error
    elif isinstance(value, bool) or not isinstance(value, int | float | dict):
        raise fields.FieldError(f"must be an amount such as 200k or $2, or a table, not {shown(value)}")
    return value


def _max_output(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str | dict):
        raise fields.FieldError(f"must be a number of characters such as 20k, or a table, not {shown(value)}")
    return value


_PATIENCE: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "idle": ("idle_s", fields.duration),
    "long_tool": ("tool_s", fields.duration),
    "failing_edits": ("failing_edits", fields.whole_number),
    "failing_within": ("failing_window_s", fields.duration),
}


def _patience(value: object) -> AttentionSettings:
    if not isinstance(value, dict):
        raise fields.FieldError(f'must be a table: [attention] with idle = "2m", not {shown(value)}')
    found: dict[str, object] = {}
    for key, given in value.items():
        if key not in _PATIENCE:
            raise fields.FieldError(f"has no key {shown(key)}{_nearest(key, _PATIENCE)}")
        name, read = _PATIENCE[key]
        try:
            found[name] = read(given)
        except fields.FieldError as error:
            raise fields.FieldError(f"has a fault: `{key}` {error}") from error
    return AttentionSettings.model_validate(found)


def _reuse(value: object) -> str:
    if value not in REUSE_POLICIES:
        raise fields.FieldError(f"must be one of {', '.join(REUSE_POLICIES)}, not {shown(value)}")
    return str(value)


# Where a setting is read otherwise than the same option in an agent's file.
_OWN: Mapping[str, Callable[[object], object]] = {
    "model": _some_text,
    "usage_budget": _usage_budget,
    "max_output": _max_output,
}
# Key in a file -> field of Settings and how it is read.
_READERS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    **{key: (one.in_settings, _OWN.get(one.name) or fields.reader_of(one)) for key, one in setting_keys().items()},
    "default_agent": ("default_agent", fields.agent_name),
    "max_live_runs": ("max_live_runs", fields.whole_number),
    "max_parallel": ("max_parallel", fields.whole_number),
    "group_concurrency": ("group_concurrency", fields.whole_number),
    "python_memory_mb": ("python_memory_mb", fields.whole_number),
    "keep_days": ("keep_days", fields.whole_number),
    "notify_command": ("notify_command", _command),
    "tool_env": ("tool_env", _variables),
    "reuse": ("reuse", _reuse),
    "max_items": ("max_items", fields.whole_number),
    "attention": ("patience", _patience),
    "trusted_folders": ("trusted_folders", _folders),
}
_BELOW_THE_FILES: Mapping[str, str] = {one.environ: one.setting for one in OPTIONS if one.variable == "below"}
_ABOVE_THE_FILES: Mapping[str, str] = {
    **{one.environ: one.setting for one in OPTIONS if one.variable == "above"},
    "SUBAGENTS_NB_REUSE": "reuse",
}
