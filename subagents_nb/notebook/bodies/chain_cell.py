"""The body of a `%%subagent_chain` cell: strict YAML that says what `chain`, `step`, `parallel` and `expand` compose.

Every fault is told with its line, those that planning finds too. Keys may be in kebab-case, snake_case or camelCase.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from subagents_nb.catalog.strict_yaml import YamlRefused, load_located
from subagents_nb.domain.plans.flow import Attached, Chain, Expand, Parallel, Step, Together
from subagents_nb.domain.plans.options import BY_NAME, of_step
from subagents_nb.domain.values.faults import shown
from subagents_nb.domain.values.reasons import NO_EARLIER_OUTPUT, OF_THE_RUN, Path, place_of
from subagents_nb.errors import LaunchRefused
from subagents_nb.launching import Run
from subagents_nb.launching.composing.flows import chain, expand, make, parallel, step
from subagents_nb.notebook.bodies.cell_fields import UNTOLD, CellReader, Fields, Refused, named

# The keys of each mapping.
STEP = of_step()
_TOGETHER = tuple(name.rstrip("_") for name in Together.model_fields)
GROUP = ("parallel", *_TOGETHER)
FAN_OUT = ("expand", "each", "parallel", "collect", *_TOGETHER)
SOURCE = ("from", "path", "item", "key", "max_items", "on_empty")
ATTACHED = ("attach", "as", "label")
RUN = ("run", "step", "as", "label")
WHOLE = ("task", "steps", "attach")

ANY_OBJECT: dict[str, Any] = {"type": "object"}  # in place of a schema whose fault was told already
_QUOTE = "put text that holds a colon, a # or braces in quotes, or behind | on lines of its own"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A chain, and where in the cell each of its items and steps stands: `2` and `2.1` as planning counts.

    With `faults`, each with its line, the chain is what could be read; `holes` are the places of items that could not.
    """

    chain: Chain
    places: Mapping[str, Path]
    line_of: Callable[[Path], int]
    faults: tuple[tuple[int, str], ...] = ()
    holes: frozenset[str] = frozenset()

    @property
    def lines(self) -> dict[str, int]:
        """Return in which line each item and step begins."""
        return {place: self.line_of(path) for place, path in self.places.items()}

    def located(self, reasons: Iterable[str]) -> list[str]:
        """Return the faults and the reasons of planning, each with the line it is about, in the order of the lines."""
        numbered = [*self.faults, *((self._line_of(reason), reason) for reason in reasons if not self._follows(reason))]
        lines = [f"line {at}: {text}" if at else text for at, text in sorted(numbered, key=lambda one: one[0])]
        return list(dict.fromkeys(lines))

    @contextlib.contextmanager
    def locating(self) -> Iterator[None]:
        """Tell what is refused inside with the lines that it is about."""
        try:
            yield
        except LaunchRefused as refused:
            raise type(refused)(self.located(refused.reasons)) from refused

    def refuse(self, against: Callable[[Chain], Iterable[str]]) -> None:
        """Refuse if there are faults, and then say too what planning has against the rest.

        Raises:
            LaunchRefused: with all of it.
        """
        if lines := self.located(against(self.chain)):
            raise LaunchRefused(lines)

    def _line_of(self, reason: str) -> int:
        place = place_of(reason)
        if not place and len(self.chain.items) == 1 and isinstance(self.chain.items[0], Step):
            place = "1"  # launched as a run of one step, whose reasons are the step's
        path = self.places.get(place, self.places.get(place.partition(".")[0]))
        return 0 if path is None else self.line_of((*path, *getattr(reason, "path", ())))

    def _follows(self, reason: str) -> bool:
        """Whether a reason only follows from what could not be read."""
        item = place_of(reason).partition(".")[0]
        return bool(self.holes) and (
            item in ("", OF_THE_RUN, *self.holes) or getattr(reason, "code", "") == NO_EARLIER_OUTPUT
        )


def parse(
    body: str,
    namespace: Mapping[str, Any],
    *,
    agent: str | None = None,
    fill: Callable[[str], str] | None = None,
    lines_above: int = 1,
    lenient: bool = False,
) -> Parsed:
    """Read a chain from YAML.

    Args:
        body: the text below the magic's line.
        namespace: the user's variables, in which schemas and runs to attach are looked up.
        agent: whom a step means that names no agent; the default of the settings if None.
        fill: what is done with every text, once the YAML was read: what it puts in can't become a key or a step.
        lines_above: how many lines the cell has above the body.
        lenient: return what could be read with the faults of the rest, so that planning can add its own.

    Raises:
        LaunchRefused: with all faults, each with its line.
    """
    try:
        data, lines = load_located(body, lines_above=lines_above)
    except YamlRefused as error:
        hint = f"; {_QUOTE}" if error.syntax else ""
        raise LaunchRefused([f"line {error.line or lines_above + 1}: {error.problem}{hint}"]) from None
    reader = _ChainReader(lines, fill, namespace=namespace, agent=agent)
    chain = reader.whole(data)
    parsed = Parsed(
        chain or Chain(items=()), reader.places, reader.line_of, tuple(reader.faults), frozenset(reader.holes)
    )
    if chain is None or (reader.faults and not lenient):
        raise LaunchRefused(parsed.located(()))
    return parsed


