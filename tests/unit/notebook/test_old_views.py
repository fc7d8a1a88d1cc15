"""What a page may say of the views that an earlier kernel left on it."""

from __future__ import annotations

import pytest
from card_samples import RUN_ID

from subagents_nb.notebook.old_views import found_boards, parse_found

TOKEN = "0123456789abcdef" * 2


def test_a_token_and_its_run_are_taken() -> None:
    run_id = "r-1m8n4747zas862mqp5j"
    assert parse_found({"kind": "found", "places": [{"token": TOKEN, "run": run_id}]}) == [(TOKEN, run_id)]


@pytest.mark.parametrize(
    "content",
    [
        None, [], {"kind": "stop"}, {"kind": "found"}, {"kind": "found", "places": "all"},
        {"kind": "found", "places": [None, 7, {"token": TOKEN}, {"run": RUN_ID}]},
        {"kind": "found", "places": [{"token": TOKEN, "run": "../../etc"}]},
        {"kind": "found", "places": [{"token": "<b>", "run": "r-1m8n4747zas862mqp5j"}]},
    ],
)  # fmt: skip
def test_anything_else_is_passed_over(content: object) -> None:
    assert parse_found(content) == []
    assert found_boards(content) == []


def test_boards_are_found_by_their_tokens_and_what_they_list() -> None:
    boards = [{"token": TOKEN, "which": "e30"}, {"token": "<b>", "which": "e30"}, {"token": TOKEN}, None]
    assert found_boards({"kind": "found", "boards": boards}) == [(TOKEN, "e30")]
