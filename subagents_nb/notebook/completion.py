"""Complete flags, agents, models and runs behind our magics; nothing is offered elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from subagents_nb.domain.plans.options import BY_NAME
from subagents_nb.notebook.magics.line_parser import MagicParser
from subagents_nb.notebook.magics.parsers import magic_parser
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.notebook.verbs.verb import Verb
from subagents_nb.plain_text import one_line

_LINE = re.compile(r"\s*(?:\w+\s*=\s*)?%%?(subagent(?:_[a-z]+)?)\b(.*)\Z", re.DOTALL)
_ACCEPTANCE = (
    ("attested", "the agent reports on it"),
    ("checked", "what has to be shown is shown"),
    ("off", "nothing is asked for"),
)
_OUTPUT_MODES = (("inline", "the answer comes back too"), ("file-only", "a line that names the file comes back"))

_CHAIN_CELL = re.compile(r"\s*%%subagent_(?:chain|append)\b")
_MEANING_CHARS = 72  # a page shows it beside the word, on one line

Offer = tuple[str, str]  # a word and what it means


def candidates(text: str, variables: dict[str, Any], verbs: Sequence[Verb] = VERBS) -> tuple[str, list[Offer]] | None:
    """Return the token that is being written and what may stand there with its meaning; None if it is not our line."""
    match = _LINE.match(text)
    if match is None or "\n" in match[2] or not match[2][:1].isspace():
        return None
    verb = next((one for one in verbs if one.magic == match[1] and not one.not_in_cell), None)
    if verb is None:
        return None
    rest = match[2]
    words = rest.split()
    token = "" if rest.endswith((" ", "\t")) else (words[-1] if words else "")
    before = words[:-1] if token else words
    if "--" in before:  # what stands behind it is the task
        return None
    parser = magic_parser(verb)
    flag, equals, begun = token.partition("=")
    if equals and flag.startswith("--"):
        return begun, _fitting(begun, _values(flag, variables))
    if before and parser.takes_value(before[-1]):
        return token, _fitting(token, _values(before[-1], variables))
    return token, _fitting(token, _words(verb, parser, token, before, variables))


def in_body(body: Sequence[str], variables: dict[str, Any]) -> tuple[str, list[Offer]] | None:
    """Return the same for the end of a chain's YAML: keys, agents, and the values that the flags of a launch have."""
    from subagents_nb.notebook.bodies.body_places import place_at_end

    place = place_at_end(body)
    if place is None:
        return None
    if place.value_of:
        values = _agents(variables) if place.value_of == "agent" else _values(f"--{place.value_of}", variables)
        offers = _fitting(place.token, values)
    else:
        keys = ((key, f"key: {meaning}") for key, meaning in place.keys)
        offers = [
            *(_fitting(place.token, _agents(variables)) if place.agents else ()),
            *_fitting(place.token.replace("-", "_"), keys),
        ]
    return (place.token, offers) if offers else None


def _fitting(token: str, offers: Iterator[Offer]) -> list[Offer]:
    found: dict[str, str] = {}
    for word, meaning in offers:
        if word.startswith(token):
            found.setdefault(word, meaning)
    return list(found.items())


def _words(
    verb: Verb, parser: MagicParser, token: str, before: list[str], variables: dict[str, Any]
) -> Iterator[Offer]:
    """Offer what may begin here: the agent or a run, if there is room for one more, and the flags."""
    if not token.startswith("-"):
        plain_words = [word for at, word in enumerate(before) if _is_plain(parser, word, before[at - 1] if at else "")]
        if (verb.name == "launch" or verb.agent) and not plain_words:
            yield from _agents(variables)
        elif verb.runs in ("any", "some") or (verb.runs and not plain_words):
            yield from ((word, meaning) for word, meaning in _runs(variables) if word not in plain_words)
    yield from ((flag, f"flag: {parser.help_of(flag)}") for flag in parser.flags())


def _is_plain(parser: MagicParser, word: str, previous: str) -> bool:
    return not word.startswith("-") and not parser.takes_value(previous)


def _values(flag: str, variables: dict[str, Any]) -> Iterator[Offer]:
    offer = _VALUES.get(flag)
    return offer(variables) if offer is not None else iter(())


def _agents(_: dict[str, Any]) -> Iterator[Offer]:
    from subagents_nb.launching import agents

    yield from ((agent.name, f"agent: {agent.description}") for agent in agents().agents)


def _models(_: dict[str, Any]) -> Iterator[Offer]:
    from subagents_nb.domain.agents.models import EMBEDDED, PROVIDERS
    from subagents_nb.domain.agents.scripts import BUILTIN_SCRIPTS, SCRIPT_FOLDER
    from subagents_nb.launching import settings

    yield EMBEDDED, "the embedded model"
    for name, endpoint in settings().endpoints.items():
        yield f"{name}:{endpoint.default_model or ''}", endpoint.base_url
    for provider in PROVIDERS:
        if any(os.environ.get(key) for key in provider.key_env):
            yield f"{provider.name}:{provider.default_model or ''}", "its key is set"
    yield from ((f"scripted:{name}", "deterministic script") for name in sorted(BUILTIN_SCRIPTS))
    own = sorted(path.stem for path in Path(SCRIPT_FOLDER).glob("*.json"))
    yield from ((f"scripted:{name}", "script of this project") for name in own if _is_word(name))


def _tools(_: dict[str, Any]) -> Iterator[Offer]:
    from subagents_nb.domain.agents.agent import KNOWN_TOOLS

    yield from ((name, "tool") for name in KNOWN_TOOLS)


