"""A task may end in a question mark; help is still asked for as everywhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from subagents_nb.notebook.magics.question_marks import TRANSFORMERS


@pytest.fixture(scope="module")
def manager() -> Iterator[TransformerManager]:
    made = TransformerManager()
    made.token_transformers.extend(TRANSFORMERS)
    yield made


def ran(magic: str, line: str) -> str:
    return f"get_ipython().run_line_magic({magic!r}, {line!r})\n"


@pytest.mark.parametrize(
    ("code", "becomes"),
    [
        ("%subagent scout -o f -- Which look wrong?", ran("subagent", "scout -o f -- Which look wrong?")),
        ("%subagent_steer work -- why not??", ran("subagent_steer", "work -- why not??")),
        ("run = %subagent -- wrong?", "run = " + ran("subagent", "-- wrong?")),
        ("x = 1\n%subagent_answer work -- ok?", "x = 1\n" + ran("subagent_answer", "work -- ok?")),
        ("if 1:\n    %subagent_steer w -- Don't (you?", "if 1:\n    " + ran("subagent_steer", "w -- Don't (you?")),
        ("if 1:\n    r = %subagent -- why?\n    %subagent_steer r -- so?",
         "if 1:\n    r = " + ran("subagent", "-- why?") + "    " + ran("subagent_steer", "r -- so?")),
        ("%subagent_steer work -- use a.b?\nlen?",
         ran("subagent_steer", "work -- use a.b?") + ran("pinfo", "len")),
    ],
)  # fmt: skip
def test_a_question_behind_two_dashes_is_text(manager: TransformerManager, code: str, becomes: str) -> None:
    assert manager.transform_cell(code) == becomes


@pytest.mark.parametrize(
    "code",
    [
        "%subagent?", "%%subagent?", "%subagent_steer??", "len?", "%time x -- y?", "%subagents -- y?", "x = %subagent?",
        "text = '''\n%subagent scout -- why?\n'''", "%%bash\n%subagent scout -- why?\n", "%subagent_status scout",
        "%%subagent scout\nWhich look wrong?", "x = '%subagent -- y?'", "%subagent scout -- no question",
        "run = %subagent scout -- no question",
    ],
)  # fmt: skip
def test_everything_else_is_left_to_ipython(manager: TransformerManager, code: str) -> None:
    assert manager.transform_cell(code) == TransformerManager().transform_cell(code)
