"""Examine the installation: what is in order, what is not, and what to do about it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import subagents_nb.local_model as local_model
from subagents_nb.catalog.places import shown_folder
from subagents_nb.domain.models import PROVIDERS, choose_model
from subagents_nb.errors import SubagentsError
from subagents_nb.launching.front import agents, settings
from subagents_nb.store import open_home
from subagents_nb.store.lock import probe
from subagents_nb.supervisor import wire
from subagents_nb.supervisor.start import spawn_mode
from subagents_nb.version import __version__


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. `advice` says what to do, when something is wrong."""

    name: str
    ok: bool
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """All checks; it shows itself as text."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing needs doing."""
        return all(check.ok for check in self.checks)

    def __repr__(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = []
        for check in self.checks:
            lines.append(f"{'ok ' if check.ok else 'bad'}  {check.name:<{width}}  {check.found}")
            if check.advice:
                lines.append(f"     {'':<{width}}  → {check.advice}")
        return "\n".join(lines)


def examine() -> Checkup:
    """Look at the store, the way runs are started, settings, agents, models and keys (their names only)."""
    found = [Check("version", True, f"subagents-nb {__version__}, Python {sys.version.split()[0]}")]
    found.extend(_store())
    found.extend(_settings())
    found.append(_local())
    keys = [name for provider in PROVIDERS for name in provider.key_env if os.environ.get(name, "").strip()]
    found.append(Check("keys", True, ", ".join(keys) if keys else "no provider key is set"))
    return Checkup(tuple(found))


def _store() -> list[Check]:
    try:
        home = open_home(create=False)
    except SubagentsError as error:
        return [Check("store", False, str(error))]
    state = "there" if home.runs.is_dir() else "not made yet"
    checks = [Check("store", True, f"{shown_folder(home.root)} ({state})")]
    try:
        mode = spawn_mode()
    except SubagentsError as error:
        return [*checks, Check("spawn", False, str(error))]
    up = probe(home.supervisor / f"{wire.supervisor_key()}.lock") == "held"
    word = "a warm supervisor is up" if up else "no supervisor is up; the first launch starts one"
    return [*checks, Check("spawn", True, mode if mode == "cold" else f"{mode}; {word}")]


def _settings() -> list[Check]:
    try:
        effective = settings()
    except SubagentsError as error:
        return [Check("settings", False, str(error))]
    names = frozenset(name for name, value in os.environ.items() if value.strip())
    try:
        choice = choose_model(call=None, agent=None, settings=effective, environ_names=names)
        model = Check("model", True, f"{choice.label} (from: {choice.origin})")
    except ValueError as error:
        model = Check("model", False, str(error), "mend default_model in the settings")
    catalog = agents()
    broken = "; ".join(f"{p.where}: {p.error}" for p in catalog.problems)
    listed = ", ".join(agent.name for agent in catalog.agents)
    return [model, Check("agents", not catalog.problems, listed, broken)]


def _local() -> Check:
    problem = local_model.available()
    return Check("local model", True, problem or "installed")
