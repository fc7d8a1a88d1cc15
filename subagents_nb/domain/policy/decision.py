"""The decision on one tool call: allowed, asked about, or denied. Pure; it looks at plain words alone.

Within a ceiling what denies comes before what asks, and that before what allows, as in Claude Code. Of several ceilings
the strictest holds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.policy_rules import Rule, parse_rule
from subagents_nb.domain.policy.shell_words import Command, ShellLine, together
from subagents_nb.domain.policy.tool_call import ToolCall

Verdict = Literal["allow", "ask", "deny"]
_STRICT: tuple[Verdict, ...] = ("allow", "ask", "deny")
_FOREIGN = "?"
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Decision:
    """What holds for a call, and why, in words that follow what was called."""

    verdict: Verdict
    reason: str = ""
    grants: tuple[str, ...] = ()  # of what is asked about: what a yes for the whole run would allow


_ALLOWED = Decision("allow")


def decide(policy: Policy, call: ToolCall, granted: Collection[str] = ()) -> Decision:
    """Return whether a call may be made; `granted` is what the person allowed for the whole run.

    What is denied stays denied, whatever was granted.
    """
    if call.tool.startswith(_FOREIGN):
        return Decision("deny", f"{call.tool[1:]!r} is a tool of somebody else with the name of one of ours")
    worst = _ALLOWED
    asked: dict[str, None] = {}
    for ceiling in policy.ceilings:
        decision = _under(ceiling, call)
        if decision.verdict == "ask":
            left = tuple(key for key in decision.grants if key not in granted)
            decision = replace(decision, grants=left) if left else _ALLOWED
        asked.update(dict.fromkeys(decision.grants))
        if _STRICT.index(decision.verdict) > _STRICT.index(worst.verdict):
            worst = decision
    return replace(worst, grants=tuple(asked)) if worst.verdict == "ask" else worst


def _under(ceiling: Ceiling, call: ToolCall) -> Decision:
    by = f" ({ceiling.origin})" if ceiling.origin else ""
    if how := ceiling.forbids_tool(call.tool):
        return Decision("deny", f"{ceiling.origin or 'its policy'} {how}")
    deny, ask, allow = (_about(call, rules) for rules in (ceiling.deny, ceiling.ask, ceiling.allow))
    if not (deny or ask or allow):
        return _ALLOWED
    if call.tool == "bash":
        return _shell(call, deny, ask, allow, by)
    if caught := next((rule for rule in deny if _catches(rule, call)), None):
        return Decision("deny", f"rule {caught.text!r}{by} denies it")
    if caught := next((rule for rule in ask if _catches(rule, call)), None):
        return Decision("ask", f"rule {caught.text!r}{by} says to ask", (_key(call),))
    if not allow or any(_allows(rule, call) for rule in allow) or (call.path is not None and call.path.given):
        return _ALLOWED
    return Decision("ask", f"no rule{by} allows it", (_key(call),))


def _about(call: ToolCall, rules: Iterable[str]) -> list[Rule]:
    return [rule for rule in map(parse_rule, rules) if rule.is_about(call.tool)]


def _catches(rule: Rule, call: ToolCall) -> bool:
    if rule.whole:
        return True
    if rule.name:
        return rule.name.casefold() == call.name.casefold()
    if call.path is None:
        return True  # the call does not say where, so it is caught
    forms = [call.path.seen_by(rule.path), *(call.path.also if rule.path[0] not in "/~" else ())]
    return any(form is not None and rule.catches_path(form) for form in forms)


def _allows(rule: Rule, call: ToolCall) -> bool:
    if rule.whole:
        return True
    if rule.name:
        return rule.name == call.name
    form = call.path.seen_by(rule.path) if call.path is not None else None
    return form is not None and rule.allows_path(form, below=call.below)


def _key(call: ToolCall) -> str:
    """Return what a yes for the whole run allows: this file, this agent or skill, else this tool."""
    what = call.path.absolute if call.path is not None else call.name
    return f"{call.tool}({what})" if what else call.tool


# --- shell lines ---


def _shell(call: ToolCall, deny: list[Rule], ask: list[Rule], allow: list[Rule], by: str) -> Decision:
    """Decide on a line: proved to be simple commands, each of them allowed, or it is asked about.

    A rule on a command that denies it protects from nothing, since there are other words for it: what no rule allows is
    asked about all the same.
    """
    line = call.line
    commands = line.commands if line is not None else ()
    for rule in deny:
        if rule.whole or any(rule.catches(one) for one in commands):
            return Decision("deny", f"rule {rule.text!r}{by} denies it")
    for rule in ask:
        if rule.whole:
            return Decision("ask", f"rule {rule.text!r}{by} says to ask", _line_keys(line, commands))
    if any(rule.whole for rule in allow):
        return _ALLOWED
    if line is None or line.unproved or not commands:
        why = line.unproved if line is not None else ""
        return Decision("ask", f"{why or 'it'} is not proved to be what a rule{by} allows", _line_keys(line, ()))
    left = list(dict.fromkeys(_not_allowed(commands, ask, allow)))
    if left:
        first = left[0].text
        shown = first if len(first) <= _SHOWN else f"{first[:_SHOWN]}…"
        return Decision("ask", f"no rule{by} allows `{shown}`", _line_keys(line, commands, left))
    if why := together(commands):
        return Decision("ask", why, _line_keys(line, commands, ()))
    return _ALLOWED


def _line_keys(
    line: ShellLine | None, commands: tuple[Command, ...], asked: Iterable[Command] | None = None
) -> tuple[str, ...]:
    """Return what a yes for the whole run allows: these commands, or this very line where it is more than they are."""
    whole = f"bash {line.text if line is not None else ''}"
    keys = dict.fromkeys(_command_key(one) for one in (commands if asked is None else asked))
    return (*keys, whole) if not commands or together(commands) else tuple(keys)


def _command_key(command: Command) -> str:
    expands = sorted(command.expands)
    return f"bash {json.dumps([command.words, expands] if expands else command.words)}"


def _not_allowed(commands: Iterable[Command], ask: list[Rule], allow: list[Rule]) -> Iterator[Command]:
    for one in commands:
        if any(rule.catches(one) for rule in ask) or not any(rule.grants(one) for rule in allow):
            yield one
