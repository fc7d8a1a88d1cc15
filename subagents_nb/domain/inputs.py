"""Values of the notebook that a run was given: what each is, where its copy lies, and what the agent is told of it."""

from __future__ import annotations

from typing import Literal

from subagents_nb.domain.base import Value

InputKind = Literal["table", "array", "text", "bytes", "json", "figure"]


class InputRecord(Value):
    """One value, stored once in the run's directory and never changed there."""

    name: str  # an identifier
    kind: InputKind
    type: str  # the Python type, such as pandas.DataFrame
    shape: tuple[int, ...] | None = None
    file: str  # below the run's directory: inputs/NAME.EXT
    media_type: str
    bytes: int
    sha256: str
    description: str = ""  # columns, types and first rows, for the agent; cut

    def contract(self) -> dict[str, object]:
        """Return what the launch contract binds of it."""
        return {"name": self.name, "kind": self.kind, "sha256": self.sha256}
