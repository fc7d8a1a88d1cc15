"""The parsers of the magics, by name."""

from __future__ import annotations

from functools import partial

from subagents_nb.notebook.magics.parsers import magic_parser
from subagents_nb.notebook.verbs.table import VERBS

PARSERS = {verb.magic: partial(magic_parser, verb) for verb in VERBS if not verb.not_in_cell}
