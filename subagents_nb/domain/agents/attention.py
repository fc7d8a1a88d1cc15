"""When a run may need a look. A symptom that is shown, never a verdict. The run's state is the worst of its steps'."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from subagents_nb.domain.agents.agent import Thinking
from subagents_nb.domain.values.base import Value

Kind = Literal["question", "disk-full", "idle", "long-tool", "failing-edits", "unheard"]

_LASTING = " for "  # between what is so and how long it has been so: the end of the texts of what lasts
_SCALE: dict[str, float] = {"medium": 2.0, "high": 5.0, "xhigh": 10.0, "max": 10.0}
# A runner that has nothing to say writes its status every five seconds all the same: three of those, and some slack.
UNHEARD_S = 20.0
_WORST_FIRST: tuple[Kind, ...] = ("disk-full", "question", "failing-edits", "long-tool", "idle")


class Thresholds(Value):
    """When to point at a run. Defaults are those of the origin system (reference, section 4.4)."""

    idle_s: float = 60.0
    tool_s: float = 240.0
    failing_edits: int = 3
    failing_window_s: float = 300.0

    def scaled(self, thinking: Thinking | None) -> Thresholds:
        """Return thresholds for a thinking level: who thinks harder may be silent longer."""
        return self.model_copy(update={"idle_s": self.idle_s * _SCALE.get(thinking or "", 1.0)})


class AttentionSettings(Value):
    """What the person's settings say of it; the usual holds for what is None."""

    idle_s: float | None = Field(default=None, gt=0)
    tool_s: float | None = Field(default=None, gt=0)
    failing_edits: int | None = Field(default=None, gt=0)
    failing_window_s: float | None = Field(default=None, gt=0)

    def thresholds(self, thinking: Thinking | None) -> Thresholds:
        """Return when to point at a step. A silence that was named is meant for every level of thinking."""
        return Thresholds().scaled(thinking).model_copy(update=self.model_dump(exclude_none=True))


class Attention(Value):
    """Why a run may need a look, in a sentence, and since when on the run's own clock."""

    kind: Kind
    text: str
    since_s: float

    def after(self, how_long: str) -> str:
        """Say it again when it has lasted longer; what does not last stays as it is."""
        if self.kind not in ("idle", "long-tool", "unheard"):
            return self.text
        return f"{self.text.rpartition(_LASTING)[0]}{_LASTING}{how_long}."


class Heartbeat(Value):
    """What the decision about one step is made from; all times on the run's own clock, in seconds."""

    now_s: float
    last_event_s: float
    who: str = ""  # which step, in a run of several
    open_tools: tuple[tuple[str, float], ...] = ()  # name, started
    failed_edits: tuple[float, ...] = ()  # the last ones without a success between them, when
    failed_paths: tuple[tuple[str, tuple[float, ...]], ...] = ()  # those of one file since it was last written, when


def attention(heartbeat: Heartbeat, thresholds: Thresholds) -> Attention | None:
    """Decide whether to point at a step: failing edits first, then a long tool, then silence."""
    concern = _failing(heartbeat, thresholds) or _slow(heartbeat, thresholds) or _silent(heartbeat, thresholds)
    if concern is None or not heartbeat.who:
        return concern
    return concern.model_copy(update={"text": f"{heartbeat.who}: {concern.text}"})


def attention_of_run(
    steps: Iterable[Attention | None], *, open_questions: int, disk_full: bool, since_s: float
) -> Attention | None:
    """Return what to show for a run: what it needs itself, else the worst of what its steps give reason for."""
    if disk_full:
        text = "The disk is full: it has a question and can't store it. It goes on when there is room."
        return Attention(kind="disk-full", text=text, since_s=since_s)
    if open_questions:
        many = f"{open_questions} questions wait" if open_questions > 1 else "A question waits"
        return Attention(kind="question", text=f"{many} for you.", since_s=since_s)
    concerns = [one for one in steps if one is not None]
    return min(concerns, key=lambda one: (_WORST_FIRST.index(one.kind), one.since_s), default=None)


def stalled(seconds: float, elapsed_s: float) -> Attention | None:
    """Return what an observer says of a live run whose process has written nothing for so long: frozen, or far away.

    `elapsed_s` is the run's own clock, as it was last heard of.
    """
    if seconds < UNHEARD_S:
        return None
    text = f"No word came from its process{_LASTING}{_minutes(seconds)}."
    return Attention(kind="unheard", text=text, since_s=elapsed_s - seconds)


def _failing(heartbeat: Heartbeat, thresholds: Thresholds) -> Attention | None:
    for path, moments in (("", heartbeat.failed_edits), *heartbeat.failed_paths):
        recent = [at for at in moments if heartbeat.now_s - at <= thresholds.failing_window_s]
        if len(recent) >= thresholds.failing_edits:
            of = f" of {path}" if path else ""
            return Attention(kind="failing-edits", text=f"The last {len(recent)} edits{of} failed.", since_s=recent[0])
    return None


def _slow(heartbeat: Heartbeat, thresholds: Thresholds) -> Attention | None:
    slow = [(name, at) for name, at in heartbeat.open_tools if heartbeat.now_s - at >= thresholds.tool_s]
    if not slow:
        return None
    name, at = min(slow, key=lambda item: item[1])
    text = f"The tool {name} is at work{_LASTING}{_minutes(heartbeat.now_s - at)}."
    return Attention(kind="long-tool", text=text, since_s=at)


def _silent(heartbeat: Heartbeat, thresholds: Thresholds) -> Attention | None:
    silent = heartbeat.now_s - heartbeat.last_event_s
    if heartbeat.open_tools or silent < thresholds.idle_s:
        return None
    return Attention(
        kind="idle", text=f"Nothing was heard{_LASTING}{_minutes(silent)}.", since_s=heartbeat.last_event_s
    )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
