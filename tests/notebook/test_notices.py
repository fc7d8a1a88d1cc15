"""Runs that end unseen are told with the next cell that the person runs, and with no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kernels import Kernel, display_id_of
from support import until

from subagents_nb.store import FileRuns

WHY = "__import__('subagents_nb.notebook.views.notices', fromlist=['x']).NOTICES.suppressed"


def launch(kernel: Kernel, script: str, name: str, *flags: str) -> None:
    kernel.ok(f"%%subagent --model scripted:{script} --name {name} -o work -q {' '.join(flags)}\nx")


def ended_unseen(kernel: Kernel, script: str, name: str, state: str) -> None:
    launch(kernel, script, name)
    until(lambda: kernel.state(name) == state)


def news_of(kernel: Kernel, code: str = "'mine'") -> str:
    """Run a cell of the person's and return what it was told before its own output."""
    cell = kernel.ok(code)
    assert cell.shown[-1]["text/plain"] == code
    return "\n".join(bundle["text/plain"] for bundle in cell.shown[:-1])


def told(kernel: Kernel, name: str) -> str:
    """Return the first news of a run: the kernel hears of it a moment after the files say it."""
    return until(lambda: news if name in (news := news_of(kernel)) else "", what=f"news of {name}")


def test_a_run_that_ended_unseen_is_told_with_the_next_cell_and_once(kernel: Kernel) -> None:
    ended_unseen(kernel, "echo", "unseen", "complete")
    assert told(kernel, "unseen") == "Meanwhile:\n  unseen (delegate) complete: x"
    assert news_of(kernel) == ""
    assert kernel.value(WHY) == {kernel.run_id("unseen"): "already-told"}


def test_a_failure_is_told_with_what_to_do(kernel: Kernel) -> None:
    ended_unseen(kernel, "fail", "fails-unseen", "failed")
    news = told(kernel, "fails-unseen")
    assert "fails-unseen (delegate) failed: The scripted model failed, as its script says." in news
    html = [m["content"]["data"]["text/html"] for m in kernel.log if "Runs, meanwhile" in str(m["content"])]
    assert f"%subagent_resume {kernel.run_id('fails-unseen')} -- …" in html[-1]


def test_nothing_is_told_while_a_cell_runs_nor_in_a_strangers_cell(kernel: Kernel) -> None:
    request = kernel.send(
        "%subagent --model scripted:echo --name quick -q -- x\n"
        "import time, subagents_nb\n"
        "while not subagents_nb.attach('quick').status.ended: time.sleep(0.01)\n"
        "time.sleep(0.4)"
    )
    cell = kernel.finish(request)
    assert (cell.shown, cell.stdout, cell.error) == ([], "", "")
    kernel.drain(0.3)
    assert not [m for m in kernel.log if m["msg_type"] in ("display_data", "stream")]
    # A program's cell is not the person's: it is told nothing, and the person is told all the same what comes later.
    assert kernel.ok("'theirs'", cell_id=None).plain == "'theirs'"
    until(lambda: kernel.value(WHY).get(kernel.run_id("quick")) == "no-person")
    assert news_of(kernel) == ""


def test_what_was_shown_or_waited_for_is_not_told_and_the_reason_is_kept(kernel: Kernel) -> None:
    shown = kernel.ok("%%subagent --model scripted:echo --name on-the-page\nx")
    kernel.until(lambda: kernel.updates_of(display_id_of(shown)), what="the card")
    launch(kernel, "echo", "waited-with", "--wait")
    launch(kernel, "slow", "waited-by-magic")
    kernel.ok("work.stop()")
    kernel.ok("%subagent_wait waited-by-magic")
    launch(kernel, "echo", "looked-at")
    until(lambda: kernel.state("looked-at") == "complete")
    kernel.ok("%subagent_attach looked-at")
    names = {
        "on-the-page": "shown-live",
        "waited-with": "asked-for",
        "waited-by-magic": "asked-for",
        "looked-at": "asked-for",
    }
    assert kernel.value(WHY) == {kernel.run_id(name): why for name, why in names.items()}
    assert news_of(kernel) == ""


PYTHON = "from subagents_nb import launch\n{name} = launch(task='x', model='scripted:{script}', name='{name}')"


def test_what_python_launched_is_told_like_what_a_magic_did(kernel: Kernel) -> None:
    kernel.ok(PYTHON.format(name="from_python", script="fail"))
    assert "from_python (delegate) failed" in told(kernel, "from_python")
    kernel.ok("again = from_python.launch_again()")
    assert "from_python (delegate) failed" in told(kernel, "from_python")