def _skills(_: dict[str, Any]) -> Iterator[Offer]:
    from subagents_nb.catalog.guidance.skill_places import FOLDERS

    for base, whose in ((Path(), "of this project"), (Path.home(), "of yours")):
        found = sorted(path.parent.name for folder in FOLDERS for path in (base / folder).glob("*/SKILL.md"))
        yield from ((name, f"skill {whose}") for name in found if _is_word(name))


def _is_word(name: str) -> bool:
    """Whether a name of a file can stand on a line as it is; a project may call its files anything."""
    return name.isprintable() and not set(name) & set(" '\"\\")


def _schemas(variables: dict[str, Any]) -> Iterator[Offer]:
    from subagents_nb.errors import RequestError
    from subagents_nb.launching.gathering.output_types import output_type

    for name, value in list(variables.items()):
        if name.startswith("_") or not isinstance(value, type | dict):
            continue
        if isinstance(value, type) and value.__module__.partition(".")[0] == "pydantic":
            continue  # BaseModel and its kin, imported to derive from
        try:
            output_type(value, name=name)
        except RequestError:
            continue
        if isinstance(value, type) or value.get("type") == "object":
            yield name, "schema"


def _inputs(variables: dict[str, Any]) -> Iterator[Offer]:
    """Offer the variables that are values, not code."""
    from subagents_nb.launching import Run

    for name, value in list(variables.items()):
        if name[:1] == "_" or name in ("In", "Out") or callable(value) or isinstance(value, ModuleType | Run):
            continue
        yield name, type(value).__name__


def _runs(variables: dict[str, Any]) -> Iterator[Offer]:
    """Offer the user's variables that hold a run, then names, each once, and an id where a name is not enough."""
    from subagents_nb.launching import Run, runs

    yield from ((name, f"run: {v!r}") for name, v in list(variables.items()) if isinstance(v, Run) and name[:1] != "_")
    snapshots = runs(limit=30).snapshots
    names = [snapshot.name for snapshot in snapshots]
    for snapshot in snapshots:
        word = snapshot.name if " " not in snapshot.name else f"'{snapshot.name}'"
        unique = names.count(snapshot.name) == 1
        yield (word if unique else snapshot.run_id), f"run: {snapshot.name} {snapshot.state or 'unreadable'}"


def _states(_: dict[str, Any]) -> Iterator[Offer]:
    from subagents_nb.domain.runs.states import RunState

    yield "live", "queued and running"
    yield from ((str(state), "state") for state in RunState)


def _directories(_: dict[str, Any]) -> Iterator[Offer]:
    yield ".", "here"
    names = sorted(entry.name for entry in os.scandir() if entry.is_dir() and not entry.name.startswith("."))
    yield from ((f"'{name}/'" if " " in name else f"{name}/", "directory") for name in names)


def _entries(variables: dict[str, Any]) -> Iterator[Offer]:
    """Offer the files that are here, and the directories on the way to others."""
    names = sorted(entry.name for entry in os.scandir() if entry.is_file() and not entry.name.startswith("."))
    yield from ((f"'{name}'" if " " in name else name, "file") for name in names)
    yield from ((word, meaning) for word, meaning in _directories(variables) if word != ".")


_VALUES: dict[str, Callable[[dict[str, Any]], Iterator[Offer]]] = {
    "--model": _models,
    "--schema": _schemas,
    "--inputs": _inputs,
    "--thinking": lambda _: ((level, "thinking level") for level in BY_NAME["thinking"].choices),
    "--fork": _runs,
    "--tools": _tools,
    "--deny": _tools,
    "--agents": _agents,
    "--skills": _skills,
    "--cwd": _directories,
    "--acceptance": lambda _: iter(_ACCEPTANCE),
    "--output-mode": lambda _: iter(_OUTPUT_MODES),
    "--reads": _entries,
    "--output": _entries,
    "--state": _states,
    "--scope": lambda _: iter((("user", "for all projects of yours"), ("project", "for this one"))),
}


def make_matcher(shell: Any, verbs: Sequence[Verb] = VERBS) -> Any:
    """Return a matcher for the shell's completer that answers on our lines and keeps other matchers quiet there."""
    from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

    @context_matcher()  # type: ignore[untyped-decorator]
    def subagents_matcher(context: CompletionContext) -> SimpleMatcherResult:
        lines = context.full_text.splitlines() or [""]
        line = lines[context.cursor_line] if context.cursor_line < len(lines) else ""
        matcher = None
        if context.cursor_line == 0 or not lines[0].lstrip().startswith("%%"):
            try:
                matcher = candidates(line[: context.cursor_position], shell.user_ns, verbs)
            except Exception:  # noqa: BLE001 - a fault while completing must never disturb typing
                matcher = None
        elif _CHAIN_CELL.match(lines[0]):
            try:
                written = [*lines[1 : context.cursor_line], line[: context.cursor_position]]
                matcher = in_body(written, shell.user_ns)
            except Exception:  # noqa: BLE001 - likewise
                matcher = None
        if matcher is None:
            return {"completions": [], "suppress": False}
        token, words = matcher
        return {
            "completions": [SimpleCompletion(text=word, type=one_line(means, _MEANING_CHARS)) for word, means in words],
            "ordered": True,  # agents before flags, not by the alphabet
            "suppress": True,
            "matched_fragment": token,
        }

    return subagents_matcher
