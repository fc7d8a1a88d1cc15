"""The rows of the board as lines of a terminal: which ones, under which headings, in so many columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import set_cell_size
from rich.text import Text

from subagents_nb.domain.values import words
from subagents_nb.notebook.board.board_rows import NEEDS, order
from subagents_nb.notebook.cards.shown import LOOKS
from subagents_nb.notebook.page.lines import line, plural

GROUPINGS = ("need", "agent", "experiment", "tag", "notebook", "day")
HEADINGS = {"asks": "asks you", "failed": "failed, not seen"}
_COLOURS = {"asks": "yellow", "failed": "red", "working": "blue", "waiting": "", "done": "green"}
_PARTS = ("agent", "notebook", "experiment", "day")
_ALL = ("name", "agent", "now", "word", "need", "notebook", "experiment", "day", "task", "model")
_WHOLE = 120  # characters: a call of at most so many is shown as a whole, and may be allowed from its row
_BARS = "▁▂▃▄▅▆▇█"
_NARROW = 90


def wholly(question: Mapping[str, Any]) -> str:
    """Return the call that a question is about, if a row can show all of it."""
    parts = question.get("permission", {}).get("parts", [])
    text = str(parts[0]["text"]) if len(parts) == 1 and not parts[0]["cut"] else ""
    return text if text and len(text) <= _WHOLE and line(text, _WHOLE) == text else ""


def answers_of(question: Mapping[str, Any], *, whole: bool = False) -> list[tuple[str, str]]:
    """Return what may be answered by a digit: what it says, and what is sent. A call must be shown as a `whole`."""
    if "permission" not in question:
        return [(line(text, 40), text) for text in question["choices"][:4]]
    if not whole and not wholly(question):
        return []
    return [("Once", "once"), ("For this run", "for this run"), ("No", "no")]


def fits(row: Mapping[str, Any], filter_words: Sequence[str]) -> bool:
    """Say whether a row holds all these words somewhere, or where `agent:` and the like say."""
    everything = " ".join([*(str(row[name]) for name in _ALL), *row["tags"]]).lower()
    parts = {name: str(row[name]) for name in _PARTS}
    parts |= {"state": f"{row['word']} {row['need']}", "tag": " ".join(row["tags"])}

    def holds(word: str) -> bool:
        name, colon, rest = word.partition(":")
        return rest in parts[name].lower() if colon and name in parts else word in everything

    return all(map(holds, filter_words))


def grouped(rows: Iterable[dict[str, Any]], by: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the rows under their groups, in the order of the board."""
    groups: dict[str, list[dict[str, Any]]] = {need: [] for need in NEEDS} if by == "need" else {}
    for row in order(list(rows)):
        groups.setdefault(str(row[by] or "none"), []).append(row)
    return [(name, held) for name, held in groups.items() if held]


def heading(name: str, rows: Sequence[Mapping[str, Any]], by: str, head: Mapping[str, Any]) -> Text:
    """Return the heading of a group."""
    text = Text(f"{HEADINGS.get(name, name) if by == 'need' else line(name, 60)} {len(rows)}", style="bold")
    aside = ""
    if by == "need":
        text.stylize(_COLOURS.get(name, ""))
        counts = Counter(str(row["word"]) for row in rows)
        told = {"asks": "oldest first", "waiting": why_waiting(head)}
        aside = ", ".join(f"{n} {word}" for word, n in counts.items()) if name == "done" else told.get(name, "")
    return text.append(f"  {aside}" if aside else "", style="not bold dim")


def why_waiting(head: Mapping[str, Any]) -> str:
    """Say who holds the places that others wait for."""
    taken, limit = head.get("taken"), head.get("limit")
    if taken is None or limit is None or taken < limit:
        return ""
    return f"all {limit} places are taken; more: max_live_runs"


def head_line(head: Mapping[str, Any], shown: int, known: int) -> str:
    """Return what stands above the rows."""
    limit = head.get("limit")
    hidden = head.get("hidden") or 0
    used = f"{words.count(head.get('sent', 0))} / {words.count(head.get('got', 0))} tokens"
    parts = [
        "Runs",
        f"{head.get('taken', 0)} of {limit} places taken" if limit is not None else "",
        f"{shown} of {known} shown" if shown != known else "",
        f"{hidden:,} ended ones not listed" if hidden else "",
        f"today {plural(head.get('today', 0), 'run')}",
        used if head.get("sent") or head.get("got") else "",
        str(head.get("cost", "")),
    ]
    return " · ".join(filter(None, parts))


