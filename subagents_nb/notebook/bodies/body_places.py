"""What may stand at the end of a chain's body that is still being written: a key of a mapping, an agent, or a value.

It need be no YAML yet, so that its lines are looked at, not parsed. Where they say too little, nothing is offered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from subagents_nb.domain.plans.options import BY_NAME
from subagents_nb.notebook.bodies.cell_fields import named
from subagents_nb.notebook.bodies.chain_cell import ATTACHED, FAN_OUT, GROUP, RUN, SOURCE, STEP, WHOLE

_WORD = r"((?:\w[\w.-]*)?)"
_KEY_HERE = re.compile(rf"(\s*)((?:-\s+)*){_WORD}\Z")
_VALUE_HERE = re.compile(r"\s*(?:-\s+)*(\w[\w-]*)\s*:\s+(?:\[(?:[^\[\]]*,)?\s*)?([^\s\[\]{},'\"|>]*)\Z")
_LINE = re.compile(r"(\s*)((?:-\s+)*)(?:(\w[\w.-]*)\s*:(?:\s+(.*))?)?\Z")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")

# What stands in the mapping of such a key.
_INSIDE: Mapping[str, Sequence[str]] = {
    "expand": SOURCE, "from": ("output", "path"), "collect": ("as", "schema"), "attach": RUN, "each": STEP,
}  # fmt: skip
_MEANINGS = {
    "agent": "who does it",
    "task": "what is to be done; {previous}, {outputs.NAME} and {item} stand for what came before",
    "as": "a name for its output, for {outputs.NAME}",
    "label": "what views call it",
    "schema": "a type of yours, or a JSON Schema",
    "count": "in a parallel group: so many of it",
    "session": "a run, or RUN/step 2, of whose conversation it goes on",
    "parallel": "steps that are at work at the same time",
    "expand": "a step for each item that an earlier step found",
    "each": "the step that is carried out for every item",
    "collect": "a name and a schema for all its answers together",
    "attach": "another run, from whose answer the next item goes on",
    "steps": "the items of the chain",
    "concurrency": "how many of them are at work at a time",
    "fail_fast": "after the first failure, start no further one",
    "on_failure": "stop or continue: what a failed one means for the chain",
    "from": "{output: NAME, path: /POINTER}: where the items are",
    "output": "the name of an earlier output",
    "path": "a JSON Pointer to the array inside it",
    "item": "what an item is called in the task",
    "key": "a JSON Pointer inside the item, by which it is told from others",
    "max_items": "at most so many",
    "on_empty": "skip or fail, where there is no item",
    "run": "a variable that holds the run, its name or its id",
    "step": "only this step of it",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The word that is being written, and what may stand there."""

    token: str
    keys: tuple[tuple[str, str], ...] = ()  # with what each means
    agents: bool = False  # the shorthand `AGENT: task` may begin here
    value_of: str = ""  # it is a value of this key


@dataclass(frozen=True, slots=True)
class _Line:
    dash: int | None  # the column of its first dash
    column: int  # that of its key
    key: str
    is_open: bool  # it has no value on the line


def place_at_end(body: Sequence[str]) -> Place | None:
    """Return what may stand at the end of a body, or None if nothing of ours may."""
    if not body:
        return None
    last = _QUOTED.sub("_", body[-1])
    if "'" in last or '"' in last or " #" in last or last.startswith("#"):
        return None
    if (brace := _open_brace(last)) is not None:
        return _in_braces(last[:brace], last[brace + 1 :])
    if value := _VALUE_HERE.match(last):
        return Place(value[2], value_of=named(value[1]))
    if not (match := _KEY_HERE.match(last)):
        return None
    here = _Line(len(match[1]) if match[2] else None, match.end(2), "", True)
    return _in_block(here, match[3], [one for text in body[:-1] if (one := _line(text)) is not None])


def _line(text: str) -> _Line | None:
    match = _LINE.match(text.rstrip())
    if match is None or not (match[2] or match[3]):
        return None
    return _Line(len(match[1]) if match[2] else None, match.end(2), named(match[3] or ""), not match[4])


def _in_block(here: _Line, token: str, above: Sequence[_Line]) -> Place | None:
    given: list[str] = []
    dash, column = here.dash, here.column
    for one in reversed(above):
        if dash is not None:  # an item has begun: what holds the list is a key as far to the left, or further
            if one.dash != dash and one.column <= dash:
                return _place(token, one.key if one.is_open else None, given, is_item=True)
        elif one.column == column:
            given.append(one.key)
            dash = one.dash
        elif one.column < column:  # the mapping stands below this key
            begins_item = one.dash is not None and one.key not in (*STEP, *_INSIDE, "parallel")
            return _place(token, ("agent:" if begins_item else one.key) if one.is_open else None, given, is_item=False)
    return _place(token, "", given, is_item=dash is not None)


def _place(token: str, parent: str | None, given: Sequence[str], *, is_item: bool) -> Place | None:
    if parent is None:
        return None  # the text of an earlier line goes on
    begins = not given
    known: Sequence[str]
    if is_item and parent in ("", "steps"):
        kinds: dict[str, Sequence[str]] = {"expand": FAN_OUT, "each": FAN_OUT, "parallel": GROUP, "attach": ATTACHED}
        known = next((keys for kind, keys in kinds.items() if kind in given), STEP)
        known = (*STEP, "parallel", "expand", "attach") if begins else known
    elif is_item and parent in ("parallel", "each"):
        known = STEP
    elif is_item:
        return None
    elif parent == "":
        known, begins = WHOLE, False
    elif parent == "agent:":  # `scout:`, and its keys below
        known, begins = tuple(key for key in STEP if key != "agent"), False
    elif parent in _INSIDE:
        known, begins = _INSIDE[parent], begins and parent == "each"
    else:
        return None
    return Place(token, tuple((key, _meaning(key, parent)) for key in known if key not in given), agents=begins)


def _in_braces(before: str, inside: str) -> Place | None:
    while (shorter := re.sub(r"\{[^{}]*\}|\[[^\[\]]*\]", "_", inside)) != inside:
        inside = shorter
    *earlier, last = inside.split(",") if "[" not in inside else [inside]
    if value := _VALUE_HERE.match(last):
        return Place(value[2], value_of=named(value[1]))
    given = [named(part.partition(":")[0].strip()) for part in earlier]
    owner = re.search(r"(\w[\w-]*)\s*:\s*\Z", before)
    is_item = owner is None and bool(re.fullmatch(r"\s*(?:-\s+)+", before))
    key = _KEY_HERE.match(last)
    if key is None or key[2] or not (owner or is_item):
        return None
    return _place(key[3], named(owner[1]) if owner else "", given, is_item=is_item)


def _open_brace(text: str) -> int | None:
    """Return where the innermost mapping begins that is not closed on the line."""
    open_ones: list[int] = []
    for at, char in enumerate(text):
        if char == "{":
            open_ones.append(at)
        elif char == "}" and open_ones:
            open_ones.pop()
    return open_ones[-1] if open_ones else None


def _meaning(key: str, parent: str) -> str:
    if key in _MEANINGS and not (key == "output" and parent not in ("expand", "from")):
        return _MEANINGS[key]
    return BY_NAME[key].help if key in BY_NAME else ""
