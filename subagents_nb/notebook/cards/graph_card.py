"""The stages on a static card: a line for each, its steps behind a disclosure, and the outputs that have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from subagents_nb.blocks import Child, clean
from subagents_nb.domain.runs.records import StepResult
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values import words
from subagents_nb.notebook.cards.graph import StageRow, StepRow, chosen, so_far, stage_rows, step_rows, tally
from subagents_nb.notebook.cards.ledgers import acceptance
from subagents_nb.notebook.cards.shown import LOOKS, Look
from subagents_nb.notebook.cards.work_summary import Work
from subagents_nb.notebook.page.html import SOFT, code, colour, element, note, safe, soft, styled
from subagents_nb.notebook.page.lines import cut, line, plural

MAX_STEPS, OF_MANY = 64, 24  # of more than 64 steps so many are shown each
_MAX_STAGES = 24
_FEW = 4  # steps of a stage that need no folding away
_EXCERPT, _ALL_EXCERPTS = 300, 5_000  # characters: of one step, of all
_LIST = "margin:0;padding:0;list-style:none;overflow-wrap:anywhere;white-space:pre-wrap"
_STEPS = "margin-left:20px;font-size:12px"
_TEXT = "margin-left:20px;opacity:.8"
_WORK = "margin:4px 0 4px 20px;white-space:normal"  # not the source's own breaks, as in the texts
_QUIET_STATES = {"complete", "pending", "skipped"}


@dataclass(frozen=True, slots=True)
class _Texts:
    """What the steps came to, and how much of it there is room for."""

    results: dict[int, StepResult]
    answered: int | None
    each: int  # characters of each step
    work: Work

    def of(self, number: int) -> list[Child]:
        step = self.results.get(number)
        if step is None or not self.each:
            return []
        # Why it was rejected stands with its acceptance.
        full_text = step.text if step.reason == "rejected" and step.acceptance is not None else step.error or step.text
        text, left_out = cut(clean(full_text).strip(), self.each)
        if step.error is None and number == self.answered:
            text, left_out = "Its output is the answer below.", 0
        more = f" … {left_out:,} more characters: {self.work.run}.steps[{number}].text" if left_out else ""
        children: list[Child] = [styled("div", _TEXT, text + more)] if text else []
        return children + [styled("div", _WORK, part) for part in self.work.answer_notes(step, alone=False)]


def stages(snapshot: Snapshot, room: int, work: Work) -> list[Child]:
    """Return the stages, and below them the named outputs. `room` is what there is for a card's texts; 0: none.

    With each step what its work came to, for which `work` has the room.
    """
    rows = {row.number: row for row in step_rows(snapshot)}
    most, of_many = (MAX_STEPS, OF_MANY) if room > 1_200 else (OF_MANY, OF_MANY // 2) if room else (0, 0)
    shown = chosen(snapshot, most, of_many=of_many)
    each = min(_EXCERPT, _ALL_EXCERPTS // max(1, len(shown))) if room > 1_200 else 60 if room else 0
    results = {step.index: step for step in snapshot.result.steps} if snapshot.result is not None else {}
    texts = _Texts(results, getattr(snapshot.answer, "index", None), each, work)
    every = stage_rows(snapshot)
    items: list[Child] = []
    for stage in every[:_MAX_STAGES]:
        steps = [rows[number] for number in stage.steps if number in rows]
        items.append(_stage(stage, steps, shown, texts))
    more = len(every) - len(items)
    if more:
        items.append(styled("li", SOFT, f"… and {plural(more, 'more stage')}"))
    return [styled("ul", _LIST, *items), _outputs(snapshot)]


def _stage(stage: StageRow, steps: Sequence[StepRow], shown: set[int], texts: _Texts) -> Child:
    named = f"→ {stage.output_name}" if stage.output_name else ""
    if stage.kind == "step" and len(steps) == 1:
        name = safe(element("strong", None, stage.title), f" {named}" if named else "")
        agent = steps[0].agent if steps[0].agent != stage.title else ""
        return element("li", None, _step(steps[0], name, agent, texts))
    agents = {row.agent for row in steps}
    common = next(iter(agents)) if len(agents) == 1 and not any(row.name in agents for row in steps) else ""
    about = " · ".join(filter(None, [common, stage.aside, so_far(steps) if steps else ""]))
    lines = []
    for row in steps:
        if row.number in shown:
            lines.append(_step(row, row.name, "" if common or row.agent == row.name else row.agent, texts))
    left = [row.state for row in steps if row.number not in shown]
    rest = styled("div", SOFT, f"… and {tally(left, more=bool(lines))}") if left else None
    wrong = styled("div", _TEXT, stage.error) if stage.error else None
    if stage.accepted is not None and texts.each:  # the reasons of a rejection stand there
        wrong = styled("div", _TEXT, acceptance(stage.accepted, room=texts.each))
    inside = styled("div", _STEPS, *lines, rest) if lines or rest else None
    title = safe(_sign(stage.state), " ", element("strong", None, stage.title), f" {named}" if named else "")
    head = safe(title, soft(f" · {about}") if about else None)
    if inside is None:
        return element("li", None, head, wrong)
    is_open = len(steps) <= _FEW or any(row.state not in _QUIET_STATES for row in steps)
    summary = element("summary", None, head)
    return element("li", None, element("details", {"open": ""} if is_open else None, summary, wrong, inside))


def _step(row: StepRow, name: Child, agent: str, texts: _Texts) -> Child:
    took = words.elapsed(row.took_s) if row.took_s is not None and row.took_s >= 1 else ""
    facts = [agent, took, f"{words.count(row.tokens)} tokens" if row.tokens else "", row.activity, row.about]
    number = soft(f"{row.number} ")  # which `--step` wants
    head = safe(_sign(row.state), " ", number, name, *(f" · {fact}" for fact in facts if fact))
    inside = texts.of(row.number)
    if not inside:
        return element("div", None, head)
    return element("details", None, element("summary", None, head), *inside)


def _sign(state: str) -> Child:
    """Show a state by sign and word; what went well stays quiet, so that what did not is seen."""
    look = LOOKS.get(state, Look("◌"))
    word = f"{look.icon} {state}"
    if state in _QUIET_STATES or not look.tone:
        return safe(word)
    return styled("span", f"color:{colour(look.tone)};font-weight:600", word)


def _outputs(snapshot: Snapshot) -> Child:
    if snapshot.result is None or not snapshot.result.outputs:
        return None
    names = list(snapshot.result.outputs)
    listed = [part for name in names[:12] for part in (", ", code(line(name, 60)))][1:]
    more = f", and {len(names) - 12} more" if len(names) > 12 else ""
    return note("outputs: ", *listed, more)
