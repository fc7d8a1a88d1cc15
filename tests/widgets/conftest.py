"""One JupyterLab and one browser for all tests of this room."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

sys.path.insert(0, str(Path(__file__).parent))

from jupyterlab_page import FLAGS, Lab


# Not for the session: while Playwright is there, a loop of its own runs in this thread, and asyncio allows no second.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "these tests need a browser; install one: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def _shared(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("lab"), browser)
    yield lab
    lab.close()


@pytest.fixture
def lab(_shared: Lab) -> Iterator[Lab]:
    """The JupyterLab without a kernel or a notebook; faults of its page are forgotten."""
    _shared.faults.clear()
    yield _shared
    _shared.leave()
