"""Delegate work from a notebook cell to LLM subagents that outlive the kernel.

    %load_ext subagents_nb

    %%subagent scout -o findings
    Which columns of data/sales.csv look wrong, and why?

The same as plain functions: `run = launch("scout", "Which columns ...")`, then `await run`. Importing this package
starts nothing and reads no file; each name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from subagents_nb.above import register
from subagents_nb.version import __version__ as __version__

if TYPE_CHECKING:
    from subagents_nb.authoring import (
        create_agent,
        disable_agent,
        eject_agent,
        enable_agent,
        refinement,
        validate_agents,
    )
    from subagents_nb.catalog import register_agent
    from subagents_nb.experiments import Cases, compare, diff, frame, retry, score, sweep
    from subagents_nb.exporters import export
    from subagents_nb.launching import (
        Preflight,
        Run,
        Runs,
        agents,
        attach,
        chain,
        expand,
        launch,
        parallel,
        preflight,
        runs,
        settings,
        step,
        trust,
    )
    from subagents_nb.launching.event_hook import on_event
    from subagents_nb.notebook.board.board_show import board

_HOMES = {
    name: f"subagents_nb.{home}"
    for home, names in {
        "authoring": "create_agent disable_agent eject_agent enable_agent refinement validate_agents",
        "catalog": "register_agent",
        "experiments": "Cases compare diff frame retry score sweep",
        "exporters": "export",
        "launching": "Preflight Run Runs agents attach chain expand launch parallel preflight runs settings step trust",
        "launching.event_hook": "on_event",
        "notebook.board.board_show": "board",
    }.items()
    for name in names.split()
}

__all__ = [
    "Cases",
    "Preflight",
    "Run",
    "Runs",
    "agents",
    "attach",
    "board",
    "chain",
    "compare",
    "create_agent",
    "diff",
    "disable_agent",
    "eject_agent",
    "enable_agent",
    "expand",
    "export",
    "frame",
    "launch",
    "load_ipython_extension",
    "on_event",
    "parallel",
    "preflight",
    "refinement",
    "register_agent",
    "retry",
    "runs",
    "score",
    "settings",
    "step",
    "sweep",
    "trust",
    "unload_ipython_extension",
    "validate_agents",
]


# What a layer calls of one above it, by `above`; the rest of it is in the table before.
_ABOVE = {
    "OtelExporter": "subagents_nb.exporters.otel",
    "board_widget": "subagents_nb.notebook.held.held_board",
    "cases_html": "subagents_nb.notebook.comparing.compare_view",
    "comparison_html": "subagents_nb.notebook.comparing.compare_view",
    "diff_html": "subagents_nb.notebook.comparing.compare_view",
    "gather": "subagents_nb.exporters.gather",
    "inject": "subagents_nb.notebook.injecting",
    "run_html": "subagents_nb.notebook.views.show",
    "run_widget": "subagents_nb.notebook.held.held_run",
    "listed_html": "subagents_nb.notebook.plans.lists",
    "marimo_display": "subagents_nb.notebook.held.marimo_display",
    "show_comparison": "subagents_nb.notebook.comparing.compare_show",
    "show_figures": "subagents_nb.notebook.injecting",
    "show_run": "subagents_nb.notebook.views.show",
    "show_sweep": "subagents_nb.notebook.comparing.sweep_show",
    "sweep_html": "subagents_nb.notebook.comparing.sweep_view",
    "sweep_widget": "subagents_nb.notebook.held.held_sweep",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _load(name)


def _load(name: str) -> Any:
    from subagents_nb.errors import unchanged

    with unchanged():
        return getattr(importlib.import_module((_HOMES | _ABOVE)[name]), name)


register(_load)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """Register the magics. Starts no thread, no process, reads no file; loading twice changes nothing.

    When the cell is over, a page is asked for views that an earlier kernel left on it.
    """
    from subagents_nb.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics away and stop watching; runs go on."""
    from subagents_nb.notebook.extension import unload

    unload(shell)
