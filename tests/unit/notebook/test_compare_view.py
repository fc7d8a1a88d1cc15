"""Comparisons and differences on the page: small, harmless, and in the order that was chosen."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

from subagents_nb.experiments.comparing import Comparison, compare_rows
from subagents_nb.experiments.rows import RunRow
from subagents_nb.notebook.compare_show import CompareWidget, ComparisonView, bundle_of, reordered
from subagents_nb.notebook.compare_view import comparison_html, comparison_state, diff_html

EVIL = "<img src=x onerror=alert(1)>"


def compared(number: int = 3, **options: Any) -> Comparison:
    rows = [
        RunRow(
            f"r-{n}",
            name=EVIL,
            state="complete" if n != 1 else "failed",
            params={EVIL: f"{EVIL}{n}"},
            scores={} if n == 1 else {(f"{EVIL}acc", None): math.nan if n == 2 else float(n)},
            seconds=float(n),
        )
        for n in range(number)
    ]
    return compare_rows(rows, **options)


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.names |= {name for name, _ in attrs}


def test_hostile_names_are_text_on_the_page() -> None:
    tags = Tags(comparison_html(compared()))

    assert "img" not in tags.seen and "table" in tags.seen and not any(name.startswith("on") for name in tags.names)


def test_a_saved_comparison_is_small_and_says_what_it_left_out() -> None:
    html = comparison_html(compared(500))

    assert len(html) < 120_000 and "440 more groups: .to_pandas() has all." in html


def test_what_the_page_gets_is_plain_json_and_what_is_missing_is_null() -> None:
    state = comparison_state(compared())

    assert json.loads(json.dumps(state, allow_nan=False)) == state
    heads = [column["title"] for column in state["columns"]]
    assert heads[1:] == ["runs", f"{EVIL}acc", "cost_usd", "tokens", "seconds"]
    assert [row["keys"][2] for row in state["rows"]] == [0.0, None, None]
    assert [row["cells"][2] for row in state["rows"]][1:] == ["missing", "1 not finite"]
    assert all(len(row["keys"]) == len(row["cells"]) == len(heads) for row in state["rows"])


def test_keys_and_cells_stand_beside_one_another_with_a_baseline_too() -> None:
    state = comparison_state(compared(baseline={EVIL: f"{EVIL}0"}))

    assert len(state["rows"][0]["keys"]) == len(state["columns"]) == 7


@pytest.mark.parametrize("order", [None, "ab", [0, 0, 1], [3], [True, 0], [0.5], [-1], {"a": 1}])
def test_an_order_that_is_none_changes_nothing(order: Any) -> None:
    whole = compared()
    assert reordered(whole, order).groups == whole.groups


def test_the_plain_table_keeps_the_order_of_the_page_and_loses_no_row() -> None:
    whole = compared()
    assert reordered(whole, [2, 0]).groups == (whole.groups[2], whole.groups[0], whole.groups[1])


class Page:
    """What a shell publishes."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.display_pub = SimpleNamespace(publish=lambda **what: self.said.append(what))


def test_the_live_table_becomes_a_plain_one_when_the_page_is_saved_and_only_once() -> None:
    page = Page()
    view = ComparisonView(compared(), page)
    view.show()
    view._hear(None, {"kind": "order", "order": [2, 1, 0]}, None)
    view._hear(None, {"kind": EVIL}, None)
    view._hear(None, "leave", None)
    view._hear(None, {"kind": "leave"}, None)
    view.leave()

    first, last = page.said
    assert "application/vnd.jupyter.widget-view+json" in first["data"] and "update" not in first
    assert last["update"] is True and last["transient"] == first["transient"]
    assert last["data"] == bundle_of(reordered(compared(), [2, 1, 0]))


def test_nobody_touched_it_for_a_while_so_it_becomes_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page()
    view = ComparisonView(compared(), page, idle_s=0.01)
    view.show()
    assert view._timer is not None
    view._timer.join(10)

    assert len(page.said) == 2 and repr(CompareWidget(table={})) == "<CompareWidget>"


def test_a_difference_is_text_and_bounded() -> None:
    part = SimpleNamespace(name=EVIL, lines=tuple(f"+{EVIL}{n}" for n in range(1000)))
    found: Any = SimpleNamespace(names=(EVIL, "b"), parts=[part])

    html = diff_html(found)
    assert "img" not in Tags(html).seen and "600 more lines, in diff.text" in html
    assert "They do not differ." in diff_html(SimpleNamespace(names=("a", "b"), parts=[]))  # type: ignore[arg-type]
