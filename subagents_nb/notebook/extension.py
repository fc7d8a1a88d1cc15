"""Load into and unload from an IPython shell. Loading starts nothing; unloading leaves nothing of ours."""

from __future__ import annotations

import sys
from typing import Any

_MATCHERS: dict[int, Any] = {}


def load(shell: Any) -> None:
    """Register magics, completion and the formatters of our lists; doing it twice changes nothing."""
    from subagents_nb.notebook.completion import make_matcher
    from subagents_nb.notebook.magics import SubagentMagics

    if id(shell) in _MATCHERS:
        return
    shell.register_magics(SubagentMagics)
    matcher = make_matcher(shell)
    _MATCHERS[id(shell)] = matcher
    completer = getattr(shell, "Completer", None)
    if completer is not None:
        completer.custom_matchers.append(matcher)
    _formatters(shell, add=True)


def unload(shell: Any) -> None:
    """Take everything away again; live views become cards, and with the last view or wait the watching thread ends."""
    matcher = _MATCHERS.pop(id(shell), None)
    if matcher is None:
        return
    completer = getattr(shell, "Completer", None)
    if completer is not None and matcher in completer.custom_matchers:
        completer.custom_matchers.remove(matcher)
    _formatters(shell, add=False)
    manager = shell.magics_manager
    for kind in ("line", "cell"):
        for name in [n for n in manager.magics[kind] if n == "subagent" or n.startswith("subagent_")]:
            del manager.magics[kind][name]
    ours = manager.registry.pop("SubagentMagics", None)
    if ours in shell.configurables:
        shell.configurables.remove(ours)  # or %config would go on setting the defaults of the one that was left
    show = sys.modules.get("subagents_nb.notebook.show")
    if show is not None:
        show.leave_all()


# By name, so that nothing heavy is imported before the first object of its kind exists.
_FORMATTED = (
    ("subagents_nb.launching.listing", "Runs", "runs"),
    ("subagents_nb.domain.agent", "AgentCatalog", "agents"),
    ("subagents_nb.launching.front", "Preflight", "preflight"),
)


def _formatters(shell: Any, *, add: bool) -> None:
    formatters = shell.display_formatter.formatters
    for module, name, what in _FORMATTED:
        for mime, kind in (("text/html", "html"), ("text/plain", "text")):
            if add:
                formatters[mime].for_type_by_name(module, name, _formatter(what, kind))
            else:
                formatters[mime].pop(f"{module}.{name}", None)


def _formatter(what: str, kind: str) -> Any:
    def render(value: Any, *context: Any) -> Any:
        from subagents_nb.notebook import lists

        text = getattr(lists, f"{what}_{kind}")(value)
        if kind == "html":
            return text
        printer = context[0]
        printer.text(text)
        return None

    return render
