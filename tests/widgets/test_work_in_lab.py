"""Acceptance and changes in a real JupyterLab: on the card, in the panel of a step, in both themes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from accessibility import can_be_read
from jupyterlab_page import Lab
from playwright.sync_api import expect
from support import CHILDREN

GATE = "grep -q two a.txt && echo 3 passed in 0.2 s"
SINGLE = f"""%%subagent worker --model told:m --worktree --gate '{GATE}' --wait -o mended --name mend
RUN: echo two >> a.txt; seq 3 > new.txt; git mv b.txt c.txt; echo 'the counting is mended'"""
CHAIN = """%%subagent_chain --model told:m --name release -o work
- parallel:
  - {worker: 'RUN: echo mended >> a.txt', label: mend, gate: grep -q mended a.txt}
  - {worker: 'RUN: seq 4 > b.txt', label: count, gate: 'echo "FAILED tests/test_count.py: 4 != 3"; exit 1'}
  worktree: true
  on_failure: continue
- {delegate: wait, model: 'scripted:steerable', label: last}"""
THEMES = (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light"))


def commit(repo: Path) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    for args in (("add", "-A"), (*who, "commit", "-q", "-m", "as it is")):
        subprocess.run(["git", *args], cwd=repo, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def told(lab: Lab) -> Iterator[None]:
    """A repository to work in, and a model that calls bash with what the task says behind `RUN: `."""
    (lab.work / "a.txt").write_text("one\n")
    (lab.work / "b.txt").write_text("".join(f"line {n}\n" for n in range(9)))
    (lab.work / ".gitignore").write_text("*.ipynb\n.*\n")
    subprocess.run(["git", "init", "-q"], cwd=lab.work, check=True)
    commit(lab.work)
    command = [sys.executable, str(CHILDREN / "chat.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        settings = lab.root / "user" / ".subagents" / "settings.toml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(f'[endpoints.told]\nbase_url = "http://127.0.0.1:{int(peer.stdout.readline())}/v1"\n')
        yield
        peer.stdin.close()


def test_work_is_shown_on_cards_and_in_panels_and_taken_over(lab: Lab, tmp_path: Path) -> None:
    pictures = Path(os.environ.get("SUBAGENTS_NB_PICTURES") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    book = lab.open("work", [
        "%load_ext subagents_nb", SINGLE, "%subagent_diff mended", "%subagent_apply mended", CHAIN,
        "%subagent_steer work -- finish",
    ])  # fmt: skip
    book.run(0, 1)
    card = book.output(1).locator("section[aria-label='Run mend, complete']")
    expect(card).to_contain_text("Take it over: mended.apply()", timeout=20_000)
    expect(card).to_contain_text("3 passed in 0.2 s")
    card.locator("summary", has_text="a.txt +").click()
    expect(card.get_by_text("+two")).to_be_visible()
    book.run(2, 3)
    expect(book.output(2)).to_contain_text("3 files changed")
    expect(book.output(3)).to_contain_text("mend: applied: a.txt, ")
    assert (lab.work / "a.txt").read_text() == "one\ntwo\n"
    commit(lab.work)  # a worktree begins from what is committed

    book.run(4)
    view = book.output(4).locator(".sa")
    panel = view.locator(".sa-panel")
    view.get_by_role("button", name="count").click(timeout=20_000)
    expect(panel).to_have_accessible_name(re.compile(r"steps\[\d+\], count, rejected"), timeout=20_000)
    expect(panel).to_contain_text("acceptance rejected")
    panel.locator("summary").click()
    work = panel.get_by_role("region", name="Acceptance and changes of the step")
    expect(work).to_contain_text("b.txt +")
    expect(work).to_contain_text("Take it over: run.apply(step=1)")
    for theme, name in THEMES:
        lab.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        can_be_read(view, ".sa-work", ".sa-note summary")
        view.screenshot(path=pictures / f"work-panel-{name}.png")
    view.get_by_role("button", name="last").click()
    expect(panel).to_have_accessible_name(re.compile(r"steps\[\d+\], last, running"), timeout=20_000)
    book.run(5)
    whole = book.output(4).locator("section[aria-label='Run release, partial']")
    expect(whole).to_be_visible(timeout=20_000)
    whole.locator("summary", has_text="rejected 1 count").click()
    expect(whole).to_contain_text("work.apply(step=1)")
    for theme, name in THEMES:
        lab.page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        can_be_read(card, "summary code", "[aria-label='Acceptance'] p")
        card.screenshot(path=pictures / f"work-card-{name}.png")
        book.output(2).screenshot(path=pictures / f"work-diff-{name}.png")
        whole.screenshot(path=pictures / f"work-chain-{name}.png")
    assert lab.faults == []
