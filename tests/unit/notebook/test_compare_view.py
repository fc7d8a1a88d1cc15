"""Comparisons and differences on the page: small, harmless, and in the order that was chosen."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import IPython.core.getipython
import ipywidgets
import pytest

from subagents_nb.experiments.comparing import Comparison, compare_rows
from subagents_nb.experiments.comparison.run_diffs import Part
from subagents_nb.experiments.rows import RunRow
from subagents_nb.notebook.comparing.compare_show import MOST_LIVE, CompareWidget, bundle_of, leave_all, show_comparison
from subagents_nb.notebook.comparing.compare_view import comparison_html, comparison_state, diff_html
from subagents_nb.notebook.views.show import set_display_mode

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
    assert heads[1:] == ["runs", f"{EVIL}acc", "$ a run", "tokens a run", "s a run"]
    assert [row["keys"][2] for row in state["rows"]] == [0.0, None, None]
    assert [row["cells"][2] for row in state["rows"]][1:] == ["missing", "1 not finite"]
    assert all(len(row["keys"]) == len(row["cells"]) == len(heads) for row in state["rows"])


def test_keys_and_cells_stand_beside_one_another_with_a_baseline_too() -> None:
    state = comparison_state(compared(baseline={EVIL: f"{EVIL}0"}))

    assert len(state["rows"][0]["keys"]) == len(state["columns"]) == 7


class Page:
    """What a shell publishes."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.kernel = object()
        self.display_pub = SimpleNamespace(publish=lambda **what: self.said.append(what))


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """A shell in a kernel, as IPython knows the current one."""
    shell = Page()
    monkeypatch.setattr(IPython.core.getipython, "get_ipython", lambda: shell)
    yield shell
    leave_all()
    set_display_mode("auto")


def widgets() -> list[CompareWidget]:
    return [one for one in list(ipywidgets.widgets.widget._instances.values()) if isinstance(one, CompareWidget)]


def test_the_output_is_the_plain_table_and_the_widget_is_never_displayed(page: Page) -> None:
    set_display_mode("widget")
    show_comparison(compared())

    (said,), (widget,) = page.said, widgets()
    assert set(said["data"]) == {"text/html", "text/plain"} and "update" not in said and "transient" not in said
    assert said["data"] == bundle_of(compared(), token=widget.token)
    assert widget.table == comparison_state(compared())


def test_the_token_stands_once_in_the_output_around_the_main_table_and_is_another_each_time(page: Page) -> None:
    set_display_mode("widget")
    show_comparison(compared())
    show_comparison(compared())

    tokens = [widget.token for widget in widgets()]
    assert len(set(tokens)) == 2
    for token, said in zip(tokens, page.said, strict=True):
        assert re.fullmatch("subagents-nb-compare-[0-9a-f]{16}", token)
        html = said["data"]["text/html"]
        assert html.count(token) == 1
        assert html.index("<header") < html.index(f'<div class="{token}"><table') < html.index("Worst cases")
        assert html.replace(f'<div class="{token}">', "").replace("</table></div>", "</table>", 1) == comparison_html(
            compared()
        )


def test_where_no_widget_can_be_the_plain_table_has_no_token(page: Page) -> None:
    set_display_mode("html")
    show_comparison(compared())

    assert page.said == [{"data": bundle_of(compared()), "metadata": {}}] and widgets() == []
    assert "class" not in Tags(comparison_html(compared())).names


def test_the_last_few_are_live_and_all_are_plain_when_the_extension_goes(page: Page) -> None:
    set_display_mode("widget")
    for _ in range(MOST_LIVE + 2):
        show_comparison(compared())

    assert len(page.said) == MOST_LIVE + 2
    for widget, said in zip(widgets(), page.said[2:], strict=True):
        assert widget.token in said["data"]["text/html"]
    leave_all()
    assert widgets() == []
    leave_all()


def test_a_difference_is_text_and_bounded() -> None:
    part = Part(EVIL, "", "\n".join(f"{EVIL}{n}" for n in range(1000)))
    found: Any = SimpleNamespace(names=(EVIL, "b"), parts=[part])

    html = diff_html(found)
    assert "img" not in Tags(html).seen and "more lines, in diff.text" in html and len(html) < 80_000
    assert "They do not differ." in diff_html(SimpleNamespace(names=("a", "b"), parts=[]))  # type: ignore[arg-type]


def test_intervals_are_bars_on_one_axis_a_column_and_differences_have_a_line_at_zero() -> None:
    rows = [
        RunRow(f"r-{n}", state="complete", params={"model": "ab"[n % 2]}, repeat=n // 2, scores={("acc", None): score})
        for n, score in enumerate([0.1, 0.8, 0.2, 0.9, 0.15, 0.7])
    ]
    found = compare_rows(rows, baseline={"model": "a"}, metrics=["acc", "tokens"])
    first, second = comparison_state(found)["rows"]

    assert first["cells"][2] == "0.15 (0.026 to 0.27; n 3)" and first["bars"][:2] == [None, None]
    low, mean, high, zero = second["bars"][2]
    assert 0 < low < mean < high < 1 and zero is None and first["bars"][2][2] < low
    assert first["bars"][3] is None and 0 < second["bars"][3][3] < second["bars"][3][0]  # better, so right of zero
    assert second["bars"][4] is None and comparison_html(found).count("aria-hidden") == 3
