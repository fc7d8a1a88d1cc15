"""Runs beside one another: sweeps over grids, comparisons, tables, differences.

In: stored runs, or a grid of what to launch.
Out: sweeps, comparisons and frames.
Never: starts a run but by `launching`.
"""

from __future__ import annotations

from subagents_nb.experiments.cases.case_list import Cases
from subagents_nb.experiments.comparing import Comparison, compare
from subagents_nb.experiments.comparison.run_diffs import Diff, diff
from subagents_nb.experiments.frames import Frame, frame
from subagents_nb.experiments.rescoring import score
from subagents_nb.experiments.sweeps.retrying import retry
from subagents_nb.experiments.sweeps.sweep import Sweep, sweep
from subagents_nb.launching.gathering.experiment import current_experiment, set_experiment

__all__ = [
    "Cases",
    "Comparison",
    "Diff",
    "Frame",
    "Sweep",
    "compare",
    "current_experiment",
    "diff",
    "frame",
    "retry",
    "score",
    "set_experiment",
    "sweep",
]
