"""One rule of a policy: a tool, and for some tools what of it. Written as Claude Code writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from subagents_nb.domain.policy.tool_names import DELEGATE, KNOWN_TOOLS, SKILL, covers, tool_in_rule
from subagents_nb.domain.values.characters import loose
from subagents_nb.domain.values.faults import meant, shown

if TYPE_CHECKING:
    from subagents_nb.domain.policy.shell_words import Command

# What a rule on files may say, and the tools that it is about; a list or a search reads, and an edit writes.
READS, WRITES = ("read", "list", "find", "grep"), ("write", "edit")
PATH_TOOLS = (*READS, *WRITES)
_ABOUT = {"read": READS, "write": WRITES, "edit": WRITES}
_NAMED = (SKILL, DELEGATE)
_SHELL_SIGNS = r"[*?\[\]{}$`\"'\\();|&<>~#!\n]"
_LONGEST = 400
_MOST_MIXED = 2  # each is tried at every place of a path
_WILD = re.compile(r"(\*\*/|\*\*|\*|\?)")
_ONE = {"**": ".*", "?": "[^/]"}


class BadRule(ValueError):
    """A rule that can't be read; the text goes on from the rule as it was written."""


class Rule(NamedTuple):
    """A rule, read. `words` and `path` are what it says of the call; neither: the whole tool."""

    text: str
    tool: str
    words: tuple[str, ...] = ()  # of a shell command
    more: bool = False  # any words may follow
    path: str = ""
    name: str = ""  # of an agent or a skill

    @property
    def whole(self) -> bool:
        """Whether it is about every call of its tool."""
        return not (self.words or self.path or self.name)

    def is_about(self, tool: str) -> bool:
        """Say whether it has something to say of calls of this tool."""
        if self.path:
            return tool in _ABOUT.get(self.tool, (self.tool,))
        return covers(self.tool, tool)

    # --- shell commands ---

    def grants(self, command: Command) -> bool:
        """Say whether it allows a command: word by word, and no option by which the program runs or writes others."""
        count = len(self.words)
        if command.words[:count] != self.words or any(at < count for at in command.expands):
            return False
        if not self.more:
            return len(command.words) == count
        from subagents_nb.domain.policy.shell_words import exceeds_rule  # every plan reads this module, few need that

        return not exceeds_rule(command, count)

    def catches(self, command: Command) -> bool:
        """Say whether it denies a command, or has it asked about: by whatever path its program is called."""
        words = tuple(word.casefold() for word in command.words)
        own = tuple(word.casefold() for word in self.words)
        if not words or words[0].rpartition("/")[2] != own[0].rpartition("/")[2]:
            return False
        return words[1 : len(own)] == own[1:] and (self.more or len(words) == len(own))

    # --- paths ---

    def allows_path(self, path: str, *, below: bool) -> bool:
        """Say whether it allows a path; `below`: and whatever may lie in it."""
        if not _glob(self.path).match(path):
            return False
        # Only a wildcard matches a name that can't be one.
        return not below or all(_glob(self.path).match(f"{_base(path)}{inner}") for inner in ("\0", "\0/\0"))

    def catches_path(self, path: str) -> bool:
        """Say whether it denies a path, or has it asked about: in any case of letters, and all below it too."""
        return _loose_glob(self.path).match(loose(path)) is not None


def parse_rule(text: str) -> Rule:
    """Read one rule.

    Raises:
        BadRule: it can't be read, so it would guard nothing.
    """
    rule = _parsed(text)
    if isinstance(rule, str):
        raise BadRule(rule)
    return rule


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Rule | str:
    written = text.strip()
    if not written or len(written) > _LONGEST or not written.isprintable():
        return f"is no rule: it has 1 to {_LONGEST} characters that can be shown"
    name, bracket, rest = written.partition("(")
    if not bracket and ")" in name:
        return "has no opening bracket"
    if bracket and not rest.endswith(")"):
        return "has no closing bracket" if ")" not in rest else "goes on behind its closing bracket"
    tool = tool_in_rule(name)
    if tool is None:
        return f"names no tool with {shown(name.strip())} ({meant(name, KNOWN_TOOLS).removeprefix('; ')})"
    pattern = rest[:-1].strip()
    if bracket and not pattern:
        return "has nothing in its brackets"
    if not bracket or pattern in ("*", "**", ":*"):
        return Rule(written, tool)
    if tool == "bash":
        return _of_shell(written, pattern)
    if tool in PATH_TOOLS:
        return _of_path(written, tool, pattern)
    if tool in _NAMED:
        if bad := re.search(r"[*?\[\]{}!,]", pattern):  # no agent or skill is called so: it would guard nothing
            return f"has {bad.group()!r} in a name; a rule on {tool} names one, or has no brackets for all"
        return Rule(written, tool, name=pattern)
    return f"says more than a tool, and {name.strip()} is judged whole"


