"""What people write, read by pydantic. Only here its errors become reasons: what is wrong, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError, model_validator

from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.faults import meant, nearest, shown, snake
from subagents_nb.domain.values.reasons import Path, Reason
from subagents_nb.plain_text import one_line

_LINE = 80  # words of which one is to be taken are not told beside the one that is meant, if they fill a line

M = TypeVar("M", bound=BaseModel)

_EXPECTED = {
    "string_type": "text",
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "iterable_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), "a mapping"),
    "too_short": "a list of {min_length} or more",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than_equal": "at most {le:g}",
}


class Unfit(ValueError):
    """A value doesn't fit; the text is the end of a sentence that begins with what it is the value of."""


def must_be(what: str, value: object) -> Unfit:
    """Return what refuses a value."""
    return Unfit(f"must be {what}, not {shown(value)}")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one value, and the keys and numbers that lead to it, as they were written.

    The text goes on from the name of the value, but where it is a `sentence` by itself.
    """

    path: Path
    text: str
    sentence: bool = False

    @property
    def key(self) -> str:
        """Return the outermost key."""
        return str(self.path[0]) if self.path else ""

    @property
    def where(self) -> str:
        """Return the way in one word: `verify[0].command`."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{one_line(part, 60)}" for part in self.path)
        return "".join(parts).removeprefix(".")

    def about(self, subject: str) -> Reason:
        """Say it of a subject."""
        lead = f"{subject}: " if self.sentence else f"{subject or 'it'} "
        return Reason(self.text if self.sentence and not subject else lead + self.text, path=self.path)

    def at(self, root: str = "") -> Reason:
        """Say it with the way to the value from `root`: `acceptance.verify[0].command`."""
        text = self.about(f"{root}.{self.where}".strip(".").replace(".[", "["))
        return Reason(text, path=(root, *self.path)) if root else text


class Written(Value):
    """A mapping that people write: its keys in any spelling; what is null says nothing."""

    _ALSO: ClassVar[Mapping[str, str]] = {}  # other words for a key

    @classmethod
    def named(cls, key: str) -> str:
        """Return our name of a key, however it is spelt."""
        name = snake(key)
        return cls._ALSO.get(name, name)

    @model_validator(mode="before")
    @classmethod
    def _by_our_names(cls, given: Any) -> Any:
        if isinstance(given, Value):
            given = dict(given)
        if not isinstance(given, Mapping):
            return given
        renamed: dict[str, Any] = {}
        written: dict[str, str] = {}
        for key, value in ((str(key), value) for key, value in given.items()):
            name = cls.named(key)
            if name not in cls.model_fields:
                renamed[key] = value  # told as unknown
                continue
            if name in written:
                raise ValueError(f"{written[name]} and {key} mean the same: keep one")
            written[name] = key
            if value is not None:
                renamed[name] = value
        return renamed


def mapping(what: str) -> BeforeValidator:
    """Refuse what is no mapping, and say which one is wanted."""

    def checked(given: Any) -> Any:
        if not isinstance(given, Mapping | BaseModel):
            raise must_be(what, given)
        return given

    return BeforeValidator(checked)


def one_or_many(most: int = 1000, told: str = "entries, more than can be taken") -> BeforeValidator:
    """Take one for a list of one, and no more than `most`."""

    def listed(given: Any) -> list[Any]:
        entries = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
        if len(entries) > most:
            raise Unfit(f"has {len(entries)} {told}")
        return entries

    return BeforeValidator(listed)


def matching(pattern: str, what: str) -> AfterValidator:
    """Refuse text that does not look like this as a whole."""

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise must_be(what, text)
        return text

    return AfterValidator(checked)


def all_differ(what: str, ids: Iterable[str]) -> None:
    """Refuse ids of which two are the same."""
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            raise ValueError(f"the {what} {one!r} is there more than once")
        seen.add(one)


