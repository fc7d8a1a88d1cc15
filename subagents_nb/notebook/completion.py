"""Complete flags, agents, models and runs behind our magics; nothing is offered elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from subagents_nb.notebook.options import subagent_parser

_LINE = re.compile(r"\s*%%?(subagent(?:_[a-z]+)?)\b(.*)\Z", re.DOTALL)
_RUN_MAGICS = ("subagent_status", "subagent_wait", "subagent_stop", "subagent_attach")
_LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")


def candidates(text: str, variables: dict[str, Any]) -> tuple[str, list[tuple[str, str]]] | None:
    """Return the token that is being written and what may stand there with its meaning; None if it is not our line."""
    match = _LINE.match(text)
    if match is None or "\n" in match[2]:
        return None
    magic, rest = match[1], match[2]
    if not rest[:1].isspace():
        return None
    words = rest.split()
    token = "" if rest.endswith((" ", "\t")) else (words[-1] if words else "")
    before = words[:-1] if token else words
    options = list(_options(magic, token, before[-1] if before else "", variables))
    return token, [(word, meaning) for word, meaning in options if word.startswith(token)]


def _options(magic: str, token: str, previous: str, variables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if magic in _RUN_MAGICS:
        yield from _runs()
    elif magic == "subagent":
        if previous == "--model":
            yield from _models()
        elif previous == "--schema":
            yield from _schemas(variables)
        elif previous == "--thinking":
            yield from ((level, "thinking level") for level in _LEVELS)
        elif previous == "--cwd":
            yield from ((entry.name + "/", "directory") for entry in os.scandir() if entry.is_dir())
        elif token.startswith("-"):
            parser = subagent_parser()
            yield from ((flag, parser.help_of(flag)) for flag in parser.flags())
        elif previous not in ("-o", "--output", "--name", "--timeout", "--tag"):
            yield from _agents()


def _agents() -> Iterator[tuple[str, str]]:
    from subagents_nb.launching import agents

    yield from ((agent.name, agent.description) for agent in agents().agents)


def _models() -> Iterator[tuple[str, str]]:
    from subagents_nb.domain.models import EMBEDDED, PROVIDERS
    from subagents_nb.domain.scripts import BUILTIN_SCRIPTS
    from subagents_nb.launching import settings

    yield EMBEDDED, "the embedded model"
    for name, endpoint in settings().endpoints.items():
        yield f"{name}:{endpoint.default_model or ''}", endpoint.base_url
    for provider in PROVIDERS:
        if any(os.environ.get(key) for key in provider.key_env):
            yield f"{provider.name}:{provider.default_model or ''}", "its key is set"
    yield from ((f"scripted:{name}", "deterministic script") for name in sorted(BUILTIN_SCRIPTS))


def _schemas(variables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    from subagents_nb.errors import RequestError
    from subagents_nb.launching.schemas import output_type

    for name, value in list(variables.items()):
        if name.startswith("_") or not isinstance(value, type | dict):
            continue
        try:
            output_type(value, name=name)
        except RequestError:
            continue
        if isinstance(value, type) or value.get("type") == "object":
            yield name, "schema"


def _runs() -> Iterator[tuple[str, str]]:
    from subagents_nb.launching import runs

    for snapshot in runs(limit=30).snapshots:
        state = str(snapshot.state or "unreadable")
        yield (snapshot.name if " " not in snapshot.name else snapshot.run_id), state
        yield snapshot.run_id, f"{snapshot.name} {state}"


def make_matcher(shell: Any) -> Any:
    """Return a matcher for the shell's completer that answers on our lines and keeps other matchers quiet there."""
    from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

    @context_matcher()  # type: ignore[untyped-decorator]
    def subagents_matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.splitlines() or [""]
        line = lines[context.cursor_line] if context.cursor_line < len(lines) else ""
        found = None
        if context.cursor_line == 0 or not lines[0].lstrip().startswith("%%"):
            try:
                found = candidates(line[: context.cursor_position], shell.user_ns)
            except Exception:  # noqa: BLE001 - a fault while completing must never disturb typing
                found = None
        if found is None:
            return {"completions": [], "suppress": False}
        token, words = found
        return {
            "completions": [SimpleCompletion(text=word, type="subagents") for word, _ in words],
            "suppress": True,
            "matched_fragment": token,
        }

    return subagents_matcher
