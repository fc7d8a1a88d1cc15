"""Named sets of runs, sweeps, comparison."""
