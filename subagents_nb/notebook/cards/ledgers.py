"""What came of a step's acceptance, for people: a part of the card. Everything in it is untrusted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from subagents_nb.blocks import Child, Column, Either, Table, clean, page_only
from subagents_nb.domain.acceptance.verdict import how_it_went
from subagents_nb.domain.plans.acceptance import Finding, Ledger, VerifyRun
from subagents_nb.notebook.page.html import code, colour, element, note, pre, safe, soft, styled
from subagents_nb.notebook.page.lines import cut, line, plural

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


def acceptance(ledger: Ledger, *, room: int = _OUTPUT_CHARS) -> Child:
    """Describe the acceptance. `room` is how many characters each output may take on a page; a text has none."""
    look = _STATUS[ledger.status]
    reason = f": {line(ledger.reason, 400)}" if ledger.reason else ""
    head = styled("p", "margin:0", Either(None, "acceptance "), _badge(look), _seen_only(ledger), reason)
    findings = list(_findings(ledger))
    rows = [
        (_badge(_look(one)), safe(kind, " ", code(line(one.id, 60))), line(one.text, 300))
        for kind, one in findings[:MAX_ROWS]
    ]
    more = len(findings) - MAX_ROWS
    shown = Table(_COLUMNS, rows, unseen="Acceptance") if rows else None
    listed = (_listed(_look(one), f"{kind} {line(one.id, 60)}: {line(one.text, 200)}") for kind, one in findings)
    runs = ledger.verify_runs
    problem = ledger.report_problem if ledger.report_problem and ledger.report_problem not in ledger.reason else ""
    return element(
        "div",
        {"aria-label": "Acceptance"},
        head,
        Either(shown, element("ul", None, *listed)),
        page_only(note(f"… {plural(more, 'more finding')}" if more > 0 else "")),
        *(Either(_run(run, room) if number < MAX_ROWS else None, _run_line(run)) for number, run in enumerate(runs)),
        Either(note(line(problem, 300)), element("li", None, line(problem, 300)) if problem else None),
    )


def _listed(look: Look, said: str) -> Child:
    return element("li", None, _badge(look), "  ", said)


def _run_line(run: VerifyRun) -> Child:
    return _listed(_look_of_run(run), f"{line(run.id, 60)}: {line(run.command, 120)}{_how(run)}")


def _findings(ledger: Ledger) -> Iterable[tuple[str, Finding]]:
    yield from (("criterion", one) for one in ledger.criteria)
    yield from (("evidence", one) for one in ledger.checks)
    if ledger.review is not None:
        yield "reviewer", ledger.review


def _run(run: VerifyRun, room: int) -> Child:
    head = safe(_badge(_look_of_run(run)), ": ", code(line(run.command, 160)), soft(_how(run)))
    kept, left_out = cut(clean(run.output).strip("\n"), room) if room > 0 else ("", 0)
    if not kept:
        return styled("p", "margin:4px 0 0", head)
    more = note(f"… cut: {left_out:,} more characters" if left_out else "")
    attributes = {"open": ""} if not run.passed and not run.allow_failure else {}
    return element("details", attributes, styled("summary", _SUMMARY, head), pre(kept), more)


def _how(run: VerifyRun) -> str:
    """Say what the sign and its word leave open, in brackets."""
    went = how_it_went(run)
    took = f"{run.seconds:.2g} s" if run.seconds and run.exit_code is not None else ""
    before = "nothing had changed since it was run" if run.memoised else ""
    parts = ["" if went == "passed" else went, took, before, "may fail" if run.allow_failure else ""]
    return f" ({', '.join(filter(None, parts))})" if any(parts) else ""


def _seen_only(ledger: Ledger) -> str:
    return "" if ledger.explicit or ledger.status != "rejected" else " (only shown: nobody asked for it)"


def _look(one: Finding) -> Look:
    return _HELD if one.ok else _FAILED if one.required else _SHOWN


def _look_of_run(run: VerifyRun) -> Look:
    if run.passed:
        return Look("✓", "passed", "ok")
    return Look("◌", "failed, which is allowed", "warn") if run.allow_failure else Look("✕", "failed", "bad")


def _badge(look: Look) -> Child:
    icon = element("span", {"aria-hidden": "true", "style": f"color:{colour(look.tone)}"}, look.icon)
    return safe(icon, f" {look.word}")
