"""What is shown, where it lands, and what stays: on iopub, in the kernel's memory, and in a saved notebook."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from kernels import Kernel, display_id_of, execute

VIEW = "application/vnd.jupyter.widget-view+json"
Start = Callable[..., Kernel]
LIVE_WIDGETS = "[type(w).__name__ for w in __import__('ipywidgets').widgets.widget._instances.values()]"


def show_slow(kernel: Kernel, name: str) -> str:
    return display_id_of(kernel.ok(f"%%subagent --model scripted:slow --name {name} -o work\nx"))


def test_the_first_thing_shown_is_live_and_has_a_line_for_those_who_can_not_see_it(kernel: Kernel) -> None:
    cell = kernel.ok("%%subagent --model scripted:slow --name first-seen\nx")
    assert sorted(cell.shown[0]) == ["text/html", "text/plain"]
    again = f"%subagent_attach {kernel.run_id('first-seen')}"
    assert cell.plain == f"first-seen (delegate) · how it stands: {again}"
    plain, live = cell.shown[0]["text/html"], kernel.comm_of("first-seen")
    for said in ("first-seen", "queued", "as of ", " UTC", again, f'class="{live} {live}-0 subagents-nb-run '):
        assert said in plain, said
    assert re.search(r"as of 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC", plain)  # it may be read on another day


def test_vs_code_which_opens_no_model_without_a_view_is_shown_one(kernel: Kernel) -> None:
    kernel.ok("__vsc_ipynb_file__ = '/somewhere/book.ipynb'")
    cell = kernel.ok("%%subagent --model scripted:slow --name in-vs-code\nx")
    assert sorted(cell.shown[0]) == [VIEW, "text/html", "text/plain"]
    assert "as of " in cell.shown[0]["text/html"]
    kernel.ok("del __vsc_ipynb_file__")


def test_a_page_that_was_loaded_meanwhile_has_the_whole_view_and_gets_the_card_when_it_asks(kernel: Kernel) -> None:
    place = show_slow(kernel, "loaded-anew")
    comm = kernel.comm_of("loaded-anew")
    kernel.ok("work.stop(); work.wait()")
    kernel.until(lambda: kernel.updates_of(place), what="the card")
    kernel.log.clear()
    kernel.ask_state(comm)
    state = kernel.until(lambda: [told for told in kernel.told(comm) if "run_id" in told], what="the state")[-1]
    assert (state["state"], state["version"]) == ("stopped", 1)
    kernel.say(comm, {"kind": "card"})
    cards = kernel.until(lambda: [t for t in kernel.told(comm) if t.get("kind") == "card"], what="the card")
    assert "stopped" in cards[0]["data"]["text/html"]
    assert sorted(cards[0]["data"]) == ["text/html", "text/plain"]


def test_the_view_is_replaced_by_a_card_in_the_same_place(kernel: Kernel) -> None:
    place = show_slow(kernel, "replaced")
    kernel.ok("work.stop(); work.wait()")
    kernel.until(lambda: kernel.updates_of(place), what="the card")
    assert sorted(kernel.updates_of(place)[-1]) == ["text/html", "text/plain"]
    cards = [bundle for bundle in kernel.updates_of(place) if "subagents-nb-run" not in bundle["text/html"]]
    assert len(cards) == 1 and "stopped" in cards[0]["text/html"]


def test_a_run_moves_on_the_page_while_a_cell_blocks(kernel: Kernel) -> None:
    show_slow(kernel, "moving")
    request = kernel.send("import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass")
    during: list[object] = []

    def moved() -> bool:
        found = [m["content"]["data"] for m in kernel.log if m["msg_type"] == "comm_msg"]
        during[:] = [data for data in found if "fresh" in data.get("state", {})]
        return len(during) >= 3

    kernel.log.clear()
    kernel.until(moved, 10, what="text on the page")
    assert not kernel.is_idle(request), "the cell ended before anything moved"
    kernel.finish(request)


def test_nothing_of_ours_lands_under_a_strangers_cell_but_updates_by_id(kernel: Kernel) -> None:
    place = show_slow(kernel, "elsewhere")
    kernel.log.clear()
    cell = kernel.ok("print('mine')\nwork.stop()\nwork.wait()")
    kernel.until(lambda: kernel.updates_of(place), what="the card")
    cell = kernel.ok("print('mine too')")
    ours = [m for m in kernel.log if m["msg_type"] in ("stream", "display_data", "execute_result", "error")]
    assert [(m["msg_type"], m["content"].get("text")) for m in ours] == [
        ("stream", "mine\n"), ("execute_result", None), ("stream", "mine too\n"),
    ]  # fmt: skip
    assert cell.shown == []


def test_each_showing_has_a_place_of_its_own(kernel: Kernel) -> None:
    first = show_slow(kernel, "shown-twice")
    second = display_id_of(kernel.ok("work"))
    assert first != second
    kernel.ok("work.stop(); work.wait()")
    kernel.until(lambda: kernel.updates_of(first) and kernel.updates_of(second), what="both cards")


def test_the_widgets_of_the_last_runs_stay_for_a_page_loaded_anew_and_are_freed_with_the_extension(
    new_kernel: Start,
) -> None:
    kernel = new_kernel()
    kernel.ok(
        "import weakref, gc\n"
        "from subagents_nb.notebook.views.widget import RunWidget\n"
        "held, init = [], RunWidget.__init__\n"
        "def watched(self, *args, **more):\n"
        "    held.append(weakref.ref(self)); init(self, *args, **more)\n"
        "RunWidget.__init__ = watched"
    )
    place = show_slow(kernel, "freed")
    assert kernel.value(LIVE_WIDGETS).count("RunWidget") == 1
    kernel.ok("work.stop(); work.wait()")
    kernel.until(lambda: kernel.updates_of(place), what="the card")
    assert kernel.value(LIVE_WIDGETS).count("RunWidget") == 1
    kernel.ok("%unload_ext subagents_nb")
    assert kernel.value(LIVE_WIDGETS) == []
    kernel.until(
        lambda: kernel.value("(gc.collect(), len(held), sum(ref() is not None for ref in held))[1:]") == [1, 0],
        what="the widget's memory",
    )


def test_the_page_can_ask_for_a_stop_and_for_nothing_that_is_not_in_the_list(kernel: Kernel) -> None:
    show_slow(kernel, "asked-by-the-page")
    comm = kernel.comm_of("asked-by-the-page")
    for content in ({"kind": "exec", "code": "1/0"}, "stop", None, {"kind": "retune"}, {"kind": "steer", "text": 7}):
        kernel.say(comm, content)
    kernel.say(comm, {"kind": "stop"})
    kernel.until(lambda: kernel.state("asked-by-the-page") == "stopped", what="the stop")
    assert not [m for m in kernel.log if m["msg_type"] in ("error", "stream")]


def test_programs_that_execute_notebooks_get_cards_and_no_widget(kernel: Kernel) -> None:
    widgets = len(kernel.value(LIVE_WIDGETS))
    cell = kernel.ok("%%subagent --model scripted:slow --name carded -o work\nx", cell_id=None)
    assert sorted(cell.shown[0]) == ["text/html", "text/plain"]
    place = display_id_of(cell)
    kernel.until(lambda: len(kernel.updates_of(place)) >= 2, what="newer cards")
    kernel.ok("work.stop(); work.wait()", cell_id=None)
    kernel.until(lambda: "stopped" in (kernel.updates_of(place) or [{"text/html": ""}])[-1]["text/html"])
    assert len(kernel.value(LIVE_WIDGETS)) == widgets


def test_the_card_of_a_live_run_says_as_of_when_with_each_cell(kernel: Kernel) -> None:
    place = display_id_of(kernel.ok("%%subagent --model scripted:slow --name as-of -o work\nx", cell_id=None))
    kernel.log.clear()
    cell = kernel.ok("1", cell_id=None)
    within = [m["content"]["data"]["text/html"] for m in cell.messages if m["msg_type"] == "update_display_data"]
    assert len(within) >= 2, "as it begins and as it ends"
    for said in ("as-of", "as of ", f"%subagent_attach {kernel.run_id('as-of')}"):
        assert said in within[-1]
    kernel.ok("work.stop(); work.wait()", cell_id=None)
    assert kernel.updates_of(place)


def test_an_end_between_two_cells_is_not_lost_to_a_program(kernel: Kernel) -> None:
    place = display_id_of(kernel.ok("%%subagent --model scripted:echo --name between\nx", cell_id=None))
    kernel.until(lambda: "complete" in (kernel.updates_of(place) or [{"text/plain": ""}])[-1]["text/plain"])
    for published in (True, False):
        kernel.log.clear()
        kernel.ok("1", cell_id=None)
        assert bool(kernel.updates_of(place)) is published


def test_a_failing_view_leaves_the_others_and_the_users_cells_alone(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:slow -q --name unlucky -o work\nx")
    kernel.ok(
        "from subagents_nb.launching.following.watch import WATCHER\n"
        "def broken(snapshot): raise RuntimeError('this listener is broken')\n"
        "stop_broken = WATCHER.follow(work.home, work.id, broken, tick=lambda: 1 / 0)"
    )
    place = display_id_of(kernel.ok("work"))
    assert kernel.ok("1 + 1").plain == "2"
    kernel.ok("work.stop(); work.wait()")
    kernel.until(lambda: kernel.updates_of(place), what="the card")
    assert kernel.state("unlucky") == "stopped"
    assert kernel.ok("1 + 1").plain == "2"


CELLS = [
    "%load_ext subagents_nb",
    "from pydantic import BaseModel\nclass Found(BaseModel):\n    rows: int\n    why: str",
    "%%subagent scout --model scripted:echo -o one --schema Found\nLook at the data.",
    "await one",
    "%%subagent --model scripted:echo -o two\n" + "A long answer. " * 60,
    "two.wait()",
    "%%subagent --model scripted:slow -o three\nx",
    "three.stop(); three.wait()",
    "%%subagent --model scripted:echo -o four --wait\nx",
    "%subagent_status -n 3",
]


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> nbformat.NotebookNode:
    """A notebook that was executed by nbclient with its defaults, written to disk and read again."""
    monkeypatch.setenv("SUBAGENTS_NB_HOME", str(kernel.home.root))
    monkeypatch.setenv("HOME", str(kernel.user_home))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS])
    execute(notebook, tmp_path)
    nbformat.write(notebook, tmp_path / "executed.ipynb")
    return nbformat.read(tmp_path / "executed.ipynb", as_version=4)


def test_a_saved_notebook_is_valid_small_and_without_widget_state(executed: nbformat.NotebookNode) -> None:
    nbformat.validate(executed)
    assert "widgets" not in executed.metadata
    text = json.dumps(executed)
    assert "widget-view" not in text
    assert "_esm" not in text
    cards = [o for c in executed.cells if c.source.startswith("%%subagent") for o in c.outputs]
    assert len(cards) == 4
    for card in cards:
        assert sorted(card.data) == ["text/html", "text/plain"]
        assert len(json.dumps(card)) < 5_000
    assert [card.data["text/plain"].split()[2].rstrip(":") for card in cards] == [
        "complete", "complete", "stopped", "complete",
    ]  # fmt: skip
