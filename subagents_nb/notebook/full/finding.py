"""Search in all that a run did: every event, and what calls were given and gave, folded or not."""

from __future__ import annotations

from subagents_nb.launching import Run
from subagents_nb.notebook.full.entries import entries_of
from subagents_nb.notebook.full.event_pages import read_page
from subagents_nb.notebook.full.parts import messages_of
from subagents_nb.notebook.full.said import SaidInRun

MOST = 1_000


def places_of(run: Run, phrase: str, step: int | None = None) -> list[int]:
    """Return where the entries begin that hold a phrase, in any case; at most so many as anybody goes through."""
    paths, wanted = run.home.run(run.id), phrase.lower()
    said = SaidInRun(paths)
    in_sessions: dict[int, set[str]] = {}
    places: list[int] = []
    begin = 0
    while len(places) < MOST:
        page = read_page(paths, begin)
        folded = entries_of(page.records, said, step=step)
        for entry in folded.entries:
            text = f"{entry.name} {' '.join(entry.text) if entry.kind == 'call' else ''.join(entry.text)} {entry.aside}"
            if wanted in text.lower():
                places.append(entry.at)
            elif entry.kind == "call":
                number = entry.step or 0
                if number not in in_sessions:
                    in_sessions[number] = _calls_with(run, number, wanted)
                if entry.key.rpartition("/")[2] in in_sessions[number]:
                    places.append(entry.at)
        if page.end >= page.size or page.end <= begin:
            break
        begin = page.end
    return places[:MOST]


def _calls_with(run: Run, step: int, wanted: str) -> set[str]:
    messages = messages_of(run.home.run(run.id), step)
    return {one.call_id for one in messages if one.role in ("call", "result") and wanted in one.text.lower()}
