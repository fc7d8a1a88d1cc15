"""Write docs/verbs.md and docs/options.md from their tables, and the table in docs/hosts.md from the tests of hosts.

Tests say when: `.venv/bin/python .ci/pages.py`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from subagents_nb.domain.plans.options import reference
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.notebook.verbs.verb import Arg, Verb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HEAD = """\
# What you can ask for

In a cell and in a terminal alike. `-h` behind any of them says the same at more length, behind `%` and `%%` alike. A
RUN is a name, an id, or at least 8 characters of one; in a cell also a variable that holds the run. A TEXT stands
behind `--` or in the cell's body, in a terminal it is the last word. In Python most are methods of `Run`.

| in a cell | in a terminal | |
| --- | --- | --- |
"""


HOSTS = """\
| host | magics | live view | buttons | after a reload | saved file | shown by |
| --- | --- | --- | --- | --- | --- | --- |
"""
HOSTS_BEGIN, HOSTS_END = "<!-- hosts: written by .ci/pages.py from the tests -->\n\n", "<!-- end of hosts -->"
# What no test runs, and what is publicly known of it.
NOT_RUN = {
    "VS Code": (
        "as in Jupyter",
        "as a widget, once its widget support is loaded",
        "likely",
        "no: it keeps no widget state (manzt/anywidget#101)",
        "a card, if it takes updates of outputs",
    ),
    "Colab": (
        "as in Jupyter",
        "a card, anew each second: it loses later messages (googlecolab/colabtools#498)",
        "no: verbs",
        "the card",
        "a card",
    ),
    "nbconvert to PDF": ("", "no", "no", "", "needs LaTeX, or Playwright's own browser"),
    "ipykernel 6.30": ("yes", "yes", "between cells: it has no subshells", "as with 7", "a card"),
}


def hosts() -> str:
    """Return the table of hosts: a row for each that a test has run, with its name, and for each that none has."""
    rows = sorted(_shown(), key=lambda row: row[0].lower())
    rows += [(name, *said, "not run") for name, said in NOT_RUN.items()]
    return HOSTS + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _shown() -> Iterator[tuple[str, ...]]:
    """Yield what tests say by `@pytest.mark.host`."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.host(" not in text:
            continue
        tests = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
        for test in tests:
            for mark in test.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.host":
                    said = {one.arg: ast.literal_eval(one.value) for one in mark.keywords}
                    what = (said[part] for part in ("magics", "live", "buttons", "reload", "saved"))
                    yield ast.literal_eval(mark.args[0]), *what, f"`{path.relative_to(ROOT)}`"


def with_hosts(page: str) -> str:
    """Return docs/hosts.md with the table as it is now."""
    before, _, rest = page.partition(HOSTS_BEGIN)
    return f"{before}{HOSTS_BEGIN}{hosts()}\n{HOSTS_END}{rest.partition(HOSTS_END)[2]}"


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
    about_hosts = DOCS / "hosts.md"
    about_hosts.write_text(with_hosts(about_hosts.read_text(encoding="utf-8")), encoding="utf-8")
