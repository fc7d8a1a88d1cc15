"""Snapshots as the tests of this room need them."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.agents.models import ModelChoice
from subagents_nb.domain.plans.plan import Draft, LaunchPlan, StepPlan
from subagents_nb.domain.plans.worktree import Change, WorktreeRecord
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.questions import OpenQuestion
from subagents_nb.domain.runs.records import (
    Identity,
    Refusal,
    RunResult,
    RunStatus,
    StepResult,
    StepStatus,
    ToolRow,
    Usage,
)
from subagents_nb.domain.runs.snapshot import Damage, Snapshot
from subagents_nb.domain.runs.states import RunState, StepState

RUN_ID = "r-06f3k2m9"
AT = "2026-05-03T14:02:11Z"
USAGE = Usage(input_tokens=18_900, output_tokens=1_640, requests=4, tool_calls=3, cost_usd=0.081)
FINDINGS = {
    "columns": [
        {"column": "unit_price", "problem": "negative values", "rows": 14, "why": "one import on 3 May; sign flipped"},
        {"column": "region", "problem": "two spellings", "rows": 211, "why": "“North-East” and “Northeast”"},
        {"column": "quantity", "problem": "sentinel", "rows": 1, "why": "99,999 used for unknown"},
    ]
}


def running(**changes: Any) -> Snapshot:
    """A run at work, with a streamed tail and two tool calls."""
    step = StepStatus(
        agent="scout",
        model="anthropic:claude-sonnet",
        state=StepState.RUNNING,
        usage=USAGE,
        tools=(
            ToolRow(call_id="1", name="read", args="data/sales.csv", state="complete", seconds=0.1),
            ToolRow(call_id="2", name="grep", args="-c ,, data/sales.csv"),
        ),
        tail="Three columns stand out.",
        tail_end=240,
        activity="answering",
    )
    known: dict[str, Any] = {
        "run_id": RUN_ID,
        "state": RunState.RUNNING,
        "name": "find-outliers",
        "started_at": AT,
        "updated_at": AT,
        "elapsed_s": 42.3,
        "timeout_s": 1800.0,
        "usage": USAGE,
        "steps": (step,),
    }
    return Snapshot(run_id=RUN_ID, status=RunStatus(**{**known, **changes}))


def ended(state: str = "complete", *, step: dict[str, Any] | None = None, **changes: Any) -> Snapshot:
    """A run with a last word of its own; `step` changes its one step."""
    step_known: dict[str, Any] = {"agent": "scout", "model": "anthropic:claude-sonnet", "state": state, "usage": USAGE}
    known: dict[str, Any] = {
        "run_id": RUN_ID,
        "state": RunState(state),
        "name": "find-outliers",
        "started_at": AT,
        "ended_at": AT,
        "elapsed_s": 64.2,
        "timeout_s": 1800.0,
        "usage": USAGE,
        "steps": (StepResult(**{**step_known, **(step or {})}),),
    }
    return Snapshot(run_id=RUN_ID, result=RunResult(**{**known, **changes}))


def gave(value: Any, **changes: Any) -> Snapshot:
    """A complete run with a structured value."""
    return ended(step={"has_value": True, "value": value}, **changes)


def answered(text: str, **changes: Any) -> Snapshot:
    """A complete run with a text."""
    return ended(step={"text": text}, **changes)


def refused(*refusals: tuple[str, str], text: str = "Done.") -> Snapshot:
    """A complete run some of whose tool calls were not allowed."""
    return ended(step={"text": text, "refusals": tuple(Refusal(tool=t, why=w) for t, w in refusals)})


def lost(**changes: Any) -> Snapshot:
    """A run whose process went away."""
    known: dict[str, Any] = {
        "run_id": RUN_ID,
        "state": RunState.LOST,
        "reason": "signal",
        "actor": "outside",
        "message": "The run's process went away without a result (ended by SIGKILL).",
        "tail": "…reading chunk 7\nreading chunk 8",
        "judged_at": AT,
        "judged_by": "supervisor",
        "elapsed_s": 775.0,
    }
    status = running().status
    return Snapshot(run_id=RUN_ID, status=status, verdict=Verdict(**{**known, **changes}))


def asking(*texts: str, choices: tuple[str, ...] = ("yes", "no"), **changes: Any) -> Snapshot:
    """A run at work with open questions."""
    questions = tuple(
        OpenQuestion(question_id=f"q{number}", text=text, choices=choices, asked_at=AT)
        for number, text in enumerate(texts or ("Keep the old name as an alias?",), 1)
    )
    return running(**{"questions": questions, "waited_s": 40.0, **changes})


def queued(*, verdict: Verdict | None = None) -> Snapshot:
    """A run that waits for a place, or that waited until its verdict."""
    keeper = Identity(pid=4, start_ticks=9, boot_id="b", pid_namespace="n", host="h", token="t" * 8)
    step = StepStatus(agent="scout", model="anthropic:claude-sonnet")
    waiting = running(state=RunState.QUEUED, steps=(step,), usage=Usage(), elapsed_s=0.0, queue_keeper=keeper)
    return waiting.model_copy(update={"verdict": verdict})


def unreadable(message: str = "not JSON at line 3", document: str = "status.json") -> Snapshot:
    """A run directory in which nothing can be read."""
    return Snapshot(run_id=RUN_ID, damage=(Damage(document=document, kind="damaged", message=message),))


def draft(**changes: Any) -> Draft:
    """A plan before its launch; `changes` are of its one step, `notes` and `cwd` of the draft."""
    outer = {key: changes.pop(key) for key in ("notes", "cwd", "name", "tags", "tool_env") if key in changes}
    model = ModelChoice(
        kind="provider",
        provider="anthropic",
        name="claude-sonnet-4-5",
        origin="environment",
        key_env=("ANTHROPIC_API_KEY",),
    )
    step: dict[str, Any] = {
        "agent": "scout",
        "agent_source": "builtin",
        "agent_where": "scout.md",
        "agent_digest": "ab" * 32,
        "task": "Find the columns with outliers.\n\nSay why.",
        "system_prompt": "You look, and you change nothing.",
        "model": model,
        "tools": ("read", "grep"),
        "output_schema": {"type": "object", "properties": {"columns": {"type": "array"}}},
        "schema_name": "Findings",
    }
    known: dict[str, Any] = {"name": "find-outliers", "cwd": "/home/ada/work", "timeout_s": 1800.0}
    return Draft(**{**known, **outer}, steps=(StepPlan(**{**step, **changes}),))


def planned(snapshot: Snapshot, **changes: Any) -> Snapshot:
    """The same reading with its plan beside it."""
    plan: LaunchPlan = draft(**changes).to_plan(run_id=snapshot.run_id, token="t" * 8, created_at=AT)
    return snapshot.model_copy(update={"plan": plan})


def tree(step: int = 0, **changes: Any) -> WorktreeRecord:
    known: dict[str, Any] = {
        "step": step, "path": "/x", "branch": f"subagents/ab/s{step}", "base_commit": "0" * 40, "repo_root": "/y",
        "state": "removed", "patch": f"steps/{step}/changes.patch", "patch_bytes": 100, "applies": True,
        "changes": (Change(path="app.py", added=1, removed=1),),
    }  # fmt: skip
    return WorktreeRecord(**{**known, **changes})
