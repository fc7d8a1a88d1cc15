"""How much a model may think before it answers."""

from __future__ import annotations

from typing import Literal

Thinking = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
THINKING_LEVELS: tuple[Thinking, ...] = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
