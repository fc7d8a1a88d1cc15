"""Why something is refused, as a value: nobody reads the sentence to learn what it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self, TypeAlias

Path: TypeAlias = "tuple[str | int, ...]"  # the keys and numbers that lead to a value

OF_THE_RUN: Final = "run"  # the place of what is said of the whole run, even where it has one step alone
NO_EARLIER_OUTPUT: Final = "no-earlier-output"


class Reason(str):
    """A sentence for people that knows what it is about.

    It is a text, so whoever only shows reasons needs to know nothing else: `RequestError.reasons` stays a tuple of
    texts. `place` is an item or step of a chain as planning counts them ("2", "2.1"), `path` leads to the value there,
    `code` what kind of fault it is, where somebody asks; `advice` is the command that mends it; `text` is the sentence
    without the words in front that say where.
    """

    __slots__ = ("advice", "code", "path", "place", "text")
    place: str
    path: Path
    code: str
    advice: str
    text: str

    def __new__(
        cls, text: str, *, lead: str = "", place: str = "", path: Path = (), code: str = "", advice: str = ""
    ) -> Self:
        """Make a reason; `lead` are the words in front, a colon away from the text."""
        reason = super().__new__(cls, f"{lead}: {text}" if lead else text)
        before = text if isinstance(text, cls) else None
        for name, value in (("place", place), ("path", path), ("code", code), ("advice", advice)):
            object.__setattr__(reason, name, value or getattr(before, name, value))
        object.__setattr__(reason, "text", before.text if before is not None else text)
        return reason

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a reason is a value: {name} can't be set")


def place_of(reason: str) -> str:
    """Return the place of a reason; nothing if it is a plain text, which knows none."""
    return reason.place if isinstance(reason, Reason) else ""


def advice_of(reason: object) -> str:
    """Return the command that mends what a reason, or an error of one, is about; nothing if it knows none."""
    if isinstance(reason, Exception):
        reason = next(iter(reason.args), None)
    return reason.advice if isinstance(reason, Reason) else ""


class Reasons(list[Reason]):
    """The reasons found so far. What is found `at` a place is told to those around it too, with the place."""

    def __init__(self, around: Reasons | None = None, place: str = "", lead: str = "") -> None:
        super().__init__()
        self._around, self.place, self.lead = around, place, lead

    def at(self, place: str, lead: str = "") -> Reasons:
        """Return an empty list for a place; `lead` says the place to people."""
        return Reasons(self, place or self.place, lead)

    def append(self, text: str, *, path: Path = (), code: str = "") -> None:
        """Add one."""
        reason = Reason(text, place=place_of(text) or self.place, path=path, code=code)
        super().append(reason)
        if self._around is not None:
            self._around.append(Reason(reason, lead=self.lead))

    def extend(self, texts: Iterable[str]) -> None:
        """Add some."""
        for text in texts:
            self.append(text)
