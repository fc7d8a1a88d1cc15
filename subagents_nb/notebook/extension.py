"""Load into and unload from an IPython shell. Loading starts nothing in its cell; unloading leaves nothing of ours."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from subagents_nb.errors import unchanged
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.notebook.verbs.verb import Verb

_LOADED: dict[int, list[Callable[[], None]]] = {}  # by shell: how to take away what was added
_SILENT = logging.NullHandler()
_MAGICS = "SubagentMagics"


# What stands on a page, and is left as it stands.
_SHOWING = (
    "views.show",
    "comparing.compare_show",
    "comparing.sweep_show",
    "board.board_show",
    "full.full_view",
    "held.held",
)


def load(shell: Any, verbs: Sequence[Verb] = VERBS) -> None:
    """Register magics, completion, notices and the formatters of our lists; doing it twice changes nothing."""
    from subagents_nb.notebook.board.looking_back import LookingBack
    from subagents_nb.notebook.magics.magics import magics_of
    from subagents_nb.notebook.magics.warming import Prewarming
    from subagents_nb.notebook.old_views import OldViews
    from subagents_nb.notebook.views.notifications import Notifier

    if id(shell) in _LOADED:
        return
    # What goes wrong on a thread of ours is for those who listen; the last resort would print into a stranger's cell.
    logging.getLogger("subagents_nb").addHandler(_SILENT)
    shell.register_magics(magics_of(verbs))
    notifier = Notifier(shell)
    notifier.install()
    behind = LookingBack(shell), OldViews(shell), Prewarming(shell)
    for one in behind:
        one.install()
    undo = [
        _add_matcher(shell, verbs),
        _keep_question_marks(shell),
        _install_bare_help(shell),
        notifier.remove,
        *(one.remove for one in behind),
    ]
    _LOADED[id(shell)] = undo
    _formatters(shell, add=True)


def unload(shell: Any) -> None:
    """Take everything away again; live views become cards, and with the last view or wait the watching thread ends."""
    undo = _LOADED.pop(id(shell), None)
    if undo is None:
        return
    for take_away in undo:
        take_away()
    _formatters(shell, add=False)
    manager = shell.magics_manager
    for kind in ("line", "cell"):
        for name in [n for n in manager.magics[kind] if n == "subagent" or n.startswith("subagent_")]:
            del manager.magics[kind][name]
    ours = manager.registry.pop(_MAGICS, None)
    if ours in shell.configurables:
        shell.configurables.remove(ours)  # or %config would go on setting the defaults of the one that was left
    for name in _SHOWING:
        shown = sys.modules.get(f"subagents_nb.notebook.{name}")
        if shown is not None:
            shown.leave_all()


def _add_matcher(shell: Any, verbs: Sequence[Verb]) -> Callable[[], None]:
    from subagents_nb.notebook.completion import make_matcher

    completer = getattr(shell, "Completer", None)
    if completer is None:
        return lambda: None
    matcher = make_matcher(shell, verbs)
    completer.custom_matchers.append(matcher)
    return lambda: completer.custom_matchers.remove(matcher)


def _keep_question_marks(shell: Any) -> Callable[[], None]:
    from subagents_nb.notebook.magics.question_marks import TRANSFORMERS

    transformers = shell.input_transformer_manager.token_transformers
    transformers.extend(TRANSFORMERS)

    def undo() -> None:
        for one in TRANSFORMERS:
            transformers.remove(one)

    return undo


_HELP = re.compile(r"\s*%(%subagent(?:_[a-z]+)?\s+(?:.*\s)?(?:-h|--help)\s*)\Z")


_LAUNCH = re.compile(r"%%subagent(?:_chain|_append)?(?![^\s])")  # what has no form without a body


def bare_help(lines: list[str]) -> list[str]:
    """Take the second % from a cell that only asks for help: no magic runs over an empty body, ipython/ipython#3180."""
    match = _HELP.match("".join(lines).strip())
    return [match[1].strip() + "\n"] if match is not None and "\n" not in match[1].strip() else lines


def blank_body(lines: list[str]) -> list[str]:
    """Give a cell that would launch and says nothing more a blank body, so that it is we who say what is missing."""
    whole = "".join(lines).strip()
    return [f"{whole}\n", "\n"] if _LAUNCH.match(whole) and "\n" not in whole else lines


blank_body.has_side_effects = True  # type: ignore[attr-defined]  # or a prompt would take it for all that is typed


def _install_bare_help(shell: Any) -> Callable[[], None]:
    transformers = shell.input_transformers_cleanup
    transformers.extend((bare_help, blank_body))

    def undo() -> None:
        for one in (bare_help, blank_body):
            transformers.remove(one)

    return undo


# By name, so that nothing heavy is imported before the first object of its kind exists.
_FORMATTED = (
    ("subagents_nb.launching.listing", "Runs"),
    ("subagents_nb.domain.agents.agent", "AgentCatalog"),
    ("subagents_nb.launching.front", "Preflight"),
    ("subagents_nb.launching.stored.project_trust", "ProjectTrust"),
)


def _formatters(shell: Any, *, add: bool) -> None:
    formatters = shell.display_formatter.formatters
    for module, name in _FORMATTED:
        for mime, form in (("text/html", _as_page), ("text/plain", _as_text)):
            if add:
                formatters[mime].for_type_by_name(module, name, form)
            else:
                formatters[mime].pop(f"{module}.{name}", None)


@unchanged()
def _as_page(value: Any) -> str:
    from subagents_nb.notebook.plans.lists import listed_html

    return listed_html(value)


@unchanged()
def _as_text(value: Any, printer: Any, _cycle: bool) -> None:
    from subagents_nb.blocks import to_text
    from subagents_nb.notebook.plans.lists import described

    printer.text(to_text(described(value)))
