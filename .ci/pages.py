"""Write docs/verbs.md and docs/options.md from their tables; tests say when: `.venv/bin/python .ci/pages.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from subagents_nb.domain.plans.options import reference
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.notebook.verbs.verb import Arg, Verb

DOCS = Path(__file__).parents[1] / "docs"
HEAD = """\
# What you can ask for

In a cell and in a terminal alike. `-h` behind any of them says the same at more length, behind `%` and `%%` alike. A
RUN is a name, an id, or at least 8 characters of one; in a cell also a variable that holds the run. A TEXT stands
behind `--` or in the cell's body, in a terminal it is the last word. In Python most are methods of `Run`.

| in a cell | in a terminal | |
| --- | --- | --- |
"""


def page(verbs: Iterable[Verb]) -> str:
    """Return the page."""
    verbs = list(verbs)
    rows = "".join(f"| {_cell(verb)} | {_terminal(verb)} | {verb.help} |\n" for verb in verbs)
    flags = "".join(_flags(verb) for verb in verbs if any(_is_flag(one) for one in verb.args) or verb.launches)
    return f"{HEAD}{rows}\n## Their flags\n\n{flags}"


def _cell(verb: Verb) -> str:
    return (
        f"no: {verb.not_in_cell}" if verb.not_in_cell else f"`{verb.prog} {verb.magic_usage}`".replace(" [FLAGS]", "")
    )


def _terminal(verb: Verb) -> str:
    if verb.not_in_terminal:
        return f"no: {verb.not_in_terminal}"
    runs = {"": [], "one": ["RUN"], "maybe": ["[RUN]"], "any": ["[RUN ...]"], "some": ["RUN [RUN ...]"]}[verb.runs]
    words = [one.names[0].upper() for one in verb.args if not _is_flag(one) and not one.not_in_terminal]
    return f"`{' '.join(['subagents-nb', verb.command, *runs, *words, *_body(verb)])}`"


def _body(verb: Verb) -> Iterator[str]:
    if verb.text:
        yield "TEXT"
    if verb.yaml:
        yield "FILE"


def _flags(verb: Verb) -> str:
    name = f"`{verb.prog}`" if not verb.not_in_cell else f"`subagents-nb {verb.command}`"
    lines = [f"- {', '.join(f'`{flag}`' for flag in one.names)}{_about(one)}" for one in verb.args if _is_flag(one)]
    launches = [f"- in a cell all that `{verb.prog} -h` shows"] if verb.launches else []
    return "\n".join([f"{name}", "", *launches, *lines, "", ""])


def _about(arg: Arg) -> str:
    apart = "; ".join(
        f"not in a {where}: {why}"
        for where, why in (("cell", arg.not_in_cell), ("terminal", arg.not_in_terminal))
        if why
    )
    return f": {arg.how.get('help', '')}{f' ({apart})' if apart else ''}"


def _is_flag(arg: Arg) -> bool:
    return arg.names[0].startswith("-")


if __name__ == "__main__":
    (DOCS / "verbs.md").write_text(page(VERBS), encoding="utf-8")
    options = DOCS / "options.md"
    head = options.read_text(encoding="utf-8").partition("| flag")[0]
    options.write_text(head + reference(), encoding="utf-8")
