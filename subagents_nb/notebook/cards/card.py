"""The static card of a run: what stays in the notebook when the live view is gone, and what a terminal shows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from subagents_nb.blocks import Child, DescriptionList, Either, Html, clean, page_only
from subagents_nb.domain.kept.retention import size as size_on_disk
from subagents_nb.domain.runs.resuming import chain_can_resume
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values import words
from subagents_nb.notebook.cards import end_notes as endings
from subagents_nb.notebook.cards.graph import launch_notes, mode_of, so_far, stages_text, step_rows
from subagents_nb.notebook.cards.graph_card import stages
from subagents_nb.notebook.cards.reused import anew_line, other_notes
from subagents_nb.notebook.cards.shown import (
    LOOKS,
    context_words,
    model_words,
    shown_name,
    shown_state,
    typed_name,
    who,
)
from subagents_nb.notebook.cards.tables import (
    MAX_COLUMNS,
    MAX_ROWS,
    is_records,
    pruned,
    records_table,
    short,
    size,
    state_badge,
)
from subagents_nb.notebook.cards.tree_card import tree
from subagents_nb.notebook.cards.view import attention_line, text_line, value_summary
from subagents_nb.notebook.cards.work_summary import Work, left_in_trees, work_line, works_text
from subagents_nb.notebook.page.html import (
    SOFT,
    bar,
    bounded_page,
    code,
    element,
    frame,
    note,
    pre,
    safe,
    say,
    soft,
    styled,
)
from subagents_nb.notebook.page.lines import cut, fold, line, plural, scalar
from subagents_nb.notebook.page.markdown import safe_markdown
from subagents_nb.plain_text import shortened

MAX_CARD_BYTES = 16_000
MAX_TEXT_CHARS = 4_000
# Characters of the answer, lines of changes; the next is tried when the card is too big.
_ROOMS = ((3_000, 80), (3_000, 24), (1_200, 8), (400, 0), (0, 0))
_DEPTH, _TAIL_LINES, _QUESTIONS, _FILES = 4, 12, 4, 8
_WORTH_SAYING = 1_000_000  # bytes on the disk
_WHEN = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)\Z")
_LIST = "margin:0;padding-left:18px"
_LOOSE = "margin:0 0 8px"
_APART = "padding:8px 12px;border-radius:4px;background:color-mix(in srgb,currentColor 6%,transparent)"
_AT_HOME = {
    "<p>": f'<p style="{_LOOSE}">',
    "<pre><code>": f'<pre style="{_LOOSE};{_APART}"><code style="background:none">',
    "<th>": '<th style="text-align:left">',
    "<td>": '<td style="text-align:left">',
}


class CardContext(NamedTuple):
    """What a card says and no reading of the run does: it was looked up where the run was shown."""

    binding: str | None = None  # the variable that holds the run
    has_session: bool | None = None  # whether it can be resumed; None: nobody has looked
    changed_files: tuple[str, ...] = ()  # of a run that left no last word
    source: str = ""  # the name of the run from which it goes on
    reused: str = ""  # what is said of a launch that found it
    patches: Mapping[int, str] | None = None  # by the numbers of steps: what each changed in its worktree
    trees: int = 0  # worktrees that a run without a last word left behind
    disk: int = 0  # bytes that it takes on the disk
    as_of: str = ""  # of a live run: when it was looked at

    @property
    def holder(self) -> str:
        """Return what to call the run in something to type."""
        return line(self.binding, 60) if self.binding else "run"


NOTHING = CardContext()


def card_page(snapshot: Snapshot, beside: CardContext = NOTHING) -> Html:
    """Return the card as a notebook keeps it: at most 16,000 bytes whatever the run wrote."""
    return bounded_page(lambda room: card(snapshot, beside, *room), _ROOMS, MAX_CARD_BYTES)


def card(
    snapshot: Snapshot, beside: CardContext = NOTHING, room: int = 0, lines: int = 0, *, figures: bool = False
) -> Child:
    """Describe a run: state, name and figures; why it ended; what its work came to; the answer; how to get it again.

    `room` and `lines` are what a page has for texts and changes. A text is short by itself; with `figures` it says what
    each step took.
    """
    state, name = shown_state(snapshot), shown_name(snapshot)
    work = Work(lines, beside.holder, beside.patches or {})
    drawn = page_only(*stages(snapshot, room, work)) if snapshot.stages else None
    course = Either(drawn, stages_text(snapshot, figures=figures))
    answer = _answer(snapshot, beside, room)
    steps = snapshot.result.steps if snapshot.result is not None and not snapshot.stages else ()
    beside_answer = page_only(*work.answer_notes(steps[-1], alone=True)) if steps else None
    # Of a partial run the one line of a text says what it came to, and nothing yet says why that is not all.
    why = line(snapshot.error or endings.ending(snapshot), 300) if state == "partial" else ""
    body = [
        page_only(*_open(snapshot, room), *_ending(snapshot, state, beside, room), _refused(snapshot)),
        Either(None, why),
        course,
        tree(snapshot, room),
        page_only(*answer),
        beside_answer,
        Either(None, works_text(snapshot, beside.holder)),
        page_only(note(launch_notes(snapshot)), _story(snapshot, beside), _notes(snapshot)),
        note(work_line(snapshot, beside.holder)),
        note(beside.reused or anew_line(snapshot)),
        Either(None, _answer_text(snapshot, beside)),
    ]
    head = Either(_head(snapshot, state, name), text_line(snapshot))
    return frame(f"Run {name}, {state}", head, body, page_only(_foot(snapshot, state, beside)))


def _answer_text(snapshot: Snapshot, beside: CardContext) -> str:
    """Return the answer as a text has it: as it is, or a value as JSON; bounded."""
    if shown_state(snapshot) not in {"complete", "partial"} or not (snapshot.has_value or snapshot.text):
        return ""
    if snapshot.has_value:
        text = json.dumps(pruned(snapshot.value, _DEPTH * 2, [400]), indent=2, ensure_ascii=False)
    else:
        text = snapshot.text
    head, left_out, tail = fold(clean(text).strip(), MAX_TEXT_CHARS)
    between = f"\n… cut: {left_out:,} more characters in {_output(beside)} …\n" if left_out else ""
    return f"\n{head}{between}{tail}"


def _head(snapshot: Snapshot, state: str, name: str) -> Child:
    does = " · ".join(filter(None, mode_of(snapshot) if snapshot.stages else who(snapshot)))
    usage = snapshot.usage
    tokens = f"{words.tokens(usage)} tokens" if usage.input_tokens + usage.output_tokens else ""
    elapsed = words.elapsed(snapshot.elapsed_s) if snapshot.elapsed_s > 0 else ""
    waited = f"waited {words.elapsed(snapshot.waited_s)}" if snapshot.waited_s >= 1 else ""
    far = so_far(step_rows(snapshot)) if snapshot.stages else ""
    day = _day(snapshot.started_at) if snapshot.ended else ""  # of a live one it is said as of when it was looked at
    facts = " · ".join(filter(None, [day, elapsed, waited, far, tokens, words.cost(usage.cost_usd)]))
    by = soft(does) if does else None
    title = safe(state_badge(state), " ", styled("strong", "margin:0 4px", name), " ", by)
    return bar(title, styled("span", "font-size:12px", facts) if facts else None)


def _day(when: str) -> str:
    """Say when a run began, as every reader of a saved notebook understands it; nothing where nobody wrote it."""
    match = _WHEN.match(when)
    return f"{match[1]} {match[2]} UTC" if match else ""


def _open(snapshot: Snapshot, room: int) -> list[Child]:
    """Say what a live run wants of the person: its questions, a place, a look."""
    questions = snapshot.questions[: _QUESTIONS if room else 1]
    shown: list[Child] = [say("warn", endings.question_line(snapshot, question)) for question in questions]
    if snapshot.waits_for_slot:
        shown.append(say("", f"It waits for {snapshot.waits_for}."))
    wants_a_look = attention_line(snapshot)
    return [*shown, say("warn", wants_a_look) if wants_a_look else None]


def _ending(snapshot: Snapshot, state: str, beside: CardContext, room: int) -> list[Child]:
    """Say why it ended: who ended it, what it left, the last lines. Of a run at work, the last lines alone."""
    if state == "complete":
        return []
    error, left_out = cut(clean(snapshot.error or "").strip(), 1_200 if room else 300)
    more = f" … cut: {left_out:,} more characters" if left_out else ""
    why = endings.ending(snapshot)
    if endings.says_it_all(snapshot):
        why, error = error, ""
    changed = snapshot.changed_files or beside.changed_files
    files = _changed(changed, _FILES if room else 2, endings.says_nothing_restarts(snapshot) and not left_out)
    left = [endings.at_work(snapshot.open_tools), files, left_in_trees(beside.trees, beside.holder)]
    end_line = say(LOOKS[state].tone, why, error + more if error else None, *left) if why else None
    # Of a chain the last lines stand with the steps, once it has a last word.
    wanted = room and state != "partial" and not (snapshot.stages and snapshot.result is not None)
    rows = clean(snapshot.tail).strip("\n").splitlines() if wanted else []
    last = [shortened(row, 160) for row in rows[-_TAIL_LINES:]]
    return [end_line, pre("\n".join(last)) if last else None]


def _changed(files: tuple[str, ...], most: int, said: bool) -> Child:
    """Say which files were changed, and that nothing restarts by itself, unless that is `said` already."""
    lead, names, more = endings.changed(files, most)
    if not names:
        return None
    listed = [part for name in names for part in (", ", code(name))][1:]
    return safe(lead, " ", *listed, f" {more}" if more else "", "." if said else ". Nothing restarts by itself.")


def _refused(snapshot: Snapshot) -> Child:
    if not (count := snapshot.refusals):
        return None
    kinds = endings.refusals(snapshot)
    each = [f"{tool}{f' ({why})' if why else ''}{f' ×{times}' if times > 1 else ''}" for tool, why, times in kinds[:4]]
    more = [f"and {len(kinds) - 4:,} more"] if len(kinds) > 4 else []
    were = "tool call was" if count == 1 else "tool calls were"
    return say("warn", f"Warning: {count:,} {were} refused{': ' if each else ''}{', '.join(each + more)}")


def _story(snapshot: Snapshot, beside: CardContext) -> Child:
    """Say quietly what else there is: where it goes on from, which limits were changed, what it used, how much disk."""
    source, name = line(snapshot.resumed_from or "", 60), line(beside.source, 80)
    known = f"{name} ({source})" if name not in {"", source} else source
    origin = f"goes on from {known}" if source else ""
    takes = f"takes {size_on_disk(beside.disk)} of the disk" if beside.disk >= _WORTH_SAYING else ""
    budget = snapshot.usage_budget
    used = f"used {budget.words(snapshot.usage_of_all)}" if budget is not None else ""
    alone = snapshot.steps[0] if snapshot.steps and not snapshot.stages else None
    model = model_words(alone) if alone is not None and alone.selected else ""
    context = context_words(alone) if alone is not None else ""
    otherwise = model if "," in model else ""  # the head says the model
    parts = [origin, otherwise, context, used, endings.retuned(snapshot.retunes), takes]
    return note(" · ".join(filter(None, parts)))


def _notes(snapshot: Snapshot) -> Child:
    return note(" · ".join(filter(None, (line(said, 300) for said in other_notes(snapshot)[:4]))))


def _foot(snapshot: Snapshot, state: str, beside: CardContext) -> Child:
    what = value_summary(snapshot, 80) if state in {"complete", "partial"} else ""
    if what:
        left: Child = safe(code(_output(beside)) if beside.binding else "the answer", soft(f": {what}"))
        if state == "partial" and chain_can_resume(snapshot):
            left = safe(left, soft(" · "), _what_next(snapshot, beside))
    else:
        left = _what_next(snapshot, beside)
    again = f"{beside.holder} = subagents_nb.attach({json.dumps(typed_name(snapshot))})"
    return bar(left, safe(soft("again:"), " ", code(again)), foot=True)


def _what_next(snapshot: Snapshot, beside: CardContext) -> Child:
    say_it, what_to_type = endings.next_action(snapshot, has_session=beside.has_session)
    as_of = f"as of {beside.as_of} · " if beside.as_of else ""
    return safe(soft(as_of + say_it), " ", code(what_to_type))


def _output(beside: CardContext) -> str:
    return f"{beside.holder}.output"


def _answer(snapshot: Snapshot, beside: CardContext, room: int) -> list[Child]:
    if snapshot.stages and shown_state(snapshot) not in {"complete", "partial"}:
        return []  # a chain that broke off has none; its steps have theirs
    hint = safe("all of it: ", code(_output(beside)))
    if snapshot.has_value:
        if room:
            return _value(snapshot.value, room, hint)
        return [note("The value is too big to show; ", hint)]
    if not snapshot.text.strip():
        return [note("The run gave no text.")] if shown_state(snapshot) == "complete" else []
    head, left_out, tail = fold(clean(snapshot.text).strip(), room)
    if not left_out:
        return [_prose(head)]
    between = note(f"… cut: {left_out:,} more characters, ", hint)
    return [_prose(head), between, _prose(tail) if tail else None]


def _prose(text: str) -> Child:
    return element("div", None, _at_home(safe_markdown(text)))


def _at_home(shown: Html) -> Html:
    """Keep a text tight, its tables to the left, which Lab would spread, and its code apart from the prose."""
    text = str(shown)
    for bare, ours in _AT_HOME.items():  # the sanitizer leaves bare tags only
        text = text.replace(bare, ours)
    for tag in ("p", "pre"):
        if text.endswith(f"</{tag}>"):
            head, tag_found, last = text.rpartition(f'<{tag} style="{_LOOSE}')
            text = f'{head}<{tag} style="margin:0{last}' if tag_found else text
    return Html(text)


def _value(value: Any, room: int, whole: Child) -> list[Child]:
    """Show a structured value: a list of objects as a table, an object as two columns, what is nested as a tree."""
    if is_records(value):
        return records_table(value, "", room, whole)
    if isinstance(value, dict) and value:
        lists = [key for key, part in value.items() if is_records(part)]
        if len(lists) == 1:
            rest = {key: part for key, part in value.items() if key != lists[0]}
            above = [_object(rest, room // 4, whole)] if rest else []
            # Alone in its object, the list needs no heading: who wrote the schema knows what it is called.
            return [*above, *records_table(value[lists[0]], lists[0], room, whole, alone=not rest)]
        return [_object(value, room, whole)]
    return [_tree(value, _DEPTH, [room])]


def _object(value: dict[str, Any], room: int, whole: Child) -> Child:
    keys, budget = list(value)[:MAX_ROWS], [room]
    rows: list[tuple[str, Child]] = [(line(str(key), 60), _tree(value[key], _DEPTH - 1, budget)) for key in keys]
    left_out = len(value) - len(keys)
    return DescriptionList([*rows, ("…", safe(plural(left_out, "more field"), ", ", whole))] if left_out else rows)


def _tree(value: Any, depth: int, budget: list[int]) -> Child:
    """Show a nested value as lists in lists, until depth or budget is used up; what is left out is counted."""
    if not isinstance(value, dict | list) or not value:
        shown = short(value, max(24, min(600, budget[0])))
        budget[0] -= len(shown)
        return safe(shown)
    if flat := _inline(value):
        budget[0] -= len(flat)
        return safe(flat)
    if depth <= 0 or budget[0] <= 0:
        return soft(f"… {size(value)}")
    parts = list(value.items() if isinstance(value, dict) else (("", part) for part in value))
    items: list[Child] = []
    for key, part in parts[:MAX_ROWS]:
        if budget[0] <= 0:
            break
        budget[0] -= 20
        name = safe(soft(line(str(key), 60)), ": ") if isinstance(value, dict) else None
        items.append(element("li", None, name, _tree(part, depth - 1, budget)))
    left_out = len(parts) - len(items)
    more = styled("li", SOFT, f"… {left_out:,} more") if left_out else None
    return styled("ul", _LIST, *items, more)


def _inline(value: dict[str, Any] | list[Any]) -> str:
    """Say a short flat value in one line; nothing if it is long or nested."""
    if len(value) > MAX_COLUMNS or any(
        isinstance(p, dict | list) for p in (value.values() if isinstance(value, dict) else value)
    ):
        return ""
    if isinstance(value, dict):
        text = ", ".join(f"{line(str(key), 60)}: {scalar(part, 60)}" for key, part in value.items())
    else:
        text = ", ".join(scalar(part, 60) for part in value)
    return text if len(text) <= 60 else ""
