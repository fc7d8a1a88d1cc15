"""Names of outputs in a chain, and whether everything that refers to them can be resolved when its turn comes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from subagents_nb.domain.plans.placeholders import NAME, RESERVED, near_misses, placeholders
from subagents_nb.domain.values.faults import nearest
from subagents_nb.domain.values.pointer import PointerError, parse_pointer
from subagents_nb.domain.values.reasons import NO_EARLIER_OUTPUT, Reason, Reasons

_WORD = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?:\.[A-Za-z0-9_.-]+)?\}")
UNKNOWN: dict[str, Any] = {}  # a schema that says nothing


@dataclass(slots=True)
class Names:
    """The outputs that have a name so far, with the schema of each that is structured."""

    schemas: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    # Those of a run that the chain begins with. A name of its own hides one of them, unless that was referred to.
    attached: Mapping[str, dict[str, Any] | None] = field(default_factory=dict)
    used: dict[str, None] = field(default_factory=dict)

    def find(self, name: str) -> tuple[bool, dict[str, Any] | None]:
        """Return whether there is an output of this name so far, and its schema."""
        if name not in self.schemas and name in self.attached:
            self.used[name] = None
            return True, self.attached[name]
        return name in self.schemas, self.schemas.get(name)

    @property
    def known(self) -> list[str]:
        """Return all names so far."""
        return sorted({*self.schemas, *self.attached})

    def add(self, name: str | None, reasons: Reasons, *, schema: Mapping[str, Any] | None) -> None:
        """Take a new name in, or say why it can't be one."""
        if name is None:
            return
        if not NAME.match(name):
            reasons.append(f"{name!r} can't name an output: use letters, digits and _, not a digit first")
        elif name in self.schemas or name in self.used:
            reasons.append(f"there is an output {name!r} already; names are unique in a chain")
        else:
            self.schemas[name] = None if schema is None else dict(schema)


def check_template(task: str, names: Names, *, first: bool, item: str | None, has_task: bool) -> Iterator[str]:
    """Yield what is wrong with the placeholders of a task."""
    for text in near_misses(task, item=item):
        yield f"{text} is no placeholder: there are {{task}}, {{previous}}, {{chain_dir}} and {{outputs.NAME}}"
    for token in placeholders(task, item=item):
        if token.word == "previous" and first:
            yield "{previous} stands for the step before, and there is none"
        elif token.word == "outputs" and not names.find(token.path[0])[0]:
            yield Reason(f"{token} names no earlier output{_nearest(token.path[0], names)}", code=NO_EARLIER_OUTPUT)
        elif token.word == "task" and token.word != item and not has_task and task.strip() == "{task}":
            yield "{task} stands for the task of the chain, and it has none"
    if item is not None:
        known = {"task", "previous", "chain_dir", "outputs", item}
        for match in _WORD.finditer(task):
            if match[1] not in known:
                yield f"{match[0]} is no placeholder of this fan-out: its item is {{{item}}}"


def source_problem(name: str, path: str, names: Names) -> str | None:
    """Return why a fan-out can't expand an output at a path, or None."""
    is_known, schema = names.find(name)
    if not is_known:
        return Reason(f"there is no earlier output {name!r} to expand{_nearest(name, names)}", code=NO_EARLIER_OUTPUT)
    if schema is None:
        return f"the output {name!r} is text; give its step a schema, so that there is an array to expand"
    try:
        parts = parse_pointer(path)
    except PointerError as error:
        return str(error)
    return _leads_to_array(schema, parts, path, name)


def check_key(item: str, key: str | None) -> Iterator[str]:
    """Yield what is wrong with how a fan-out names and keys its items."""
    if not NAME.match(item):
        yield f"{item!r} can't name the item: use letters, digits and _, not a digit first"
    elif item in RESERVED:
        yield f"the item can't be named {item!r}, which is a placeholder already"
    if key is not None:
        try:
            parse_pointer(key)
        except PointerError as error:
            yield f"key: {error}"


def _leads_to_array(root: dict[str, Any], parts: tuple[str, ...], path: str, name: str) -> str | None:
    """Follow a pointer through a schema as far as the schema is certain."""
    schema: Any = root
    for part in parts:
        schema = _resolved(schema, root)
        if not isinstance(schema, Mapping) or not schema.keys() & {"properties", "items", "type"}:
            return None
        properties, items = schema.get("properties"), schema.get("items")
        if isinstance(properties, Mapping) and part in properties:
            schema = properties[part]
        elif schema.get("type") == "array" and part.isdigit():
            schema = items if isinstance(items, Mapping) else UNKNOWN
        elif schema.get("type") == "object" and isinstance(properties, Mapping):
            if isinstance(schema.get("additionalProperties"), Mapping):
                schema = schema["additionalProperties"]
                continue
            names = ", ".join(sorted(properties)) or "nothing"
            return f"{path!r} leads nowhere in {name!r}: its schema has no {part!r} (it has {names})"
        else:
            return None
    schema = _resolved(schema, root)
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if isinstance(kind, str) and kind != "array":
        shown = repr(path) if path else "the whole value"
        return f"{shown} of {name!r} is of type {kind}, and only an array can be expanded"
    return None


def _resolved(schema: Any, root: dict[str, Any]) -> Any:
    for _ in range(20):
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        resolved: Any = root
        for part in reference[2:].split("/"):
            resolved = (
                resolved.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(resolved, Mapping) else None
            )
        schema = resolved
    return UNKNOWN


def _nearest(name: str, names: Names) -> str:
    near = nearest(name, names.known)
    if near:
        return f"; did you mean {near!r}?"
    return f"; there are {', '.join(names.known)}" if names.known else "; none has a name so far"
