"""A question at the end of a line magic is text: `%subagent scout -- Which columns look wrong?` launches a run.

IPython takes every line that ends in `?` for a request for help, shows the help of its last word, and runs nothing:
ipython/ipython#14258.
"""

from __future__ import annotations

import re
from typing import Any

from IPython.core.inputtransformer2 import EscapedCommand, HelpEnd, MagicAssign

_OURS = re.compile(r"\s*(?:\w+\s*=\s*)?%subagent(?:_[a-z]+)?\s(?:.*\s)?--\s")


class _TextLine(EscapedCommand):
    """`%subagent… -- TEXT`, before it can be taken for a request for help."""

    priority = HelpEnd.priority - 1

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> Any:
        return super().find(_text_lines(tokens_by_line))  # type: ignore[no-untyped-call]


class _TextAssign(MagicAssign):
    """`run = %subagent… -- TEXT`, likewise."""

    priority = HelpEnd.priority - 1

    def __init__(self, start: tuple[int, int]) -> None:
        super().__init__(start)  # type: ignore[no-untyped-call]
        # What begins first in a line is carried out first, and help begins with its line.
        self._percent_sign, self.start_col = self.start_col, 0

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> Any:
        return super().find(_text_lines(tokens_by_line))  # type: ignore[no-untyped-call]

    def transform(self, lines: list[str]) -> Any:
        self.start_col = self._percent_sign
        return super().transform(lines)


def _text_lines(tokens_by_line: list[list[Any]]) -> list[list[Any]]:
    return [tokens for tokens in tokens_by_line if tokens and _OURS.match(tokens[0].line)]


TRANSFORMERS = (_TextLine, _TextAssign)
