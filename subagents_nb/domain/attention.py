"""When a run may need a look. A symptom that is shown, never a verdict."""

from __future__ import annotations

from typing import Literal

from subagents_nb.domain.agent import Thinking
from subagents_nb.domain.base import Value

Kind = Literal["question", "disk-full", "idle", "long-tool", "failing-edits"]

_SCALE: dict[str, float] = {"medium": 2.0, "high": 5.0, "xhigh": 10.0, "max": 10.0}


class Thresholds(Value):
    """When to point at a run. Defaults are those of the origin system (reference, section 4.4)."""

    idle_s: float = 60.0
    tool_s: float = 240.0
    failing_edits: int = 3
    failing_window_s: float = 300.0

    def scaled(self, thinking: Thinking | None) -> Thresholds:
        """Return thresholds for a thinking level: who thinks harder may be silent longer."""
        return self.model_copy(update={"idle_s": self.idle_s * _SCALE.get(thinking or "", 1.0)})


class Attention(Value):
    """Why a run may need a look, in a sentence, and since when on the run's own clock."""

    kind: Kind
    text: str
    since_s: float


class Pulse(Value):
    """What the decision is made from; all times on the run's own clock, in seconds."""

    now_s: float
    last_event_s: float
    open_questions: int = 0
    disk_full: bool = False  # it has to write something down and can't
    open_tools: tuple[tuple[str, float], ...] = ()  # name, started
    failed_edits: tuple[float, ...] = ()  # consecutive failures, when


def attention(pulse: Pulse, thresholds: Thresholds) -> Attention | None:
    """Decide whether to point at a run: a full disk first, a question, failing edits, a long tool, silence."""
    if pulse.disk_full:
        text = "The disk is full: it has a question and can't store it. It goes on when there is room."
        return Attention(kind="disk-full", text=text, since_s=pulse.last_event_s)
    if pulse.open_questions:
        many = f"{pulse.open_questions} questions wait" if pulse.open_questions > 1 else "A question waits"
        return Attention(kind="question", text=f"{many} for you.", since_s=pulse.last_event_s)
    recent = [at for at in pulse.failed_edits if pulse.now_s - at <= thresholds.failing_window_s]
    if len(recent) >= thresholds.failing_edits:
        return Attention(kind="failing-edits", text=f"The last {len(recent)} edits failed.", since_s=recent[0])
    slow = [(name, at) for name, at in pulse.open_tools if pulse.now_s - at >= thresholds.tool_s]
    if slow:
        name, at = min(slow, key=lambda item: item[1])
        return Attention(
            kind="long-tool", text=f"The tool {name} is at work for {_minutes(pulse.now_s - at)}.", since_s=at
        )
    silent = pulse.now_s - pulse.last_event_s
    if not pulse.open_tools and silent >= thresholds.idle_s:
        return Attention(kind="idle", text=f"Nothing was heard for {_minutes(silent)}.", since_s=pulse.last_event_s)
    return None


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