def either(words: Iterable[str]) -> str:
    """Return words of which one is to be taken: `a, b or c`."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def read(kind: type[M], given: Any, *, known: Sequence[str] = ()) -> tuple[M | None, tuple[Fault, ...]]:
    """Return what was written as a value, or None and all that is wrong with it.

    `known` are the outermost keys as they are to be told, where they are not those of the model.
    """
    try:
        return kind.model_validate(given), ()
    except ValidationError as error:
        return None, tuple(_faults(error, kind, given, known))


def read_rest(
    kind: type[M], given: Any, *, known: Sequence[str] = (), otherwise: Mapping[str, Any] | None = None
) -> tuple[M | None, tuple[Fault, ...]]:
    """Return the same, but a value all the same where one can be made without the outermost keys at fault.

    So what else speaks against it can be told at once. `otherwise` has what it can't be without.
    """
    model, faults = read(kind, given, known=known)
    if model is None and isinstance(given, Mapping):
        wrong = {fault.key for fault in faults}
        rest = {key: value for key, value in given.items() if str(key).rstrip("_") not in wrong}
        model, _ = read(kind, {**(otherwise or {}), **rest})
    return model, faults


def _faults(error: ValidationError, kind: type[BaseModel], given: Any, known: Sequence[str]) -> Iterator[Fault]:
    """Yield what pydantic found, one fault a value: what several kinds of it ask for is said as alternatives."""
    by_path: dict[Path, list[Any]] = {}
    for fault in error.errors(include_url=False):
        path, kinds = _way(kind, given, fault)
        by_path.setdefault(path, []).append((fault, kinds))
    for path, errors in by_path.items():
        first, kinds = errors[0]
        wanted = dict.fromkeys(want for fault, _ in errors for want in _wanted(fault))
        if wanted and any(other != path and other[: len(path)] == path for other in by_path):
            continue  # one kind of value looked further into it, and says more
        if wanted:
            yield Fault(path, _refusal(first, tuple(wanted)))
        elif first["type"] == "missing":
            yield Fault(path, "is missing")
        elif first["type"] == "extra_forbidden":
            keys = known if known and len(path) == 1 else _keys(kinds)
            yield Fault(path, f"is unknown{meant(snake(str(path[-1])), keys, 'the keys are')}")
        else:
            why = first.get("ctx", {}).get("error")
            yield Fault(path, str(why or first["msg"]), sentence=not isinstance(why, Unfit))


def _way(kind: type[BaseModel], given: Any, fault: Any) -> tuple[Path, list[type[BaseModel]]]:
    """Return the way to a value as it was written, and the models whose key the last part of it is.

    What pydantic adds to it, as the name of one of several kinds of value, nobody wrote, so it is left out.
    """
    path: list[str | int] = []
    kinds: list[type[BaseModel]] = [kind]
    owners = kinds
    for part in fault["loc"]:
        key = next((key for key in given if _same(key, part, kinds)), None) if isinstance(given, Mapping) else None
        if key is not None:
            path.append(str(key).rstrip("_"))
            given = given[key]
        elif isinstance(given, list | tuple) and isinstance(part, int) and part < len(given):
            path.append(part)
            given = given[part]
        elif fault["type"] == "missing" and part == fault["loc"][-1]:
            path.append(part.rstrip("_"))
        owners = kinds
        inner = [field.annotation for one in kinds for name, field in one.model_fields.items() if _is(name, part)]
        kinds = [one for annotation in inner for one in _models(annotation)] if inner else kinds
    return tuple(path), owners


def _same(key: Any, part: Any, kinds: Sequence[type[BaseModel]]) -> bool:
    return _is(key, part) or any(issubclass(kind, Written) and kind.named(str(key)) == part for kind in kinds)


def _is(name: Any, part: Any) -> bool:
    """Whether a name is that of a part; `as` and `from` are words of Python."""
    return str(name).rstrip("_") == str(part).rstrip("_")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _keys(kinds: Sequence[type[BaseModel]]) -> list[str]:
    return [name.rstrip("_") for one in kinds for name, field in one.model_fields.items() if not field.exclude]


def _wanted(fault: Any) -> list[str]:
    if fault["type"] == "literal_error":  # pydantic has the words in quotes, and True and False without
        return [word.lower() for word in re.findall("(?<=')[^', ][^']*(?=')|True|False", fault["ctx"]["expected"])]
    wanted = _EXPECTED.get(fault["type"])
    return [wanted.format(**fault.get("ctx", {}))] if wanted is not None else []


def _refusal(fault: Any, wanted: Sequence[str]) -> str:
    value = fault["input"]
    text = f"must be {either(wanted)}, not {shown(value)}"
    if fault["type"] == "string_type":
        if isinstance(value, Mapping):
            return f"{text}; YAML takes braces for a mapping: put it in quotes"
        return f"{text} (put it in quotes)" if isinstance(value, bool | int | float) else text
    if len(text) > _LINE and isinstance(value, str) and (near := nearest(value, wanted)):
        return f"can't be {shown(value)}; did you mean {near}?"
    return text
