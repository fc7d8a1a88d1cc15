"""Everything that is shown in two forms, as the stored page and text of `shown.json.gz` have it; see test_shown.py.

`python tests/unit/notebook/shown_samples.py` stores them anew, where a change of looks or words is meant.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from card_page import (
    agents_table_html,
    agents_table_text,
    card_html,
    card_text,
    ledger_html,
    ledger_text,
    patch_html,
    patch_text,
    preflight_html,
    preflight_text,
    runs_table_html,
    runs_table_text,
)
from card_payloads import PAYLOADS
from card_samples import (
    AT,
    FINDINGS,
    answered,
    asking,
    draft,
    ended,
    gave,
    lost,
    planned,
    queued,
    refused,
    running,
    tree,
    unreadable,
)
from chain_samples import C, F, P, R, live, over

from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem, SearchedPlace
from subagents_nb.domain.agents.attention import Attention
from subagents_nb.domain.plans.acceptance import Finding, Ledger, VerifyRun
from subagents_nb.domain.plans.budgets import Amount, UsageBudget
from subagents_nb.domain.plans.plan import AttachedItem, Draft, FanOutItem, GroupItem, StepItem
from subagents_nb.domain.runs.control import Retuned
from subagents_nb.domain.runs.records import SavedOutput, ToolRow
from subagents_nb.domain.runs.states import RunState
from subagents_nb.experiments.comparing import Comparison, compare_rows
from subagents_nb.experiments.comparison.run_diffs import Part
from subagents_nb.experiments.rows import RunRow
from subagents_nb.experiments.sweeps.sweep_cells import Reading, SweepCell
from subagents_nb.launching import Preflight
from subagents_nb.notebook.cards.card import CardContext
from subagents_nb.notebook.cards.diffs import ShownDiff
from subagents_nb.notebook.comparing.compare_view import comparison_html, diff_html
from subagents_nb.notebook.comparing.sweep_view import said_of, sweep_html
from subagents_nb.notebook.views.notifications import bundle_of

STORED = Path(__file__).with_name("shown.json.gz")
LONG = "x" * 2_000
EVIL = "".join(PAYLOADS[:4]) + "\x1b[31m\u202e"
PATCH = """diff --git a/app.py b/app.py
--- a/app.py
+++ b/app.py
@@ -1,2 +1,2 @@
 keep
