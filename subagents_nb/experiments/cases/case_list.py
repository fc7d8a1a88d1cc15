"""The cases of an experiment: the units of its statistics, with their right answers, known by a hash."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, overload

from subagents_nb.above import above
from subagents_nb.blocks import Column, Table, to_text
from subagents_nb.domain.plans.experiments import Case
from subagents_nb.domain.values.base import sha256_text, stable_json
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError
from subagents_nb.experiments.cases.case_sources import plain_value, rows_of
from subagents_nb.plain_text import plain

MAX_CASES = 10_000
MAX_CHARS = 1_000_000  # of one case: it stands in the plan of each of its runs
_SHOWN, _WIDTH = 20, 80


class Cases(Sequence[Case]):
    """Cases in their order. The same rows have the same `version`, wherever they came from.

    Args:
        source: a DataFrame, the path of a JSONL, JSON or CSV file, a list of mappings, or a dataset of pydantic-evals
            or Inspect. A column `metadata` that holds mappings is metadata.
        id: the column that names a case; without one they are numbered.
        expected: the column of the right answers, which no agent gets to see.
        metadata: columns that say something about cases and are not asked, such as a document they share.

    Raises:
        RequestError: it holds no cases, or two with one id.
    """

    def __init__(
        self,
        source: Any,
        *,
        id: str = "id",  # noqa: A002 - as the column is called
        expected: str = "expected",
        metadata: Sequence[str] = (),
    ) -> None:
        rows = rows_of(source)
        if not rows:
            raise RequestError("There are no cases.")
        if len(rows) > MAX_CASES:
            raise RequestError(f"{len(rows):,} cases are more than {MAX_CASES:,}.")
        names = [metadata] if isinstance(metadata, str) else list(metadata)
        known = {name for row in rows for name in row}
        if missing := [name for name in names if name not in known]:
            raise RequestError(f"No case has a column {missing[0]!r}; they have {', '.join(sorted(map(str, known)))}.")
        width = len(str(len(rows)))
        self._cases = tuple(
            _case(row, f"{number:0{width}d}", id, expected, names) for number, row in enumerate(rows, 1)
        )
        twice = [name for name, count in Counter(case.id for case in self._cases).items() if count > 1]
        if twice:
            raise RequestError(f"Two cases are called {one_line(twice[0], 80)!r}; an id belongs to one.")

    @property
    def sha256(self) -> str:
        """Return the hash of all cases, in any order."""
        return sha256_text(stable_json(sorted(case.sha256 for case in self._cases)))

    @property
    def version(self) -> str:
        """Return how the hash begins: enough to tell versions apart."""
        return self.sha256[:12]

    @overload
    def __getitem__(self, index: int | str) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> Cases: ...
    def __getitem__(self, index: int | str | slice) -> Case | Cases:
        """Return a case by its place or its id, or some of them."""
        if isinstance(index, str):
            found = [case for case in self._cases if case.id == index]
            if not found:
                raise KeyError(index)
            return found[0]
        if isinstance(index, slice):
            some = object.__new__(Cases)
            some._cases = self._cases[index]
            return some
        return self._cases[index]

    def __len__(self) -> int:
        return len(self._cases)

    def table(self) -> Table:
        """Describe the first of them, one a row."""
        inputs = list(dict.fromkeys(name for case in self._cases for name in case.inputs))
        about = list(dict.fromkeys(name for case in self._cases for name in case.metadata))
        rows = [
            [
                one_line(case.id, _WIDTH),
                *(_said(case.inputs.get(name)) for name in inputs),
                _said(case.expected),
                *(_said(case.metadata.get(name)) for name in about),
            ]
            for case in self._cases[:_SHOWN]
        ]
        heads = ["id", *inputs, "expected", *about]
        left = len(self) - len(rows)
        more = f", the first {_SHOWN}" if left else ""
        caption = f"{len(self):,} case{'' if len(self) == 1 else 's'}, version {self.version}{more}"
        return Table([Column(one_line(str(name), 40)) for name in heads], rows, caption=caption)

    def __repr__(self) -> str:
        return plain(to_text(self.table()))

    def _repr_html_(self) -> str:
        return str(above("cases_html")(self))


def _case(row: Mapping[str, Any], number: str, name_column: str, expected: str, metadata: Sequence[str]) -> Case:
    plain_row = {str(name): plain_value(value) for name, value in row.items()}
    given = plain_row.pop(name_column, None)
    name = number if given is None else str(given).strip()
    if not name or len(name) > 200 or one_line(name, 201) != name:
        raise RequestError(f"{one_line(name, 60)!r} can't name a case: an id is one line of 1 to 200 characters.")
    right = plain_row.pop(expected, None)
    about = plain_row.pop("metadata", None) if isinstance(plain_row.get("metadata"), dict) else None
    known = {**(about or {}), **{one: plain_row.pop(one, None) for one in metadata}}
    case = Case(id=name, inputs=plain_row, expected=right, metadata=known)
    if len(stable_json(case.model_dump(mode="json"))) > MAX_CHARS:
        raise RequestError(f"Case {name!r} has more than {MAX_CHARS:,} characters.")
    return case


def _said(value: Any) -> str:
    if value is None:
        return "–"
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _WIDTH)