@pytest.mark.parametrize(("name", "wait"), [("aw", "await {name}"), ("wt", "{name}.wait()"), ("rs", "{name}.result()")])
def test_what_code_waited_for_is_not_told_again(kernel: Kernel, name: str, wait: str) -> None:
    launch(kernel, "echo", f"quiet-{name}")
    kernel.ok("await work")
    kernel.ok(PYTHON.format(name=name, script="echo") + f"\nheld = {wait.format(name=name)}")
    kernel.drain(0.3)
    assert news_of(kernel) == ""
    ours = {kernel.run_id(f"quiet-{name}"), kernel.run_id(name)}
    assert {run: why for run, why in kernel.value(WHY).items() if run in ours} == dict.fromkeys(ours, "asked-for")


def test_a_quiet_run_that_asks_is_told_with_how_to_answer(kernel: Kernel) -> None:
    launch(kernel, "ask", "asks-unseen")
    assert told(kernel, "asks-unseen") == (
        "Meanwhile:\n  asks-unseen (delegate) asks you: “Go on?” (yes / no)"
        " · answer with %subagent_answer asks-unseen -- …"
    )
    kernel.ok("%subagent_answer asks-unseen -- yes")
    assert "complete: The answer was: yes" in told(kernel, "asks-unseen")


def test_notices_can_be_turned_off(kernel: Kernel) -> None:
    kernel.ok("%config SubagentMagics.notices = False")
    try:
        ended_unseen(kernel, "fail", "not-told", "failed")
        until(lambda: kernel.value(WHY) == {kernel.run_id("not-told"): "turned-off"})
        assert news_of(kernel) == ""
    finally:
        kernel.ok("%config SubagentMagics.notices = True")
    assert news_of(kernel) == ""


@pytest.fixture
def hooked(kernel: Kernel) -> Iterator[Kernel]:
    """A kernel whose hook is taken away at the end."""
    yield kernel
    kernel.ok("%config SubagentMagics.on_end = None")


def test_a_function_of_the_persons_is_called_with_each_run_that_ended(hooked: Kernel) -> None:
    hooked.ok("ends = []\ndef mine(run): ends.append([run.name, str(run.state)])")
    hooked.ok("%config SubagentMagics.on_end = mine")
    shown = hooked.ok("%%subagent --model scripted:echo --name hooked-one\nx")
    launch(hooked, "fail", "hooked-two")
    until(lambda: sorted(hooked.value("ends")) == [["hooked-one", "complete"], ["hooked-two", "failed"]])
    assert display_id_of(shown)


def test_a_failing_function_disturbs_no_cell_and_is_told_of_once(hooked: Kernel) -> None:
    hooked.ok("def mine(run): raise RuntimeError('no network')")
    hooked.ok("%config SubagentMagics.on_end = mine")
    launch(hooked, "fail", "hook-fails")
    news = told(hooked, "Your on_end function failed")
    assert "Your on_end function failed: RuntimeError: no network" in news
    assert news_of(hooked) == ""
    launch(hooked, "echo", "after-the-fault")
    until(lambda: hooked.state("after-the-fault") == "complete")
    hooked.drain(0.2)
    assert not [m for m in hooked.log if m["msg_type"] in ("error",) or m["content"].get("name") == "stderr"]


def test_what_is_no_function_is_refused(hooked: Kernel) -> None:
    assert "expected a callable" in hooked.run("%config SubagentMagics.on_end = 7").error


def test_a_run_that_goes_on_from_another_is_told_too(kernel: Kernel) -> None:
    launch(kernel, "echo", "source", "--wait")
    kernel.ok("%subagent_resume source --name resumed-unseen -q -- more")
    assert "[2 earlier] more" in told(kernel, "resumed-unseen")
    kernel.ok("%subagent_again source -q")
    assert "source (delegate) complete: x" in told(kernel, "source")
    assert len([s for s in FileRuns(kernel.home).all() if s.name == "resumed-unseen"]) == 1


def test_after_a_reload_nothing_old_is_told_and_the_new_is(kernel: Kernel) -> None:
    ended_unseen(kernel, "fail", "before-the-reload", "failed")
    kernel.ok("%reload_ext subagents_nb", cell_id=None)
    assert news_of(kernel) == ""
    ended_unseen(kernel, "fail", "after-the-reload", "failed")
    assert "after-the-reload" in told(kernel, "after-the-reload")
