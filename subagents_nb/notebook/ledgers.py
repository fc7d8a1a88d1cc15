"""What came of a step's acceptance, for people: a part of the card, and plain lines. Everything in it is untrusted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from subagents_nb.domain.acceptance import Finding, Ledger, VerifyRun
from subagents_nb.domain.judging import how_it_went
from subagents_nb.notebook.html import (
    QUIET,
    SOFT,
    Column,
    Html,
    clean,
    code,
    colour,
    cut,
    element,
    line,
    plural,
    pre,
    safe,
    styled,
    table,
)

MAX_ROWS = 12
_OUTPUT_CHARS = 1_500
_COLUMNS = (Column("", tight=True), Column("what", tight=True), Column("why"))
_SUMMARY = "cursor:pointer"


class Look(NamedTuple):
    """A sign that no font turns into an emoji, the word beside it, a tone."""

    icon: str
    word: str
    tone: str = ""


_HELD, _FAILED, _SHOWN = Look("✓", "holds", "ok"), Look("✕", "fails", "bad"), Look("◌", "not shown", "warn")
_STATUS = {
    "not-asked": Look("◌", "not asked for"),
    "claimed": Look("◌", "claimed: the agent says that it is done, and nothing shows it", "warn"),
    "attested": Look("◐", "attested: the agent reported on it"),
    "checked": Look("✓", "checked: what had to be shown was shown", "ok"),
    "verified": Look("✓", "verified: the commands succeeded", "ok"),
    "review-required": Look("‖", "waits for a review: the reviewer gave no answer", "warn"),
    "reviewed": Look("✓", "reviewed: the reviewer accepted it", "ok"),
    "rejected": Look("⊘", "not accepted", "bad"),
    "skipped": Look("◌", "not looked at"),
}


def ledger_html(ledger: Ledger, *, room: int = _OUTPUT_CHARS) -> Html:
    """Return the acceptance as a part of a card. `room` is how many characters each output may take."""
    look = _STATUS[ledger.status]
    head = styled(
        "p", "margin:0", _badge(look), _seen_only(ledger), f": {line(ledger.reason, 400)}" if ledger.reason else ""
    )
    rows = [
        (_badge(_look(one)), safe(kind, " ", code(line(one.id, 60))), line(one.text, 300))
        for kind, one in _findings(ledger)
    ]
    shown = rows[:MAX_ROWS]
    more = styled("p", QUIET, f"… {plural(len(rows) - MAX_ROWS, 'more finding')}") if len(rows) > MAX_ROWS else None
    return element(
        "div",
        {"aria-label": "Acceptance"},
        head,
        table(_COLUMNS, shown, unseen="Acceptance") if shown else None,
        more,
        *(_run_html(run, room) for run in ledger.verify_runs[:MAX_ROWS]),
        _problem(ledger),
    )


def ledger_text(ledger: Ledger) -> str:
    """Return the acceptance as plain lines, the output of commands left out."""
    look = _STATUS[ledger.status]
    why = f": {line(ledger.reason, 400)}" if ledger.reason else ""
    rows = [f"acceptance {look.icon} {look.word}{_seen_only(ledger)}{why}"]
    for kind, one in _findings(ledger):
        said = _look(one)
        rows.append(f"  {said.icon} {said.word}  {kind} {line(one.id, 60)}: {line(one.text, 200)}")
    for run in ledger.verify_runs:
        said = _look_of_run(run)
        rows.append(f"  {said.icon} {said.word}  {line(run.id, 60)}: {line(run.command, 120)}{_how(run)}")
    if ledger.report_problem and ledger.report_problem not in ledger.reason:
        rows.append(f"  {line(ledger.report_problem, 300)}")
    return "\n".join(rows)


def _findings(ledger: Ledger) -> Iterable[tuple[str, Finding]]:
    yield from (("criterion", one) for one in ledger.criteria)
    yield from (("evidence", one) for one in ledger.checks)
    if ledger.review is not None:
        yield "reviewer", ledger.review


def _run_html(run: VerifyRun, room: int) -> Html:
    head = safe(_badge(_look_of_run(run)), ": ", code(line(run.command, 160)), styled("span", SOFT, _how(run)))
    kept, left_out = cut(clean(run.output).strip("\n"), max(room, 0))
    if not kept:
        return styled("p", "margin:4px 0 0", head)
    more = styled("p", QUIET, f"… cut: {left_out:,} more characters") if left_out else None
    attributes = {"open": ""} if not run.passed and not run.allow_failure else {}
    return element("details", attributes, styled("summary", _SUMMARY, head), pre(kept), more)


def _problem(ledger: Ledger) -> Html | None:
    if not ledger.report_problem or ledger.report_problem in ledger.reason:
        return None
    return styled("p", QUIET, line(ledger.report_problem, 300))


def _how(run: VerifyRun) -> str:
    """Say what the sign and its word leave open, in brackets."""
    went = how_it_went(run)
    took = f"{run.seconds:.2g} s" if run.seconds and run.exit_code is not None else ""
    before = "nothing had changed since it was run" if run.memoised else ""
    said = ["" if went == "passed" else went, took, before, "may fail" if run.allow_failure else ""]
    return f" ({', '.join(filter(None, said))})" if any(said) else ""


def _seen_only(ledger: Ledger) -> str:
    return "" if ledger.explicit or ledger.status != "rejected" else " (only shown: nobody asked for it)"


def _look(one: Finding) -> Look:
    return _HELD if one.ok else _FAILED if one.required else _SHOWN


def _look_of_run(run: VerifyRun) -> Look:
    if run.passed:
        return Look("✓", "passed", "ok")
    return Look("◌", "failed, which is allowed", "warn") if run.allow_failure else Look("✕", "failed", "bad")


def _badge(look: Look) -> Html:
    icon = element("span", {"aria-hidden": "true", "style": f"color:{colour(look.tone)}"}, look.icon)
    return safe(icon, f" {look.word}")
