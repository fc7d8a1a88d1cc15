"""Processes, and only processes: starting runners, watching them end, proving who is alive.

Its doors are `start.start_runner`, `sweeping.sweep` and `liveness.liveness_of`. Nothing is imported here: the shim runs
from this package and must have its runner started before anything heavy is loaded.

In: a run directory that holds a plan.
Out: a runner at work; when it has ended, how it ended, proved.
Never: hears a model, or knows more of the runner than its entry point.
"""