def row_lines(
    row: Mapping[str, Any], width: int, *, picked: bool = False, since_s: float = 0.0, rates: Sequence[float] = ()
) -> Text:
    """Return a row; a second line of it where something is to be decided."""
    narrow = width < _NARROW
    question = row.get("question")
    elapsed = row["elapsed_s"] + (since_s if row["word"] == "running" else 0.0)
    name_wide, agent_wide, rate_wide = (22, 0, 0) if narrow else (26, 12, 12)
    now_wide = max(10, width - (4 + name_wide + agent_wide + rate_wide + 3 + 16))
    look = LOOKS.get(row["word"])
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("■ " if picked else "□ ", style="bold" if picked else "dim")
    text.append(f"{look.icon if look is not None else '◌'} ", style=_COLOURS.get(row["need"], ""))
    text.append(set_cell_size(row["name"], name_wide - 1) + " ", style="bold")
    if agent_wide:
        text.append(set_cell_size(row["agent"], agent_wide - 1) + " ", style="dim")
    text.append(set_cell_size(said(row), now_wide - 1) + " ")
    if rate_wide:
        text.append(set_cell_size(spark(rates), rate_wide), style="blue")
    text.append(f" {words.elapsed(elapsed) if elapsed else '':>8} {row['cost']:>7}", style="dim")
    if question is not None:
        answers = "   ".join(f"{at} {label}" for at, (label, _) in enumerate(answers_of(question), 1))
        write = "" if "permission" in question else "w write"
        opens = "" if answers or write else "⏎ open it to see all of the call"
        asked = f"asked {words.elapsed(row['asked_s'] + since_s)} ago"
        below = "   ".join(filter(None, [answers, write, opens, asked]))
        text.append(f"\n    {set_cell_size(below, max(10, width - 6))}", style="yellow")
    return text


def said(row: Mapping[str, Any]) -> str:
    """Return what a row says of its run."""
    question = row.get("question")
    if question is not None and (call := wholly(question)):
        asked = question["permission"]
        what = f"{asked['asker'] + ': ' if asked.get('asker') else ''}may it call {asked['tool']}: {call}"
    else:
        what = row["now"]
    more = f"and {row['more']} more" if row["more"] else ""
    return " · ".join(filter(None, [what, more]))


def spark(rates: Sequence[float]) -> str:
    """Draw tokens a minute."""
    most = max(rates, default=0.0)
    return "".join(_BARS[round(rate / most * (len(_BARS) - 1))] for rate in rates) if most else ""


def whole_text(head: Mapping[str, Any], pages: Sequence[Mapping[str, Any]]) -> Text:
    """Return all that there is to read of a run that was opened: a line for each thing it did."""
    text = Text(f"{head.get('name', '')} {head.get('state', '')}\n", style="bold")
    if fault := head.get("text") or head.get("error"):
        text.append(f"\n{fault}\n", style="red")
    for question in head.get("questions", ()):
        text.append(f"\n{question['text']}\n", style="bold yellow")
        for part in question.get("permission", {}).get("parts", ()):
            text.append(f"{part['name']}:\n{part['text']}\n")
            if part["cut"]:
                text.append(f"… {part['cut']:,} more characters are not shown: subagents-nb status\n", style="red")
        shown = answers_of(question, whole=not is_cut(question))
        text.append("   ".join(f"{at} {label}" for at, (label, _) in enumerate(shown, 1)) + "\n", style="yellow")
    text.append(f"\n{head.get('task', '')}\n\n")
    for fact, value in head.get("facts", ()):
        text.append(f"{fact} ", style="dim").append(f"{value}\n")
    for meter in head.get("meters", ()):
        word = f" {meter['word']}" if meter["word"] else ""
        text.append(f"{meter['label']} ", style="dim").append(f"{meter['text']}{word}\n", style="red" if word else "")
    for at, page in enumerate(pages):
        if at and page.get("from", 0) > pages[at - 1].get("to", 0):
            text.append("\n… what lies between: subagents-nb transcript has all\n", style="dim")
        for entry in page.get("entries", ()):
            took = "" if entry.get("took") is None else f"{entry['took']:.1f} s"
            about = "  ".join(filter(None, [entry.get("state", ""), entry.get("aside", ""), took]))
            text.append(f"\n{words.elapsed(entry['s']):>7} ", style="dim")
            text.append(f"{entry['kind']} {entry['name']}".rstrip(), style="bold").append(f"  {entry['line']}")
            text.append(f"  {about}" if about else "", style="dim")
    answer = head.get("answer") or {}
    text.append(f"\n\n{answer.get('text', '')}")
    if (left := answer.get("all", 0) - answer.get("read", 0)) > 0:
        text.append(f"\n… {left:,} more characters", style="dim")
    return text


def is_cut(question: Mapping[str, Any]) -> bool:
    """Say whether a call is not shown as a whole, wherever it is shown."""
    return any(part["cut"] for part in question.get("permission", {}).get("parts", ()))
