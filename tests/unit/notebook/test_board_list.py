"""What a saved page says of its board, and what a terminal needs to show one."""

from __future__ import annotations

import sys

import pytest

from subagents_nb.cli import main
from subagents_nb.notebook.board.board_list import BoardList, parse_word


def test_a_saved_page_names_again_what_its_board_lists_and_nothing_else() -> None:
    which = {"state": "asking", "limit": 7, "notebook": "über/a b.ipynb", "cell": None}
    word = BoardList(which).word
    assert word.replace("-", "").replace("_", "").isalnum()
    parsed = parse_word(word)
    assert parsed is not None
    assert parsed.which == {name: value for name, value in which.items() if value is not None}
    assert parse_word(BoardList({}).word) == BoardList({"limit": 20})
    strange = (
        {"home": "/etc"},
        {"limit": -1},
        {"limit": True},
        {"agent": ["x"]},
        {"agent": "x" * 1000},
        {"limit": 1e9},
    )
    for one in strange:
        assert parse_word(BoardList(one).word) is None
    for other in (None, 7, "", "a b", "%%%", "AAAA", "e" * 5000, "WzFd"):
        assert parse_word(other) is None


def test_a_board_in_a_terminal_says_what_it_lacks(
    store_home: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("textual", "textual.app"):
        monkeypatch.setitem(sys.modules, name, None)  # as where the extra is not installed
    monkeypatch.delitem(sys.modules, "subagents_nb.notebook.board.terminal_board", raising=False)
    assert main(["board"]) == 1
    assert 'pip install "subagents-nb[board]"' in capsys.readouterr().err
    assert main(["board", "--state", "nonsense"]) == 1
    assert "There is no state 'nonsense'" in capsys.readouterr().err
