"""The flags by which a launch says where its work is done and kept, when it counts as done, how much it may use."""

from __future__ import annotations

from typing import Any

from subagents_nb.notebook.options import MagicParser, number


def add_work_flags(parser: MagicParser) -> None:
    """Add them to the parser of a magic that launches one step."""
    add = parser.add_argument
    add("--worktree", action="store_true", default=None, help="work in a git worktree of its own, not in your files")
    add("--gate", metavar="COMMAND", help="a command that must succeed in the workspace when the work is done")
    add("--acceptance", metavar="HOW", help="when it counts as done: attested, checked, off, or a mapping in YAML")
    add_terms(parser)
    add("--output", metavar="FILE", help="a file of the workspace in which the answer is kept; false for none")
    add(
        "--output-mode", metavar="MODE", help="inline: the answer comes back too; file-only: a line that names the file"
    )
    add("--reads", action="append", metavar="FILE", help="a file the agent is told to read first; repeatable")
    add("--progress", action="store_true", default=None, help="let the agent keep a progress file")
    add("--max-requests", metavar="NUMBER", help="how often it may ask its model")
    add("--tool-budget", metavar="NUMBER", help="how many tool calls it may make, or a mapping: '{soft: 10, hard: 20}'")
    add("--usage-budget", metavar="AMOUNT", help="what it may use: tokens, as 200k, or money, as '$2', or a mapping")


def add_terms(parser: MagicParser) -> None:
    """Add the flags of a launch of one step or of many: what a rejection means, what is given on, words for people."""
    add = parser.add_argument
    add("--agent-contract", action="store_true", default=None, help="a rejection is only reported; nothing is inferred")
    add("--gate-on", metavar="WHAT", help="under a contract: execution goes on after a rejection, acceptance does not")
    add("--checkpoint", metavar="TIME", help="so long before its deadline an agent is asked for what it has")
    add("--max-output", metavar="CHARS", help="how much of an answer later steps are given, as 20k; the whole is kept")
    add("--goal", metavar="TEXT", help="what it is for, shown with the run; no model is told")
    add("--description", metavar="TEXT", help="what it does, likewise")
    add("--phase", metavar="WORD", help="which part of a larger whole it belongs to, likewise")


def terms_of(options: Any, parser: MagicParser, faults: Any) -> dict[str, Any]:
    """Return what these flags say, as arguments of `launch`; as `work_of`."""
    return {
        "agent_contract": {"version": 1} if options.agent_contract else None,
        "gate_on": options.gate_on,
        "checkpoint": options.checkpoint,
        "max_output": faults.tried(lambda: read(parser, "--max-output", options.max_output)),
        "goal": options.goal,
        "description": options.description,
        "phase": options.phase,
    }


def work_of(options: Any, defaults: Any, parser: MagicParser, faults: Any) -> dict[str, Any]:
    """Return what the flags say, as arguments of `launch`; of what no agent can say, the defaults fill the rest.

    Values that make no sense are noted in `faults`.
    """
    return {
        "worktree": options.worktree or defaults.worktree or None,
        "gate": options.gate or defaults.gate or None,
        "acceptance": faults.tried(lambda: read(parser, "--acceptance", options.acceptance)),
        "output": False if options.output == "false" else options.output,
        "output_mode": options.output_mode,
        "reads": options.reads,
        "progress": options.progress,
        **terms_of(options, parser, faults),
        **limits_of(options, parser, faults),
    }


def limits_of(options: Any, parser: MagicParser, faults: Any) -> dict[str, Any]:
    """Return the limits of a step or of all together, as arguments of `launch`; as `work_of`."""
    requests = faults.tried(lambda: number(parser, "--max-requests", options.max_requests))
    return {
        "max_requests": requests,
        "tool_budget": faults.tried(lambda: read(parser, "--tool-budget", options.tool_budget)),
        "usage_budget": faults.tried(lambda: read(parser, "--usage-budget", options.usage_budget)),
    }


# What an agent's file may say too, and what holds for it behind the run: a default never outranks an agent.
_DEFAULTS = {"model": "default_model", "thinking": "thinking", "timeout": "timeout", "tool_timeout": "tool_timeout",
             "max_requests": "max_requests", "output_mode": "output_mode", "progress": "progress"}  # fmt: skip


def defaults_of(traits: Any, parser: MagicParser, faults: Any) -> dict[str, Any]:
    """Return the defaults of the magics, as an argument of `launch`; nothing if none is set."""
    found = {name: value for name, trait in _DEFAULTS.items() if (value := getattr(traits, trait))}
    for name in ("tool_budget", "usage_budget", "acceptance"):
        value = faults.tried(lambda name=name: read(parser, f"SubagentMagics.{name}", getattr(traits, name)))
        if value is not None:
            found[name] = value
    return {"defaults": found} if found else {}


def read(parser: MagicParser, flag: str, given: str | None) -> Any:
    """Return a value of the line: a word, a number, a list or a mapping, as YAML has them; None if there is none.

    Raises:
        UsageError: it can't be read.
    """
    if not given:
        return None
    from subagents_nb.catalog.strict_yaml import YamlRefused, load_located

    try:
        items, _ = load_located(f"- {given}", lines_above=0)
        return items[0] if isinstance(items, list) and len(items) == 1 else given
    except YamlRefused as error:
        parser.error(f"{flag}: {error.problem}")
