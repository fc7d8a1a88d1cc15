"""Names of comparisons that forward to what took their place."""

from __future__ import annotations

from abc import ABC, abstractmethod

from subagents_nb.experiments.comparison.inference import Inference


class OlderNames(ABC):
    """What a comparison could be asked before `inference` knew all of it."""

    @abstractmethod
    def inference(self, metric: str) -> Inference:
        """Return what is known of a metric in all groups."""

    def is_share(self, metric: str) -> bool:
        """Say whether every judgement under a metric is 0 or 1."""
        return self.inference(metric).is_share
