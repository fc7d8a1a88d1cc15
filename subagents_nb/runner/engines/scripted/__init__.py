"""The deterministic twin of a model: scripts played instead of requests."""