def _of_shell(written: str, pattern: str) -> Rule | str:
    bare = re.sub(r"(:|\s+)\*\Z", "", pattern)
    words = tuple(bare.split())
    if not words:
        return "names no command"
    if bad := re.search(_SHELL_SIGNS, bare):
        return f"has {bad.group()!r} in a word; a rule on bash is plain words, and :* at its end for whatever follows"
    return Rule(written, "bash", words=words, more=bare != pattern)


def _of_path(written: str, tool: str, pattern: str) -> Rule | str:
    if bad := re.search(r"[\[\]{}\\!]", pattern):
        return f"has {bad.group()!r} in a path; a rule on files has *, ** and ? alone"
    path = f"/{pattern[2:]}" if pattern.startswith("//") else pattern
    at_top = path.startswith("./")
    path = path.removeprefix("./")
    if path.endswith("/"):
        path += "**"
    parts = path.removeprefix("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "has an empty, . or .. part in its path"
    if sum(part.count("**") for part in parts if part != "**") > _MOST_MIXED:
        return f"has ** beside other signs of a name more than {_MOST_MIXED} times"
    return Rule(written, tool, path=f"./{path}" if at_top else path)


def _base(path: str) -> str:
    return "" if path == "." else f"{path.rstrip('/')}/"


@lru_cache(maxsize=4096)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{_expression(pattern.removeprefix('./'))})\Z", re.DOTALL)


@lru_cache(maxsize=4096)
def _loose_glob(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{_all_below(pattern)}\Z", re.DOTALL)


def _expression(pattern: str) -> str:
    """Return a glob as an expression: `*` stays within a name, `**` crosses slashes, `a/**` is a and all in it."""
    if pattern in ("**", "**/*"):
        return ".*"
    if pattern.endswith("/**"):
        return rf"{_expression(pattern[:-3])}(?:/.*)?"
    stretches: list[list[str]] = [[]]  # between two `**/`
    for piece in filter(None, _WILD.split(pattern)):
        stretches.append([]) if piece == "**/" else stretches[-1].append(piece)
    first, *deep = map(_stretch, stretches)
    # Whole names are taken at the first place where they fit: what follows finds there whatever it finds further on.
    # It is not gone back on, else a path that fits nowhere costs as many tries as there are ways to go wrong.
    whole = [bool(one) and one[-1].endswith("/") and "**" not in one for one in stretches[1:-1]]
    for names, is_whole in zip(deep, [*whole, False], strict=False):
        first += f"(?>(?:.*?/)??{names})" if is_whole else f"(?:.*/)?{names}"
    return first


def _stretch(pieces: Iterable[str]) -> str:
    """Return the expression of names. Within one name all stars but the last are taken at their first fit, too."""
    done, star = "", None
    for piece in pieces:
        if piece == "*":
            done += "" if star is None else f"(?>[^/]*?{star})"
            star = ""
        elif star is None or piece == "**" or "/" in piece:
            done += ("" if star is None else f"[^/]*{star}") + _ONE.get(piece, re.escape(piece))
            star = None
        else:
            star += _ONE.get(piece, re.escape(piece))
    return done if star is None else f"{done}[^/]*{star}"


def hiding(rules: Iterable[str], root: str, home: str) -> str:
    """Return an expression for all whole paths, as `loose` writes them, that rules on files are about; empty: none is.

    `root` is the workspace. What it matches is what `Rule.catches_path` does.
    """
    return "|".join(_anywhere(parse_rule(rule).path, root, home) for rule in rules)


def _anywhere(path: str, root: str, home: str) -> str:
    if path.startswith("/"):
        return _all_below(path)
    if path.startswith("~/"):
        return f"{_literal(home)}/{_all_below(path[2:])}"
    return f"{_literal(root)}/{_all_below(path)}"


def _literal(folder: str) -> str:
    return re.escape(loose(folder.rstrip("/")))


def _all_below(pattern: str) -> str:
    own = loose(pattern.removeprefix("./"))
    # As in a .gitignore: a name without a slash means it at any depth, and a folder all that lies in it.
    anywhere = "(?:.*/)?" if "/" not in pattern else ""
    return rf"{anywhere}(?:{_expression(own)})(?:/.*)?"


def rule_faults(where: str, *, deny: Iterable[str], ask: Iterable[str], allow: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the rules of one source: a rule that guards nothing keeps a launch from beginning."""
    read: dict[str, list[Rule]] = {}
    for kind, rules in (("deny", deny), ("ask", ask), ("allow", allow)):
        for text in rules:
            try:
                read.setdefault(kind, []).append(parse_rule(text))
            except BadRule as error:
                yield f"rule {text!r} in {where} {error}; it would guard nothing, so nothing is started"
    if any(rule.whole and rule.is_about("bash") for rule in read.get("allow", ())):
        for rule in (*read.get("deny", ()), *read.get("ask", ())):
            if rule.words:
                yield (
                    f"rule {rule.text!r} in {where} would guard nothing where bash is allowed whole: a shell has other "
                    "words for a command; allow the commands that may run instead"
                )
