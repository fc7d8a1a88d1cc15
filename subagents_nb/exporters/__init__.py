"""Bring stored runs to other tools: `export(runs, to="mlflow")`. Only reads runs; what it adds to one is a ledger."""

from __future__ import annotations

from subagents_nb.exporters.protocol import Exporter, Link, exporters
from subagents_nb.exporters.sending import Export, export

__all__ = ["Export", "Exporter", "Link", "export", "exporters"]
