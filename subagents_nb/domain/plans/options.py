"""The options of a launch, one row each. Flags, keys of cells and agent files, settings and sweeps are made from them.

A new one takes a row here, a field of `StepOptions` (or of `LaunchRequest`, if it is the run's), and a parameter of
`launch`; where an agent's file or settings may say it, a field of theirs that holds it. Nothing is imported for the
table: loading the magics reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

# How its text is read. A remark is for people: no model is told. Of a level, YAML reads off as false. A file: false
# means none. A value: a word, a number or a mapping, as YAML has them.
Kind = Literal[
    "text", "remark", "level", "duration", "count", "number", "value", "words", "flag", "file", "contract"
]  # fmt: skip
_AS_FLAG = ("flag", "contract")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: what it is called, how it is read, who may say it.

    `scope` says who: the launch, for the `run`; a `step` alone, be it the only one of its run; `both`, and then what
    a launch says holds for steps that leave it open; `each`, and then it is of whom it is said, run or step.
    """

    name: str
    kind: Kind
    help: str
    metavar: str | None = None
    scope: Literal["run", "step", "both", "each"] = "both"
    of_all: str = ""  # the help where it is for a whole chain
    single: bool = True  # False: a run of one step has no such thing
    file: tuple[str, ...] | None = None  # an agent's file may say it: so it is spelled there too
    setting: str = ""  # settings may say it: under this key
    variable: Literal["", "above", "below"] = ""  # so may the environment: above what files say, or below
    trait: str = ""  # the magics keep a default of it, by this name
    choices: tuple[str, ...] = ()
    line: bool = True  # False: too rare for a flag of its own; cells say it in their YAML, Python as an argument

    @property
    def stored(self) -> str:
        """Return what agents, settings and plans call it."""
        return f"{self.name}_s" if self.kind == "duration" else self.name

    @property
    def in_settings(self) -> str:
        """Return the field of the settings that holds where neither step, run nor agent says it."""
        called = self.setting or self.name
        return f"{called}_s" if self.kind == "duration" else called

    @property
    def environ(self) -> str:
        """Return what it is called in the environment."""
        return f"SUBAGENTS_NB_{self.name.upper()}"

    @property
    def behind(self) -> bool:
        """Whether an agent's file or settings may say it: a default of the magics holds where those say nothing."""
        return self.file is not None or bool(self.setting)

    @property
    def flag(self) -> str:
        """Return how it is spelled on a line."""
        return f"--{self.name.replace('_', '-')}"

    def add_to(self, add: Callable[..., Any], *, chain: bool = False) -> Any:
        """Add its flag, with the `add_argument` of a parser; return what that returns."""
        about = (self.of_all if chain else "") or self.help
        if self.kind in _AS_FLAG:
            return add(self.flag, action="store_true", default=None, help=about)
        if self.kind == "words":
            return add(self.flag, action="append", metavar=self.metavar, help=about)
        return add(self.flag, metavar=self.metavar, help=about)

    def read(self, given: Any, *, value: Callable[[str], Any] = str) -> Any:
        """Return what a line says, as the argument of `launch`; `value` reads what may be a mapping.

        Raises:
            ValueError: it can't be read.
        """
        if given is None or (given == "" and self.kind == "value"):
            return None
        match self.kind:
            case "count":
                return read_count(given)
            case "number":
                return _number(given)
            case "value":
                return value(given)
            case "contract":
                return {"version": 1} if given else None
            case "file":
                return False if given == "false" else given
        return given


