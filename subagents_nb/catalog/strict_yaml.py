"""YAML frontmatter as plain data, and nothing more.

YAML can name Python objects, share nodes (a small file that unfolds into gigabytes), repeat a key and hide dates. Agent
files come from strangers, so all of that is refused, and every mapping key is the text as it is written.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import TypeAlias

import yaml
from frontmatter.default_handlers import SafeLoader, YAMLHandler

from subagents_nb.domain.values.base import stable_json

MAX_DEPTH = 32

# Where a value stands: the keys and numbers that lead to it, and the line of its key or of its beginning.
Lines: TypeAlias = "dict[tuple[str | int, ...], int]"

_TAG = "tag:yaml.org,2002:"
_STR = f"{_TAG}str"
_TIMESTAMP = f"{_TAG}timestamp"
_PLAIN = frozenset(_TAG + kind for kind in ("str", "int", "float", "bool", "null", "seq", "map"))
# What an unquoted `<<` or `=` resolves to; as a key both are only text here.
_PLAIN_KEYS = _PLAIN | {f"{_TAG}merge", f"{_TAG}value"}

# A one-line value without quotes, block sign or flow bracket.
_LOOSE_DESCRIPTION = re.compile(r"^(description[ \t]*:[ \t]+)([^\s\"'|>\[{&*!#].*)$", re.MULTILINE)


class YamlRefused(ValueError):
    """The text is not the plain YAML that an agent file may hold: `problem` says why, `line` where, if that is known.

    `syntax` says that it is no YAML at all.
    """

    def __init__(self, problem: str, line: int | None = None, *, syntax: bool = False) -> None:
        super().__init__(problem if line is None else f"{problem} (line {line})")
        self.problem, self.line, self.syntax = problem, line, syntax


class _Loader(SafeLoader):  # type: ignore[misc, valid-type]  # one of two classes, chosen by frontmatter
    """The safe loader, with dates left as text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (the base class declares it so)
        first: [resolver for resolver in resolvers if resolver[0] != _TIMESTAMP]
        for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
    }


class StrictYaml(YAMLHandler):
    """Split and load the frontmatter of one file whose newlines are already `\\n`."""

    def sections(self, text: str) -> tuple[str, str, int] | None:
        """Return frontmatter, body and the number of lines above the frontmatter; None when the file has none.

        Raises:
            YamlRefused: it is opened and never closed.
        """
        if not self.detect(text):
            return None
        try:
            head, body = self.split(text)
        except ValueError:
            raise YamlRefused("the frontmatter is opened with --- but never closed") from None
        return head, body.strip(), text.count("\n", 0, text.index(head))

    def load_plain(self, head: str, *, lines_above: int = 0) -> dict[str, object]:
        """Load a mapping of JSON-like values.

        An unquoted one-line description with a colon in it is no YAML, yet common in Claude Code's files: if the text
        does not parse, it is tried once more with the description in quotes.

        Raises:
            YamlRefused: anything else that isn't a mapping of plain data.
        """
        try:
            return _load(head, lines_above)
        except YamlRefused:
            quoted = _quoted(head)
            if quoted == head:
                raise
        return _load(quoted, lines_above)


def _quoted(head: str) -> str:
    return _LOOSE_DESCRIPTION.sub(lambda match: match[1] + json.dumps(match[2].rstrip(" \t")), head, count=1)


def lines_of(head: str, *, lines_above: int = 0) -> Lines:
    """Return in which line of a file each value of its frontmatter stands; nothing where it can't be read."""
    for text in (head, _quoted(head)):
        with contextlib.suppress(YamlRefused):
            return load_located(text, lines_above=lines_above)[1]
    return {}


def load_located(text: str, *, lines_above: int = 0) -> tuple[object, Lines]:
    """Load a list or mapping of JSON-like values, and say in which line each value stands; None for no text.

    Raises:
        YamlRefused: anything else.
    """
    return _read(text, lines_above, (yaml.MappingNode, yaml.SequenceNode), "this is neither a list nor a mapping")


def load_texts(text: str) -> dict[str, object]:
    """Load a mapping in which every value is text as it is written, or a mapping or list of them, in block style.

    Raises:
        YamlRefused: anything else.
    """
    loader = _Loader(text)
    try:
        for event in yaml.parse(text, Loader=SafeLoader):
            line = event.start_mark.line + 1 if event.start_mark else None
            if getattr(event, "anchor", None) or getattr(event, "tag", None):
                raise YamlRefused("YAML anchors, aliases and tags are not accepted", line)
            if getattr(event, "flow_style", None):
                raise YamlRefused("lists and mappings stand on lines of their own, not in brackets", line)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise YamlRefused("the frontmatter is not a list of `key: value` lines")
        _check(root, 0)
        texts = _texts(root)
        stable_json(texts).encode()
    except UnicodeEncodeError:
        raise YamlRefused("bad YAML: half of a surrogate pair is not text", syntax=True) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise YamlRefused(f"bad YAML: {problem}", _line(mark, 0), syntax=True) from None
    finally:
        loader.dispose()
    return texts if isinstance(texts, dict) else {}


