"""Bring stored runs to other tools: `export(runs, to="mlflow")`.

In: runs that have ended.
Out: their figures in the other tool; a ledger of what was sent, which is all that is added to a run.
Never: changes a run.
"""

from __future__ import annotations

from subagents_nb.exporters.protocol import Exporter, FolderExporter, Link, exporters
from subagents_nb.exporters.sending import Export, export

__all__ = ["Export", "Exporter", "FolderExporter", "Link", "export", "exporters"]
