"""Whether a step is accepted: the report in its answer read, the verdict on it decided."""
