"""A sweep on the page and in a terminal: how far it is, what it still takes, and its grid. Described once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from subagents_nb.blocks import Child, Column, Either, Html, Table, page_only, to_text
from subagents_nb.domain.runs.reuse import ANEW
from subagents_nb.experiments.comparison.grouping import param_text
from subagents_nb.experiments.sweeps.sweep import Sweep
from subagents_nb.experiments.sweeps.sweep_cells import SweepCell, first_to_see, no_run
from subagents_nb.experiments.sweeps.sweep_picture import Picture, picture_of
from subagents_nb.notebook.cards.shown import ASKS, LOOKS
from subagents_nb.notebook.cards.tables import state_badge
from subagents_nb.notebook.comparing.interval_bar import interval
from subagents_nb.notebook.page.html import bar, colour, element, frame, note, safe, say, soft, styled, to_page
from subagents_nb.notebook.page.lines import line, plural

MAX_PLACES = 60
_BLOCKS = 40  # of the bar in a terminal
_TONES = {
    "done": ("ok", "█"),
    "failed": ("bad", "✕"),
    "at work": ("run", "▒"),
    "paused": ("warn", "‖"),
    "stopped": ("", "■"),
}
_ROOM = "display:block;height:6px;margin-top:5px;border-radius:3px"
_SMALL = "font-size:11px"


def sweep_html(sweep: Sweep, places: Sequence[SweepCell] | None = None, *, as_of: str = "") -> Html:
    """Show how a sweep stands; its `places` if they are known, and of one that goes on, as of when that is."""
    every = sweep.places() if places is None else places
    return to_page(described(sweep, every, picture_of(sweep, every, time.time()), as_of=as_of))


def said_of(sweep: Sweep, places: Sequence[SweepCell] | None = None) -> str:
    """Say the same in a terminal."""
    every = sweep.places() if places is None else places
    return to_text(described(sweep, every, picture_of(sweep, every, time.time())))


def live_picture(sweep: Sweep, places: Sequence[SweepCell]) -> Picture:
    """Return what a live page is sent."""
    notes = [line(sweep.note, 400), anew_text(sweep.launched_anew)]
    return {**picture_of(sweep, places, time.time()), "notes": list(filter(None, notes))}


def described(sweep: Sweep, places: Sequence[SweepCell], picture: Picture, *, as_of: str = "") -> Child:
    """Describe a sweep: bar, outlook, grid and failures, and below them its runs."""
    said = " · ".join(filter(None, [_counts(picture), picture["whence"]]))
    head = bar(safe(element("strong", None, picture["name"]), " ", soft(said)), soft("sweep"))
    stood = f"as of {as_of} · how its runs stand: %subagent_status" if as_of else ""
    notes = [sweep.note, anew_text(sweep.launched_anew), stood]
    body = [
        _bar(picture),
        _facts(picture),
        _grid(picture),
        *_failures(picture),
        _runs(sweep, places),
        *map(note, notes),
    ]
    return frame("Sweep", head, body)


def anew_text(reasons: Sequence[str]) -> str:
    """Say why runs that were there did not stand for their cells."""
    if not reasons:
        return ""
    more = f", and {plural(len(reasons) - 1, 'more run')}" if len(reasons) > 1 else ""
    return f"{ANEW}{line(reasons[0], 200)}{more}."


def _counts(picture: Picture) -> str:
    first, *others = picture["counts"]
    return ", ".join([f"{first[1]:,} of {picture['all']:,} done", *(f"{number:,} {word}" for word, number in others)])


def _bar(picture: Picture) -> Child:
    """Draw how many of all are done: a line of colours, or of signs."""
    every, at = max(1, picture["all"]), 0
    stops, signs = [], ""
    for word, number in picture["counts"]:
        if word not in _TONES:
            continue
        tone, sign = _TONES[word]
        begin, at = at, at + number
        stops.append(f"{colour(tone)} {begin / every:.2%} {at / every:.2%}")
        signs += sign * (round(_BLOCKS * at / every) - len(signs))
    rest = f"color-mix(in srgb,currentColor 14%,transparent) {at / every:.2%}"
    style = f"{_ROOM};margin:0;background:linear-gradient(to right,{','.join([*stops, rest])})"
    return Either(element("div", {"aria-hidden": "true", "style": style}), signs.ljust(_BLOCKS, "░"))


def _facts(picture: Picture) -> Child:
    facts = [
        safe(element("strong", None, one["strong"]), " " if one["strong"] else "", soft(one["text"]))
        for one in picture["facts"]
    ]
    if not facts:
        return None
    return styled(
        "div", "display:flex;flex-wrap:wrap;gap:2px 24px;font-size:12px", *(element("div", None, f) for f in facts)
    )


def _grid(picture: Picture) -> Child:
    if not picture["cells"]:
        return None
    wide = bool(picture["column_name"])
    corner = f"{picture['row_name']} ↓ {picture['column_name']} →" if wide else picture["row_name"]
    columns = [Column(corner), *(Column(name if wide else "") for name in picture["columns"])]
    rows = [[name, *map(_cell, cells)] for name, cells in zip(picture["rows"], picture["cells"], strict=True)]
    more = f"… {plural(picture['more_rows'], 'more row')}: .frame() has all." if picture["more_rows"] else ""
    return element("div", None, Table(columns, rows, unseen="Sweep"), note(axis_text(picture)), note(more))


def axis_text(picture: Picture) -> str:
    """Say what the scores and bars are."""
    if not picture["metric"]:
        return ""
    low, high = picture["axis"]
    return f"{picture['metric']}; bars: 95 % intervals, from {low} to {high}. Which is best: .compare()"


def _cell(cell: Mapping[str, Any] | None) -> Child:
    if cell is None:
        return ""
    look = LOOKS.get(cell["state"], LOOKS["pending"])
    tint = f"color:{colour(look.tone)}" if look.tone else ""
    icon = styled("span", tint, element("span", {"aria-hidden": "true"}, f"{look.icon} "))
    below = [safe(page_only(icon), styled("span", tint if look.tone in ("bad", "warn") else "", cell["said"]))]
    below += [safe(page_only(" · "), cell["cost"])] if cell["cost"] else []
    score: list[Child] = [element("strong", None, cell["score"]), " ", soft(cell["range"])] if "score" in cell else []
    drawn = [interval(cell["bar"], final=cell["final"])] if "bar" in cell else []
    page = element("div", None, element("div", None, *score), *drawn, styled("div", _SMALL, *below))
    said = [f"{cell['score']}" + (f" ({cell['range']})" if cell["range"] else "")] if "score" in cell else []
    return Either(page, ", ".join(filter(None, [*said, cell["said"], cell["cost"]])))


def _failures(picture: Picture) -> list[Child]:
    told = [
        say(
            "bad",
            safe(element("strong", None, f"{one['where']}: "), f"{one['number']} failed: {line(one['why'], 300)}"),
        )
        for one in picture["failures"]["told"]
    ]
    left = picture["failures"]["left"]
    more = f"… {plural(left, 'more run')} failed." if left else ""
    again = (
        "Failed runs are missing, not zeros. These again, and nothing else: .retry() or %subagent_retry" if told else ""
    )
    return [*told, note(" ".join(filter(None, [more, again])))]


def _runs(sweep: Sweep, places: Sequence[SweepCell]) -> Child:
    """List the runs, folded: what asks or failed, then what is at work, then the rest, in the order of the grid."""
    launching = sweep.launching
    shown, others = first_to_see(places, MAX_PLACES, launching=launching)
    left = len(places) - len(shown)
    more = f"… {plural(left, 'more run')}: {others}. What asks, failed or is at work stands here first." if left else ""
    columns = [
        *(Column(line(name, 40)) for name in sweep.params),
        Column("repeat", True),
        Column("state"),
        Column("run"),
    ]
    rows = [_run(place, no_run(launching=launching)) for place in shown]
    summary = styled("summary", _SMALL, f"{plural(len(places), 'run')}")
    return page_only(element("details", None, summary, Table(columns, rows, unseen="Runs"), note(more)))


def _run(place: SweepCell, nothing: str) -> list[Child]:
    head = [*(param_text(value) for value in place.params.values()), str(place.repeat + 1)]
    reading = place.reading
    if reading is None:
        return [*head, nothing, ""]
    return [*head, state_badge(ASKS if reading.asks else reading.word), reading.name]
