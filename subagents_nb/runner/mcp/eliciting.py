"""What a server asks of the person while it carries out a call: questions of the run, one for each thing it wants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from mcp_types import ElicitResult

from subagents_nb.domain.values.words import one_line
from subagents_nb.runner.engines.engine import StepContext

DECLINE = "decline"
_MOST_FIELDS, _TRIES, _TEXT_CHARS = 12, 3, 1_000
_YES, _NO = ("yes", "true", "y", "1"), ("no", "false", "n", "0")
Content = dict[str, str | int | float | bool | list[str] | None]


class _Declined(Exception):
    """The person wants none of it."""


class Eliciting:
    """Asks for one server; `waiting` holds still the limit of its calls meanwhile."""

    def __init__(
        self,
        server: str,
        context: StepContext,
        waiting: Callable[[], AbstractContextManager[None]],
        redact: Callable[[str], str],
    ) -> None:
        self._redact = redact
        self._server = server
        self._context = context
        self._waiting = waiting

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        """Return what the person said; where nobody is, it is declined."""
        del context
        if self._context.ask is None or self._context.permit is None:
            return ElicitResult(action="decline")
        with self._waiting():
            try:
                if params.mode == "url":
                    return await self._address(params.message, params.url)
                return await self._form(params.message, dict(params.requested_schema))
            except _Declined:
                return ElicitResult(action="decline")

    async def _address(self, message: str, url: str) -> ElicitResult:
        text = f"{message[:_TEXT_CHARS]}\nIt wants you to open {one_line(url, 500)} by yourself."
        await self._asked(text, ("done",))
        return ElicitResult(action="accept")

    async def _form(self, message: str, schema: Mapping[str, Any]) -> ElicitResult:
        fields = schema.get("properties")
        wanted = list(fields.items())[:_MOST_FIELDS] if isinstance(fields, dict) else []
        needed = schema.get("required")
        needed = needed if isinstance(needed, list) else []
        text = message[:_TEXT_CHARS]
        if not wanted:
            await self._asked(text, ("yes",))
        content: Content = {}
        for name, kind in wanted:
            value = await self._field(text, name, kind if isinstance(kind, dict) else {}, needed=name in needed)
            if value is not None:
                content[name] = value
            text = ""
        return ElicitResult(action="accept", content=content)

    async def _field(self, lead: str, name: str, kind: Mapping[str, Any], *, needed: bool) -> Any:
        about = " - ".join(one_line(str(kind[key]), 300) for key in ("title", "description") if kind.get(key))
        asked = f"{name}{f' ({about})' if about else ''}{'' if needed else ', if you like'}:"
        choices = _choices(kind)
        said = ""
        for _ in range(_TRIES):
            text = await self._asked("\n".join(filter(None, (lead, said, asked))), choices)
            if not text.strip() and not needed:
                return None
            try:
                return _value(text.strip(), kind, choices)
            except ValueError as error:
                said = f"That is no answer to it: {error}."
        raise _Declined

    async def _asked(self, text: str, choices: tuple[str, ...]) -> str:
        ask = self._context.ask
        if ask is None:
            raise _Declined
        answer = await ask(f"MCP server {self._server} asks: {self._redact(text)}", (*choices, DECLINE))
        if answer.strip().casefold() == DECLINE:
            raise _Declined
        return answer


def _choices(kind: Mapping[str, Any]) -> tuple[str, ...]:
    if kind.get("type") == "boolean":
        return ("yes", "no")
    words = kind.get("enum")
    named = kind.get("oneOf")
    if words is None and isinstance(named, list):
        words = [one.get("const") for one in named if isinstance(one, dict)]
    return tuple(str(one) for one in words) if isinstance(words, list) else ()


def _value(text: str, kind: Mapping[str, Any], choices: tuple[str, ...]) -> str | int | float | bool | list[str]:
    """Return what was said as the kind of value that is wanted.

    Raises:
        ValueError: it is none; the text says why.
    """
    match kind.get("type"):
        case "boolean":
            if text.casefold() not in (*_YES, *_NO):
                raise ValueError("say yes or no")
            return text.casefold() in _YES
        case "integer" | "number" as number:
            try:
                return int(text) if number == "integer" else float(text)
            except ValueError:
                raise ValueError(f"it has to be {'a whole number' if number == 'integer' else 'a number'}") from None
        case "array":
            return [part.strip() for part in text.split(",") if part.strip()]
    if choices and text not in choices:
        raise ValueError(f"say one of {', '.join(choices)}")
    return text