def _texts(node: yaml.Node) -> object:
    """Return a node that was checked, and so is neither deep nor shared."""
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.MappingNode):
        return {key.value: _texts(value) for key, value in node.value}
    return [_texts(item) for item in node.value]


def as_value(given: str) -> object:
    """Return a value of a line: a word, a number, a list or a mapping, as YAML has them.

    Raises:
        YamlRefused: it can't be read.
    """
    try:
        items, _ = load_located(f"- {given}", lines_above=0)
    except YamlRefused as error:
        raise YamlRefused(error.problem) from error
    return items[0] if isinstance(items, list) and len(items) == 1 else given


def _load(head: str, lines_above: int) -> dict[str, object]:
    data, _ = _read(head, lines_above, (yaml.MappingNode,), "the frontmatter is not a list of `key: value` lines")
    return data if isinstance(data, dict) else {}


def _read(text: str, lines_above: int, kinds: tuple[type[yaml.Node], ...], otherwise: str) -> tuple[object, Lines]:
    lines: Lines = {}
    data: object = None
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None, lines
        if not isinstance(root, kinds):
            raise YamlRefused(otherwise)
        _check(root, lines_above)
        _locate(root, (), lines, lines_above + 1)
        data = loader.construct_document(root)
        stable_json(data).encode()
    except yaml.MarkedYAMLError as error:
        problem = error.problem or error.context or "not readable"
        line = _line(error.problem_mark, lines_above)
        raise YamlRefused(f"bad YAML: {problem}", line, syntax=True) from None
    except yaml.YAMLError as error:
        raise YamlRefused(f"bad YAML: {str(error).splitlines()[0]}", syntax=True) from None
    except UnicodeEncodeError:
        raise YamlRefused("bad YAML: half of a surrogate pair is not text", syntax=True) from None
    except YamlRefused:
        raise
    except RecursionError:  # only without libyaml, which has a limit of its own
        raise YamlRefused(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # not a finite number, or one with thousands of digits
        raise YamlRefused(f"bad YAML: {error}", syntax=True) from None
    finally:
        loader.dispose()
    return data, lines


def _locate(node: yaml.Node, path: tuple[str | int, ...], lines: Lines, first: int) -> None:
    """Note the line of every value below a node that was checked, and so is neither deep nor shared."""
    lines.setdefault(path, node.start_mark.line + first)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            lines[(*path, key.value)] = key.start_mark.line + first
            _locate(value, (*path, key.value), lines, first)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _locate(value, (*path, number), lines, first)


def _check(root: yaml.Node, lines_above: int) -> None:
    """Refuse whatever isn't plain; turn every key into text."""
    seen: set[int] = set()
    waiting: list[tuple[yaml.Node, int]] = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        line = _line(node.start_mark, lines_above)
        if id(node) in seen:
            raise YamlRefused("YAML anchors and aliases are not accepted", line)
        seen.add(id(node))
        if depth > MAX_DEPTH:
            raise YamlRefused(f"nested deeper than {MAX_DEPTH} levels", line)
        if node.tag not in _PLAIN:
            raise YamlRefused(f"the YAML tag {node.tag!r} is not accepted", line)
        if isinstance(node, yaml.MappingNode):
            _check_keys(node, seen, lines_above)
            waiting.extend((value, depth + 1) for _, value in reversed(node.value))
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend((item, depth + 1) for item in reversed(node.value))


def _check_keys(node: yaml.MappingNode, seen: set[int], lines_above: int) -> None:
    names: set[str] = set()
    for key, _ in node.value:
        line = _line(key.start_mark, lines_above)
        if not isinstance(key, yaml.ScalarNode) or key.tag not in _PLAIN_KEYS:
            raise YamlRefused("a key must be plain text", line)
        if id(key) in seen:
            raise YamlRefused("YAML anchors and aliases are not accepted", line)
        if key.value in names:
            raise YamlRefused(f"the key {key.value!r} is given twice", line)
        seen.add(id(key))
        names.add(key.value)
        key.tag = _STR


def _line(mark: yaml.Mark | None, lines_above: int) -> int | None:
    return None if mark is None else mark.line + lines_above + 1
