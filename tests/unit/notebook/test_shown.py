"""What is shown stays as it looks: each sample's page, element by element, and its text, as they are stored."""

from __future__ import annotations

import pytest
from shown_samples import dom, shown, stored

SHOWN = {name: (page, text) for name, page, text in shown()}
STORED = stored()


def test_every_sample_is_stored() -> None:
    assert list(SHOWN) == list(STORED) and len(STORED) >= 40


@pytest.mark.parametrize("name", STORED)
def test_a_sample_looks_and_reads_as_it_is_stored(name: str) -> None:
    page, text = SHOWN[name]
    assert dom(page) == STORED[name]["page"]
    assert text.split("\n") == STORED[name]["text"]