-old <b>
+new & shiny
diff --git a/old name b/new name
similarity index 100%
rename from old name
rename to new name
diff --git a/pic.png b/pic.png
new file mode 100644
GIT binary patch
literal 3
"""
MANY_FILES = "".join(
    f"diff --git a/f{n} b/f{n}\n--- a/f{n}\n+++ b/f{n}\n@@ -0,0 +1,40 @@\n" + "+x\n" * 40 for n in range(60)
)
VERIFIED = Ledger(
    level="verified", explicit=True, status="verified",
    verify_runs=(VerifyRun(id="gate", command="make test", passed=True, exit_code=0, output="3 passed"),),
)  # fmt: skip
REJECTED = Ledger(
    level="verified", explicit=True, status="rejected", reason="t: exit code 1", report_problem="line 3: no JSON",
    criteria=(Finding(id="rows", ok=True, text="counted"), Finding(id="nice", ok=False, required=False)),
    checks=(Finding(id="tests-added", ok=False, text="the report does not have it"),),
    verify_runs=(
        VerifyRun(id="t", command="make test", passed=False, exit_code=1, seconds=1.25, output="1 failed\n" + LONG),
        VerifyRun(id="l", command="make lint", passed=True, exit_code=0, memoised=True, output="fine"),
        VerifyRun(id="m", command="make may", passed=False, exit_code=2, allow_failure=True),
    ),
    review=Finding(id="judge", ok=True, text="accepted: fine"),
)  # fmt: skip
MANY = Ledger(
    level="checked", explicit=False, status="rejected", reason=EVIL,
    checks=tuple(Finding(id=f"c{n}", ok=n % 2 == 0, text=EVIL) for n in range(20)),
)  # fmt: skip


def with_steps(snapshot: Any, **changes: Any) -> Any:
    steps = [one.model_copy(update=changes) for one in snapshot.result.steps]
    return snapshot.model_copy(update={"result": snapshot.result.model_copy(update={"steps": tuple(steps)})})


def cards() -> Iterator[tuple[str, Any, CardContext]]:
    """Runs of every kind, each with what stands beside it."""
    none = CardContext()
    yield "value", planned(gave(FINDINGS, notes=("model chosen: the first key",))), CardContext("findings")
    yield "value nested", gave({"score": 0.5, "where": {"f": "a.py", "deep": {"l": [[1], [2]]}}, "none": None}), none
    yield (
        "value and rows",
        gave({"verdict": "good", "rows": [{"a": 1, "b": "x" * 300}, {"a": 2}] * 20}),
        CardContext("v"),
    )
    yield "value records", gave([{f"k{c}": n * c for c in range(12)} for n in range(40)]), none
    yield "value scalar", gave(0.1234567891), none
    yield "value huge", gave({f"k{n}": ["x" * 900] * 9 for n in range(200)}), CardContext("huge")
    yield "text", answered("# Found\n\n- **a**\n- [b](https://e.example)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"), none
    yield "text code", answered("Do:\n\n```python\nprint('<b>')\n```\n\nThen stop."), CardContext("it", disk=4_200_000)
    yield "text long", answered("word " * 4_000), CardContext("found")
    yield "text none", answered(" \n"), none
    yield "text evil", answered(EVIL, name=EVIL), CardContext(reused="reused: nothing was spent (ran 2 days ago)")
    tool = ToolRow(call_id="1", name="bash", args="pytest -q tests", seconds=720.4)
    files = ("pkg/io.py", "pkg/cli.py", "a", "b", "c", "d")
    yield "failed", ended(
        "failed", reason="timeout", actor="deadline", error="bash was open for 12 min.", tail="$ pytest\n..F",
        changed_files=files, open_tools=(tool,) * 5,
    ), none  # fmt: skip
    yield "failed long", ended("failed", reason="provider", error="y" * 2_000, tail="z" * 9_000), none
    yield "partial", ended("partial", reason="timeout", actor="deadline", step={"text": "Half."}), CardContext("half")
    yield "stopped", ended("stopped", reason="stopped", actor="person"), none
    yield "paused", ended("paused", reason="interrupted", actor="person", error="Interrupted on request."), none
    yield "refused", refused(*((f"tool{n}", "no") for n in range(6))), none
    said = "Its process went away without a result. Nothing restarts by itself."
    yield "lost", lost(message=said), CardContext(changed_files=("pkg/io.py",), trees=2, binding="work")
    yield "unreadable", unreadable(), none
    yield "running", running(), CardContext(as_of="2026-05-03 14:03:00 UTC")
    seen = Attention(kind="idle", text="Nothing was heard for 3 min.", since_s=10.0)
    yield "attention", running(attention=seen, elapsed_s=190.0), none
    yield "asking", asking("One?", "Two?", "Three?", EVIL, "Five?"), CardContext("asks")
    yield "queued", queued(), none
    retunes = tuple(Retuned(at=AT, by="cell", changes={"timeout_s": 60.0 * n, "max_requests": n}) for n in range(1, 9))
    yield (
        "story",
        ended(retunes=retunes, resumed_from="r-06f3k2m1", goal="a clean table"),
        CardContext(source="rename-api"),
    )
    saved = SavedOutput(path="a.md", bytes=3, lines=1, written_by="step")
    yield "worked", ended(
        step={"text": "Done.", "acceptance": VERIFIED, "worktree": tree(), "saved": saved}
    ), CardContext(binding="mended", patches={0: PATCH})  # fmt: skip
    yield "rejected", ended(
        "rejected", reason="rejected", error="Not accepted.",
        step={"acceptance": REJECTED, "worktree": tree(state="preserved", reason="not accepted")},
    ), CardContext(patches={0: MANY_FILES})  # fmt: skip
    yield "only shown", ended(step={"text": "Done.", "acceptance": MANY, "worktree": tree(changes=())}), none
    yield "chain", over(), none
    yield "chain failed", over(6, [C, C, F, C, C, C, C, C], state=RunState.FAILED, reason="child", error="No."), none
    yield "chain partial", over(2, [C, C, F, C], state=RunState.PARTIAL), CardContext("part")
    yield "chain many", over(66, [C, C, F, *[C] * 65]), none
    yield "chain wide", over(64, text="w" * 900), CardContext("wide")
    yield "chain live", live(1, [C, P, R]), CardContext(as_of="2026-05-03 14:03:00 UTC")
    yield "chain asks", live(2, questions=asking().questions), none
    yield "chain evil", over(3, text=EVIL, name=EVIL), none
    yield (
        "chain worked",
        with_steps(over(3), acceptance=REJECTED, worktree=tree(3)),
        CardContext("work", patches={3: PATCH}),
    )


def plans() -> Iterator[tuple[str, Preflight]]:
    """Plans of one step, of chains, and reasons against one."""
    one = draft(notes=("no project context", EVIL), tags=("nightly",), tool_env=("CI_TOKEN",), timeout_s=60.0)
    yield "one", Preflight(one, ())
    yield "evil", Preflight(draft(task=EVIL, name=EVIL, tools=(), output_schema=None), (), reuses="r-06f3k2m9")
    yield "long", Preflight(draft(task="x" * 100_023, system_prompt=""), (), reuse_note="a.csv changed")
    first, each, last = (
        draft(index=n, agent=a, task=t).steps[0]
        for n, a, t in ((0, "scout", "Look."), (0, "reviewer", "Review {file}"), (1, "delegate", "Sum {previous}"))
    )
    known: dict[str, Any] = {"name": "review", "cwd": "/home/ada/work", "timeout_s": None, "task": "All of it"}
    fan = FanOutItem(
        template=each, source="found", path="/files", item="file", max_items=20, concurrency=4, output_name="reviews"
    )
    budget = UsageBudget(tokens=Amount(hard=50_000))
    yield "chain", Preflight(
        Draft(
            **known, steps=(first, last), usage_budget=budget, max_children=22, max_parallel=4,
            items=(StepItem(step=0), fan, StepItem(step=1)),
        ), (),
    )  # fmt: skip
    group = GroupItem(steps=(0, 1), concurrency=2, fail_fast=True, on_failure="continue")
    attached = AttachedItem(attached_run="r-06f3k2m9", output_name="before")
    yield "group", Preflight(Draft(**known, steps=(first, last), items=(attached, group)), ())
    yield "refused", Preflight(None, ("no key", EVIL))


def compared(number: int, **options: Any) -> Comparison:
    rows = [
        RunRow(
            f"r-{n}", name=EVIL, state="complete" if n != 1 else "failed", params={"model": f"{EVIL}{n // 2}"},
            scores={} if n == 1 else {("acc", f"case {c}"): float(n * c % 7) for c in range(4)}, seconds=float(n),
        )
        for n in range(number)
    ]  # fmt: skip
    return compare_rows(rows, **options)


def sweep(**changes: Any) -> Any:
    known = {
        "name": "temperatures", "params": ("model", "t"), "found": 2, "launched": 5, "launching": False, "note": "",
        "launched_anew": (), "budget": None,
    }  # fmt: skip
    return SimpleNamespace(**{**known, **changes})


def places(number: int) -> list[SweepCell]:
    readings = [
        None, Reading(RunState.COMPLETE, "a", cost=0.5, seconds=60.0), Reading(RunState.RUNNING, "b", True),
        Reading(None, EVIL, error=EVIL, run_id="r-0"),
    ]  # fmt: skip
    scores = {EVIL: 0.25}
    return [
        SweepCell({"model": EVIL, "t": n // 4}, n % 3, readings[n % 4], scores if n % 4 == 1 else {})
        for n in range(number)
    ]


def agents() -> Iterator[tuple[str, AgentCatalog]]:
    yield "agents", AgentCatalog(
        agents=(
            AgentDefinition(name="scout", description="Looks.", aliases=("look",), source="builtin", where="scout.md"),
            AgentDefinition(name="mute", description=EVIL, source="user", tools=(), model="openai:gpt-5"),
        ),
        problems=tuple(AgentProblem(where=f"{n}.md", source="project", error=EVIL) for n in range(25)),
        shadowed=(("project:scout", "builtin:scout"),),
    )  # fmt: skip
    yield "no agents", AgentCatalog(places=(SearchedPlace(source="user", where="~/.subagents/agents", state="absent"),))


def shown() -> Iterator[tuple[str, str, str]]:
    """Return each sample's name, page and text."""
    for name, snapshot, beside in cards():
        yield f"card: {name}", card_html(snapshot, beside), card_text(snapshot, beside)
    every = [snapshot for _, snapshot, _ in cards()]
    for name, runs, hidden in (("runs", every, 3), ("many runs", every * 4, 0), ("no runs", [], 0)):
        yield f"list: {name}", runs_table_html(runs, hidden=hidden), runs_table_text(runs, hidden=hidden)
    for name, catalog in agents():
        yield f"list: {name}", agents_table_html(catalog), agents_table_text(catalog)
    for name, preflight in plans():
        page, text = preflight_html(preflight), preflight_text(preflight)
        digest = preflight.digest or "none of these"
        yield f"plan: {name}", page.replace(digest, "DIGEST"), text.replace(digest, "DIGEST")
    for name, ledger in (("verified", VERIFIED), ("rejected", REJECTED), ("many", MANY)):
        yield f"acceptance: {name}", ledger_html(ledger), ledger_text(ledger)
    for name, patch in (("none", ""), ("some", PATCH), ("many", MANY_FILES), ("evil", PATCH.replace("keep", EVIL))):
        yield f"patch: {name}", patch_html(patch), patch_text(patch)
        changes = ShownDiff(EVIL, patch, step=len(name), run="it's")
        yield f"changes: {name}", changes._repr_html_(), repr(changes)
    for name, found in (
        ("three", compared(3)),
        ("baseline", compared(8, baseline={"model": f"{EVIL}0"})),
        ("many", compared(130)),
    ):
        yield f"comparison: {name}", comparison_html(found, token="tt" if name == "three" else ""), found.text
    for number, changes in ((5, {}), (90, {"note": EVIL, "launched_anew": ("why", "not"), "launching": True})):
        subject, there = sweep(**changes), places(number)
        yield f"sweep: {number}", sweep_html(subject, there, as_of="now" if changes else ""), said_of(subject, there)
    parts = [Part(EVIL, "same\n", "same\n" + "\n".join(f"{EVIL}{n}" for n in range(n))) for n in (3, 500)]
    parts.insert(0, Part("output", f"the old {EVIL}\nkept", f"the new {EVIL}\nkept"))
    for name, some in (("some", parts), ("none", [])):
        diff: Any = SimpleNamespace(names=(EVIL, "b"), parts=some)
        yield f"difference: {name}", diff_html(diff), ""
    for name, asks, over_, fault in (("some", (asking(),), every[:9], EVIL), ("many", (), every, "")):
        bundle = bundle_of(SimpleNamespace(asking=asks, ended=over_, fault=fault))
        yield f"news: {name}", bundle["text/html"], bundle["text/plain"]