@dataclass(slots=True)
class _ChainReader(CellReader):
    namespace: Mapping[str, Any] = field(default_factory=dict)
    agent: str | None = None
    places: dict[str, Path] = field(default_factory=dict)
    holes: set[str] = field(default_factory=set)

    def whole(self, data: object) -> Chain | None:
        try:
            return self._whole(data)
        except Refused:
            return None

    def _whole(self, data: object) -> Chain:
        fields = Fields({"steps": data}, {}, ())
        parts: list[Any] = []
        if isinstance(data, Mapping):
            fields = self.fields(data, (), WHOLE, "a chain")
            if "attach" in fields.values:
                self.places["1"] = fields.at("attach")
                parts.append(self._attached(Fields({"attach": fields.values["attach"]}, fields.paths, ())))
        items = fields.values.get("steps")
        if items is None and not isinstance(data, Mapping):
            self.refuse((), "the cell has no steps; write them as a YAML list: `- scout: what to do`")
        if items is None and not parts:
            self.refuse((), "a chain has steps: a list of items, or such a list under steps:")
        if items is not None and not isinstance(items, list):
            self.refuse(fields.at("steps"), "steps is a list, each item behind a -")
        for number, item in enumerate(items or ()):
            place, path = len(parts) + 1, (*fields.at("steps"), number)
            self.places[str(place)] = path
            try:
                parts.append(self._item(item, path, place))
            except Refused:
                self.holes.add(str(place))
                parts.append(Step(task=UNTOLD))
        return self.composed(functools.partial(chain, *parts), fields, {"task": fields.values.get("task")})

    def _item(self, item: object, path: Path, place: int) -> Step | Parallel | Expand | Attached:
        kinds = {named(key) for key in item if isinstance(key, str)} if isinstance(item, Mapping) else set()
        if "expand" in kinds:
            return self._fan_out(item, path)
        if "parallel" in kinds:
            return self._group(item, path, place)
        if "attach" in kinds:
            return self._attached(self.fields(item, path, ATTACHED, "an attached run"))
        return self._step(item, path, ("parallel", "expand", "attach"))

    def _step(self, item: object, path: Path, kinds: tuple[str, ...] = ()) -> Step:
        if isinstance(item, str):
            self.refuse(path, f"a step is `AGENT: task`, or a mapping with agent and task, not the text {shown(item)}")
        if isinstance(item, Mapping):
            item = self._spelt_out(item, path)
        before = len(self.faults)
        fields = self.fields(item, path, STEP, "a step", kinds)
        options = dict(fields.values)
        if len(self.faults) > before:
            options.setdefault("task", UNTOLD)
        options["as_"] = options.pop("as", None)
        options.setdefault("agent", self.agent)
        if isinstance(schema := options.get("schema"), str):
            schema_found = self.tried(lambda: self._looked_up(schema, fields.at("schema")))
            options |= {"schema": ANY_OBJECT if schema_found is None else schema_found, "schema_name": schema}
        elif schema is not None and not isinstance(schema, Mapping):
            self.note(fields.at("schema"), "schema is the name of a type of yours, or a JSON Schema as a mapping")
            options["schema"] = ANY_OBJECT
        for key in ("session", "fork"):
            if isinstance(named_run := options.get(key), str):
                held = self.namespace.get(named_run)
                options[key] = held if isinstance(held, Run) else named_run
        for name, value in options.items():
            kind = BY_NAME[name].kind if name in BY_NAME else ""
            if kind == "level" and value is False:
                options[name] = "off"  # which is how YAML reads an unquoted off
            elif kind == "words" and isinstance(value, str):
                options[name] = [value]
        return self.composed(step, fields, {k: v for k, v in options.items() if v is not None})

    def _spelt_out(self, item: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
        """Return `scout: task` as agent and task; its other keys stay."""
        first = next(iter(item), None)
        keys = {named(key) for key in item}
        if first is None or named(first) in STEP or keys & {"agent", "task"}:
            return item
        task = item[first]
        if isinstance(task, Mapping) and task and all(isinstance(key, str) and named(key) in STEP for key in task):
            return self._options_of(first, task, item, path)  # `scout: {task: ..., label: ...}`
        braces = isinstance(task, Mapping) and all(value is None for value in task.values())
        if task is not None and not isinstance(task, str) and not braces:
            return item  # no shorthand: the unknown key is told
        rest = {key: value for key, value in item.items() if key != first}
        return {"agent": first, **({} if task is None else {"task": task}), **rest}

    def _options_of(
        self, agent: str, options: Mapping[str, Any], item: Mapping[str, Any], path: Path
    ) -> dict[str, Any]:
        inner = (*path, agent)
        for where, line in list(self.lines.items()):
            if where[: len(inner)] == inner:
                self.lines |= {(*path, *where[len(inner) :]): line} if where != inner else {(*path, "agent"): line}
        return {"agent": agent, **options, **{key: value for key, value in item.items() if key != agent}}

    def _group(self, item: Any, path: Path, place: int) -> Parallel:
        fields = self.fields(item, path, GROUP, "a parallel group")
        children = fields.values.pop("parallel")
        if not isinstance(children, list):
            self.refuse(fields.at("parallel"), "parallel is a list of steps, each behind a -")
        steps = []
        number = 0
        for index, child in enumerate(children):
            inner = (*fields.at("parallel"), index)
            one = self.tried(lambda child=child, inner=inner: self._step(child, inner))  # type: ignore[misc]
            for _ in range(max(1, min(one.count, 1000)) if one is not None else 1):
                number += 1
                self.places[f"{place}.{number}"] = inner
            steps.append(one)
        if None in steps:
            raise Refused
        members = [one for one in steps if one is not None]
        return self.composed(functools.partial(parallel, *members), fields, _options(fields.values))

    def _fan_out(self, item: Any, path: Path) -> Expand:
        fields = self.fields(item, path, FAN_OUT, "a fan-out")
        options = dict(fields.values)
        source = self.fields(options.pop("expand"), fields.at("expand"), SOURCE, "expand")
        output = self._source(source)
        templates = [name for name in ("each", "parallel") if name in options]
        if len(templates) != 1:
            self.refuse(path, "a fan-out has one step under each: that is carried out for every item")
        template, where = options.pop(templates[0]), fields.at(templates[0])
        if isinstance(template, list) and len(template) == 1:
            template, where = template[0], (*where, 0)
        each = self._step(template, where)
        if "collect" in options:
            collect = self.fields(options.pop("collect"), fields.at("collect"), ("as", "schema"), "collect")
            if "as" in collect.values:
                options["as"] = collect.values["as"]
            schema = collect.values.get("schema")
            if schema is not None and not isinstance(schema, Mapping):
                self.note(collect.at("schema"), "the schema of what is collected is a JSON Schema as a mapping")
                schema = None
            options["schema"] = schema
        options |= source.values
        fields.paths |= source.paths
        return self.composed(functools.partial(expand, *output, each), fields, _options(options))

    def _source(self, source: Fields) -> tuple[str, str]:
        origin, path = source.values.pop("from", None), source.values.pop("path", None)
        if isinstance(origin, Mapping):
            inner = self.fields(origin, source.at("from"), ("output", "path"), "from")
            origin, path = inner.values.get("output"), inner.values.get("path", path)
        if not isinstance(origin, str) or not (path is None or isinstance(path, str)):
            self.refuse(
                source.at("from"), "expand takes from: {output: NAME, path: /POINTER}, the array of an earlier output"
            )
        return origin, path or ""

    def _attached(self, given: Fields) -> Attached:
        which, path = given.values.pop("attach"), given.at("attach")
        if isinstance(which, Mapping):
            inner = self.fields(which, path, RUN, "attach")
            given = Fields({**inner.values, **given.values}, given.paths | inner.paths, path)
            which = given.values.pop("run", None)
        if not isinstance(which, str) or not which.strip():
            self.refuse(path, "attach takes a variable that holds a run, or a run's name or id")
        held = self.namespace.get(which)
        run = held.id if isinstance(held, Run) else which
        return self.composed(
            lambda **more: make(Attached, "attach", {"run": run, **more}), given, _options(given.values)
        )

    def _looked_up(self, name: str, path: Path) -> Any:
        from subagents_nb.notebook.bodies.namespace import lookup

        try:
            return lookup(name, self.namespace, "schema:")
        except Exception as error:  # noqa: BLE001 - a UsageError of IPython's, which is not to be imported for it
            self.refuse(path, str(error).rstrip("."))


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    return {("as_" if name == "as" else name): value for name, value in values.items() if value is not None}
