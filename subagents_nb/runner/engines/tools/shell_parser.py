"""Take a shell line apart into simple commands, by a parser of the shell's grammar; whatever else is in it is unproved.

The kinds of nodes that pass are listed here, and nothing else passes: what the parser does not know, what it had to
guess, and what it may read otherwise than the shell does, such as a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from subagents_nb.domain.policy.shell_words import Command, ShellLine

_LONGEST = 10_000
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
# In words without quotes: ASCII that means itself, and the wildcards.
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:=@%+,^~*?\[\]{}#-]+")
_WILDCARDS = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{[^}]*(?:,|\.\.)")
_QUOTED = re.compile(r"[^\\$`]*")
_SAFE_REDIRECT = re.compile(r"(?:\d?|&)>>?\s*/dev/null|\d?<\s*/dev/null|\d?>&\d")
_RESERVED = frozenset(
    (
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
        "function", "time", "coproc", "{", "}", "!", "[[", "]]",
    )
)  # fmt: skip
_AROUND = frozenset(["program", "list", "pipeline", "redirected_statement"])
_SIGNS = frozenset([";", "\n", "&&", "||", "|", "|&"])
_CALLED = {
    "command_substitution": "a command in a command",
    "process_substitution": "a command in a command",
    "simple_expansion": "a variable",
    "expansion": "a variable",
    "variable_assignment": "a variable",
    "arithmetic_expansion": "arithmetic",
    "subshell": "a subshell",
    "compound_statement": "a group of commands",
    "heredoc_redirect": "a here-document",
    "herestring_redirect": "a here-string",
    "file_redirect": "a redirection",
    "function_definition": "a function",
    "negated_command": "a negation",
    "test_command": "a test",
    "ansi_c_string": "a quoted escape",
    "declaration_command": "a declaration",
    "&": "a command in the background",
}


class _Unproved(Exception):
    """Something in the line is no simple command of plain words."""


def parse_line(text: str) -> ShellLine:
    """Return the simple commands of a line, or what in it is none. Without the parser nothing is proved."""
    if len(text) > _LONGEST or _UNSEEN.search(text):
        return ShellLine(text, unproved="a line with unseen characters, or too long a line,")
    try:
        parser = _parser()
    except ImportError:
        return ShellLine(text, unproved="without the package tree-sitter-bash, which is not installed, a line")
    data = text.encode("utf-8", "surrogatepass")
    root = parser.parse(data).root_node
    try:
        if root.has_error:
            raise _Unproved("what the parser does not understand")
        commands = tuple(_Reader(data).commands(root))
    except (_Unproved, RecursionError) as error:
        return ShellLine(text, unproved=str(error) or "a line as deep as this")
    return ShellLine(text, commands)


@cache
def _parser() -> Any:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def commands(self, node: Any) -> Iterator[Command]:
        """Yield the commands in a node that may hold some."""
        if node.type == "command":
            yield self._command(node)
            return
        if node.type not in _AROUND:
            raise _refused(node)
        at = node.start_byte
        for child in node.children:
            self._nothing_between(at, child.start_byte)
            at = child.end_byte
            if child.is_missing:
                raise _Unproved("what the parser had to guess")
            if child.type in _SIGNS:
                continue
            if child.type == "comment" and b"\\" not in self._bytes(child):
                continue
            if child.type == "file_redirect" and _SAFE_REDIRECT.fullmatch(self._text(child)):
                continue
            yield from self.commands(child)
        self._nothing_between(at, node.end_byte)

    def _command(self, node: Any) -> Command:
        words: list[str] = []
        expands: set[int] = set()
        at = node.start_byte
        for child in node.children:
            self._nothing_between(at, child.start_byte)
            at = child.end_byte
            inner = child.children[0] if child.type == "command_name" and len(child.children) == 1 else child
            word, wild = self._word(inner)
            if wild:
                expands.add(len(words))
            words.append(word)
        if not words or 0 in expands or words[0] in _RESERVED or not words[0] or words[0].startswith("~"):
            raise _Unproved("a command whose name is not plain")
        return Command(tuple(words), frozenset(expands))

    def _word(self, node: Any) -> tuple[str, bool]:
        """Return a word without its quotes, and whether the shell would expand it."""
        match node.type:
            case "word" | "number" if not node.children:
                text = self._text(node)
                if not _PLAIN_WORD.fullmatch(text):
                    raise _Unproved("a word with signs in it")
                return text, _WILDCARDS.search(text) is not None
            case "raw_string":
                return self._text(node)[1:-1], False
            case "string":
                return self._string(node), False
            case "concatenation":
                return self._joined(node)
        raise _refused(node)

    def _joined(self, node: Any) -> tuple[str, bool]:
        at, text, wild = node.start_byte, "", False
        for child in node.children:
            if child.start_byte != at:
                raise _Unproved("a word with signs in it")
            at = child.end_byte
            part, more = self._word(child)
            text, wild = text + part, wild or more
        if at != node.end_byte or _BRACES.search(self._text(node)):
            raise _Unproved("a word in braces")
        return text, wild

    def _string(self, node: Any) -> str:
        text = self._text(node)
        kinds = [child.type for child in node.children if child.type != '"']
        other = next((child for child in node.children if child.type not in ('"', "string_content")), None)
        if other is not None:
            raise _refused(other)
        if len(text) < 2 or text[0] != '"' or text[-1] != '"' or not _QUOTED.fullmatch(text) or len(kinds) > 1:
            raise _Unproved("a string with signs in it")
        return text[1:-1]

    def _nothing_between(self, start: int, end: int) -> None:
        if self._data[start:end].strip(b" \t\n"):
            raise _Unproved("what the parser passed over")

    def _bytes(self, node: Any) -> bytes:
        return self._data[node.start_byte : node.end_byte]

    def _text(self, node: Any) -> str:
        return self._bytes(node).decode("utf-8", "surrogatepass")


def _refused(node: Any) -> _Unproved:
    return _Unproved(_CALLED.get(node.type, "what is no simple command"))