OPTIONS: tuple[Option, ...] = (
    Option("name", "text", "a name to find the run by", scope="run"),
    Option("model", "text", "provider:model, provider/model:thinking, local:smollm2, scripted:NAME or ENDPOINT:model",
           file=(), setting="default_model", variable="above", trait="default_model"),
    Option("thinking", "level", "off, minimal, low, medium, high, xhigh or max", "LEVEL",
           file=(), setting="default_thinking", variable="above", trait="thinking",
           choices=("off", "minimal", "low", "medium", "high", "xhigh", "max")),
    Option("prompt_cache", "level", "on, off, 5m, 30m, 1h or 12h: how long the provider keeps the prompt's beginning",
           "HOW", file=(), setting="prompt_cache", choices=("on", "off", "5m", "30m", "1h", "12h"),
           line=False),
    Option("fast", "flag", "the provider's faster tier, which costs more", file=(), line=False),
    Option("temperature", "number", "0 to 2, for models that take one", "NUMBER", file=()),
    Option("cwd", "text", "where the agent works; it can't leave this directory", "DIR", scope="each", trait="cwd"),
    Option("timeout", "duration", "deadline of the run: seconds, or 90s, 30m, 1.5h", "TIME", scope="each",
           file=("timeout_ms",), setting="timeout", variable="above", trait="timeout"),
    Option("tool_timeout", "duration", "how long one tool call may take", "TIME",
           file=("tool_timeout_ms",), setting="tool_timeout", variable="below", trait="tool_timeout"),
    Option("worktree", "flag", "work in a git worktree of its own, not in your files", scope="step", trait="worktree"),
    Option("gate", "text", "a command that must succeed in the workspace when the work is done", "COMMAND",
           scope="step", trait="gate"),
    Option("acceptance", "value", "when it counts as done: attested, checked, off, or a mapping in YAML", "HOW",
           scope="step", file=(), trait="acceptance"),
    Option("agent_contract", "contract", "a rejection is only reported; nothing is inferred"),
    Option("gate_on", "text", "under a contract: execution goes on after a rejection, acceptance does not", "WHAT"),
    Option("checkpoint", "duration", "so long before its deadline an agent is asked for what it has", "TIME",
           scope="each", setting="checkpoint"),
    Option("max_output", "value", "how much of an answer later steps are given, as 20k; the whole is kept", "CHARS",
           setting="max_output"),
    Option("goal", "remark", "what it is for, shown with the run; no model is told", "TEXT", scope="each"),
    Option("description", "remark", "what it does, likewise", "TEXT", scope="each"),
    Option("phase", "remark", "which part of a larger whole it belongs to, likewise", "WORD", scope="each"),
    Option("lane", "remark", "which lane of work it is in, likewise", "WORD", scope="each", line=False),
    Option("workflow", "remark", "the run of a workflow elsewhere that it is part of, likewise", "ID", scope="run",
           line=False),
    Option("workflow_key", "remark", "its key there, likewise", "KEY", scope="run", line=False),
    Option("output", "file", "a file of the workspace in which the answer is kept; false for none", "FILE",
           scope="step", file=()),
    Option("output_mode", "text", "inline: the answer comes back too; file-only: a line that names the file", "MODE",
           scope="step", file=(), trait="output_mode", choices=("inline", "file-only")),
    Option("reads", "words", "a file the agent is told to read first; repeatable", "FILE",
           scope="step", file=("default_reads",)),
    Option("skills", "words", "a skill: a folder of instructions that the agent may load; repeatable, false for none",
           "NAME", of_all="a skill for every step, beside its own; repeatable", file=("skill",)),
    Option("progress", "flag", "let the agent keep a progress file",
           scope="step", file=("default_progress",), trait="progress"),
    Option("fork", "text", "a run, or RUN/step 2, of whose conversation it gets a copy to refer to", "RUN",
           scope="step"),
    Option("tools", "words", "the tools it may have at most, as read or 'bash(git log:*)'; repeatable", "TOOL",
           of_all="the tools each step may have at most, as read or 'bash(git log:*)'; repeatable"),
    Option("deny", "words", "a tool or rule that is denied, as python or 'read(secrets/**)'; repeatable", "RULE"),
    Option("agents", "words", "an agent that it may delegate to at most; repeatable", "AGENT"),
    Option("sandbox", "text", "workspace: the system keeps its processes in the workspace, without network; or none",
           "KIND", file=(), setting="sandbox", choices=("workspace", "none")),
    Option("network", "flag", "its sandbox lets processes use the network", file=(), setting="network"),
    Option("ignore", "words", "a field of the agent's file that guards it elsewhere and may be left out; repeatable",
           "FIELD", scope="step"),
    Option("max_requests", "count", "how often it may ask its model", "NUMBER",
           of_all="how often each step may ask its model",
           file=("max_turns", "max_steps"), setting="max_requests", trait="max_requests"),
    Option("max_children", "count", "how many runs it may ever start, it and all below (64)", "NUMBER",
           scope="run", of_all="how many steps and runs the chain may ever start, it and all below (64)",
           setting="max_children"),
    Option("tool_budget", "value", "how many tool calls it may make, or a mapping: '{soft: 10, hard: 20}'", "NUMBER",
           of_all="how many tool calls each step may make", file=(), setting="tool_budget", trait="tool_budget"),
    Option("usage_budget", "value", "what it may use: tokens, as 200k, or money, as '$2', or a mapping", "AMOUNT",
           scope="run", of_all="what all steps together may use: tokens, as 200k, or money, as '$2'",
           setting="usage_budget", trait="usage_budget"),
)  # fmt: skip


BY_NAME: Mapping[str, Option] = {one.name: one for one in OPTIONS}


def of_launch(*, chain: bool) -> tuple[Option, ...]:
    """Return what a launch may say: of a chain nothing that belongs to one step, of one step nothing of a chain."""
    return tuple(one for one in OPTIONS if one.line and (one.scope != "step" if chain else one.single))


def of_step() -> tuple[str, ...]:
    """Return the keys that a step of a chain may have."""
    own = ("agent", "task", "as", "label", "schema", "count", "session")
    return (*own, *(one.name for one in OPTIONS if one.scope != "run"))


def spellings() -> dict[str, Option]:
    """Return the keys of an agent's file, with what each says."""
    return {key: one for one in OPTIONS if one.file is not None for key in (one.name, *one.file)}


def setting_keys() -> dict[str, Option]:
    """Return the keys of a settings file, with what each says; a length of time may be written with its unit too."""
    by_setting = {one.setting: one for one in OPTIONS if one.setting}
    return by_setting | {f"{key}_s": one for key, one in by_setting.items() if one.kind == "duration"}


def read_count(given: str, least: int = 1) -> int:
    """Read a whole number from `least`.

    Raises:
        ValueError: it is none.
    """
    from subagents_nb.domain.values.given import parse_whole

    try:
        count = parse_whole(given)
    except ValueError:
        count = -1
    if count < least:
        raise ValueError(f"{given!r} is no number of {least} or more")
    return count


def _number(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"{given!r} is no number") from None


_SAID_OF = {"run": "the run", "step": "one step", "both": "the run or a step", "each": "the run, or a step for itself"}


def reference() -> str:
    """Return the table of all options for the documentation, in Markdown."""
    rows = []
    for one in OPTIONS:
        also = ["agent file"] if one.file is not None else []
        also += [f"settings: `{one.setting}`"] if one.setting else []
        also += [f"`{one.environ}`"] if one.variable else []
        also += [f"`%config`: `{one.trait}`"] if one.trait else []
        flag = f"`{one.flag}`" if one.line else "none"
        rows.append(f"| {flag} | `{one.name}` | {_SAID_OF[one.scope]} | {', '.join(also)} | {one.help} |")
    head = "| flag | argument and key | said of | also in | what it is |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(f"{row}\n" for row in rows)
