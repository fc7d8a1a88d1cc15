"""The measure itself: what breaks a rule is found, in the part of the page that is asked for."""

from __future__ import annotations

from accessibility import violations
from playwright.sync_api import Browser


def test_what_breaks_a_rule_is_found_where_it_stands(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(
        "<main><section id='good'><p>Text</p></section><section id='bad'><img src='data:,'></section></main>"
    )
    assert violations(page.locator("#good")) == []
    assert [found.partition(":")[0] for found in violations(page.locator("#bad"))] == ["image-alt"]
    page.close()