class _Dom(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._text = ""
        self._depth = 0

    def _flush(self) -> None:
        if self._text:
            self.lines.append(f"{' ' * self._depth}{json.dumps(self._text, ensure_ascii=False)}")
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._flush()
        self.lines.append(f"{' ' * self._depth}<{' '.join([tag, *(f'{n}={v!r}' for n, v in sorted(attrs))])}>")
        self._depth += tag not in {"br", "hr"}

    def handle_endtag(self, _: str) -> None:
        self._flush()
        self._depth -= 1

    def handle_data(self, data: str) -> None:
        self._text += data


def dom(page: str) -> list[str]:
    """Return the elements of a page, one a line: their tags, attributes and texts."""
    parser = _Dom()
    parser.feed(page)
    parser.close()
    parser._flush()
    return parser.lines


def stored() -> dict[str, dict[str, list[str]]]:
    return json.loads(gzip.decompress(STORED.read_bytes()))


if __name__ == "__main__":
    forms = {name: {"page": dom(page), "text": text.split("\n")} for name, page, text in shown()}
    STORED.write_bytes(gzip.compress(json.dumps(forms, ensure_ascii=False).encode("utf-8", "replace"), 9, mtime=0))
    print(len(forms), "samples,", STORED.stat().st_size, "bytes")
