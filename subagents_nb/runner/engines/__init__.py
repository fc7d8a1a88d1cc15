"""Ways to carry out a step. Nothing here imports a model library before a step asks for it."""

from __future__ import annotations

from subagents_nb.runner.engines.choose import engine_for, warm_up, warm_up_further

__all__ = ["engine_for", "warm_up", "warm_up_further"]
