"""Run directories: files, and only files. The files are the truth; whatever else holds a copy may be thrown away.

In: records to write, run ids to read.
Out: snapshots of runs, in which what can not be read is a value with its reason.
Never: starts or ends a process, or repairs what it reads.
"""

from __future__ import annotations

from subagents_nb.store.layout import RunPaths, StoreHome, open_home
from subagents_nb.store.runs.lookup import find_run
from subagents_nb.store.runs.reader import FileRuns
from subagents_nb.store.runs.writer import RunWriter, create_run

__all__ = [
    "FileRuns",
    "RunPaths",
    "RunWriter",
    "StoreHome",
    "create_run",
    "find_run",
    "open_home",
]
