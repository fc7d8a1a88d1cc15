"""What can be said to a run that works: steer, answer, interrupt and go on, change its limits. From cells and pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel, display_id_of
from support import until

from subagents_nb.launching import Run
from subagents_nb.store import FileRuns

Start = Callable[..., Kernel]


def begin(kernel: Kernel, script: str, name: str, *flags: str, show: bool = False) -> str:
    """Launch a run and return the display id of its view, if it is shown."""
    how = " ".join([*flags, "" if show else "-q"])
    cell = kernel.ok(f"%%subagent --model scripted:{script} --name {name} -o work {how}\nx")
    until(lambda: kernel.state(name) != "queued", 20, what="the beginning of the run")
    return display_id_of(cell) if show else ""


def handle(kernel: Kernel, name: str) -> Run:
    return Run(kernel.home, kernel.run_id(name))


def heard(kernel: Kernel, name: str, text: str) -> None:
    until(lambda: text in FileRuns(kernel.home).snapshot(kernel.run_id(name)).tail, what=f"{text!r} in what it writes")


def asks(kernel: Kernel, name: str) -> None:
    until(lambda: FileRuns(kernel.home).snapshot(kernel.run_id(name)).questions, what="the question")


def test_what_is_said_to_a_run_is_delivered_and_the_cell_shows_one_line(kernel: Kernel) -> None:
    begin(kernel, "steerable", "steered")
    heard(kernel, "steered", "tick 1")
    cell = kernel.ok("%subagent_steer steered -- Look at region, too?")
    assert (cell.plain, cell.stdout) == ("The agent was told.", "")
    heard(kernel, "steered", "heard: Look at region, too?\n")
    kernel.ok("%%subagent_steer work\n{k: v} -- as it is\n  $HOME")
    heard(kernel, "steered", "heard: {k: v} -- as it is\n  $HOME\n")
    kernel.ok("said = %subagent_steer work -- finish")
    assert kernel.value("said.outcome") == "delivered"
    until(lambda: kernel.state("steered") == "complete")
    assert "complete already; there is nothing to steer" in kernel.fails("%subagent_steer work -- more")


def test_a_follow_up_waits_for_the_end_of_the_turn(kernel: Kernel) -> None:
    begin(kernel, "steerable", "followed-up")
    assert kernel.ok("%subagent_steer work --follow-up -- And then?").plain == (
        "Waiting; the agent is told when its turn is over."
    )
    kernel.ok("%subagent_steer work -- finish")
    assert "And then?" in kernel.value("work.result(20)")


def test_a_question_is_answered_from_a_cell(kernel: Kernel) -> None:
    begin(kernel, "ask", "asked")
    asks(kernel, "asked")
    listed = kernel.ok("%subagent_status --state live").plain
    assert listed.startswith("1 asks you · 1 live")
    assert "asks you  asked" in listed
    assert "“Go on?”" in listed
    assert kernel.ok("%subagent_answer asked -- yes").plain == "asked: answered: Go on?"
    assert kernel.value("work.result(20)") == "The answer was: yes"
    late = kernel.fails("%subagent_answer asked -- no")
    assert "is complete already; nobody waits for an answer. q1 was answered already, from" in late


def test_of_several_questions_one_is_named(kernel: Kernel) -> None:
    (kernel.work / "twice.json").write_text(json.dumps([{"ask": "First?"}, {"ask": "Second?"}]))
    begin(kernel, "twice.json", "asks-twice")
    asks(kernel, "asks-twice")
    assert "no open question q7" in kernel.fails("%subagent_answer work --question q7 -- yes")
    kernel.ok("%%subagent_answer work --question q1\none\nand another line")
    until(lambda: [q.text for q in handle(kernel, "asks-twice").questions] == ["Second?"], what="the second")
    kernel.ok("%subagent_answer work -- two")
    assert "one\nand another line" in kernel.value("work.result(20)")


def test_a_second_kernel_answers_and_the_first_one_sees_it(new_kernel: Start) -> None:
    first, second = new_kernel(), new_kernel()
    first.ok("%%subagent --model scripted:ask --name asked-here -o work\nx")
    asks(first, "asked-here")
    comm = first.comm_of("asked-here")
    shown = second.ok("%subagent_attach asked-here")
    assert "asks you" in shown.html and "“Go on?” (yes / no)" in shown.html
    assert second.ok("%subagent_answer asked-here -- no").plain == "asked-here: answered: Go on?"
    assert first.value("work.result(20)") == "The answer was: no"
    # The page of the first one is told that it comes too late.
    first.say(comm, {"kind": "answer", "question": "q1", "text": "yes"})
    first.drain()


def test_the_page_answers_and_is_told_so(kernel: Kernel) -> None:
    begin(kernel, "ask", "asked-on-the-page", show=True)
    comm = kernel.comm_of("asked-on-the-page")

    def open_questions() -> list[Any]:
        return [t["questions"] for t in kernel.told(comm) if "questions" in t]

    kernel.until(
        lambda: [{"id": "q1", "text": "Go on?", "choices": ["yes", "no"]}] in open_questions(), what="the question"
    )
    kernel.say(comm, {"kind": "answer", "question": "q9", "text": "yes"})
    kernel.until(lambda: any(not t.get("ok", True) for t in kernel.told(comm)), what="the refusal")
    assert "no open question q9" in next(t["text"] for t in kernel.told(comm) if not t.get("ok", True))
    kernel.say(comm, {"kind": "answer", "question": "q1", "text": "yes, on the page"})
    until(lambda: kernel.state("asked-on-the-page") == "complete")
    kernel.until(lambda: "Answered." in [t.get("text") for t in kernel.told(comm)], what="the acknowledgement")
    assert kernel.value("work.output") == "The answer was: yes, on the page"
    said = "".join(m["content"]["text"] for m in kernel.log if m["msg_type"] == "stream")
    assert all(line.startswith("=>") for line in said.splitlines())
    assert not [m for m in kernel.log if m["msg_type"] == "error"]


def test_what_a_page_sends_arrives_though_a_second_tab_came_and_went(kernel: Kernel) -> None:
    begin(kernel, "slow", "two-tabs", show=True)
    comm = kernel.comm_of("two-tabs")
    tab = kernel.control("create_subshell")["subshell_id"]
    # The tab is the last that sent anything when the view is told more; then its subshell is deleted.
    kernel.say("a-comm-of-its-own", {}, subshell=tab)
    kernel.log.clear()
    kernel.until(lambda: len(kernel.told(comm)) > 2, what="more on the page")
    kernel.control("delete_subshell", subshell_id=tab)
    kernel.say(comm, {"kind": "stop"})
    until(lambda: kernel.state("two-tabs") == "stopped", 10, what="the stop")


def test_the_page_steers_and_is_told_twice_while_the_kernel_stays_free(kernel: Kernel) -> None:
    begin(kernel, "steerable", "steered-on-the-page", show=True)
    heard(kernel, "steered-on-the-page", "tick 1")
    comm = kernel.comm_of("steered-on-the-page")
    kernel.say(comm, {"kind": "steer", "text": "look here"})
    kernel.until(lambda: len([t for t in kernel.told(comm) if t.get("kind") == "ack"]) == 2, what="both words")
    assert [t["text"] for t in kernel.told(comm) if t.get("kind") == "ack"] == [
        "Sent; waiting for the receipt.", "The agent was told.",
    ]  # fmt: skip
    heard(kernel, "steered-on-the-page", "heard: look here\n")


def test_a_card_of_a_host_without_widgets_shows_the_question(kernel: Kernel) -> None:
    cell = kernel.ok("%%subagent --model scripted:ask --name asked-by-card -o work\nx", cell_id=None)
    place = display_id_of(cell)
    kernel.until(lambda: any("Go on?" in c["text/html"] for c in kernel.updates_of(place)), what="the question")
    assert f"%subagent_answer {kernel.run_id('asked-by-card')} -- …" in kernel.updates_of(place)[-1]["text/html"]
    kernel.ok("%subagent_answer asked-by-card -- yes")


def test_an_interrupted_run_says_how_it_goes_on_and_does(kernel: Kernel) -> None:
    begin(kernel, "slow", "paused-for-now")
    heard(kernel, "paused-for-now", "tick 2")
    shown = kernel.ok("%subagent_interrupt work --reason 'lunch'")
    assert "paused-for-now (delegate) paused: Interrupted on request from a cell: lunch." in shown.plain
    card = shown.shown[-1]["text/html"]
    assert f"%subagent_resume {kernel.run_id('paused-for-now')} -- …" in card
    assert "Its session is kept: resume it to go on." in card
    resumed = kernel.ok("%subagent_resume work --name went-on -o more -q -- Go on, please?")
    assert resumed.shown == []
    assert kernel.value("[more.name, more.plan.steps[0].task]") == ["went-on", "Go on, please?"]
    heard(kernel, "went-on", "tick 1")
    kernel.ok("%subagent_interrupt went-on")
    assert (
        f"goes on from paused-for-now ({kernel.run_id('paused-for-now')})" in kernel.ok("more").shown[-1]["text/html"]
    )


def test_a_resumed_run_is_shown_once_knows_its_past_and_keeps_its_type(kernel: Kernel) -> None:
    kernel.ok("from pydantic import BaseModel\nclass Found(BaseModel):\n    n: int")
    kernel.ok("%%subagent --model scripted:echo -q --wait --name said-once --schema Found\nfirst")
    cell = kernel.ok("%%subagent_resume said-once --timeout 60s --max-requests 7 -o more\nsecond,\nverbatim {x}")
    assert len([m for m in cell.messages if m["msg_type"] in ("display_data", "execute_result")]) == 1
    assert kernel.value("type(more.result(20)) is Found")
    plan = kernel.value("[more.plan.timeout_s, more.plan.steps[0].max_requests, more.plan.steps[0].task]")
    assert plan == [60.0, 7, "second,\nverbatim {x}\n"]
    assert kernel.value("[more.plan.origin.surface, more.plan.origin.cell_id]") == ["magic", "the-cell"]


def test_resume_waits_and_fails_the_cell_as_a_launch_does(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo -q --wait --name to-wait-for\nfirst")
    cell = kernel.ok("%subagent_resume to-wait-for --wait -q --name waited-for-it -- second")
    assert cell.shown == []
    assert kernel.state("waited-for-it") == "complete"
    kernel.run("%%subagent --model scripted:fail -q --wait --name fails-twice\nx")
    assert kernel.fails("%subagent_resume fails-twice --wait -- again").startswith("RunFailed: Run delegate-")


@pytest.mark.parametrize(
    ("script", "end", "said"),
    [("slow", "work.stop(); work.wait()", "was stopped"), ("slow", "", "is still running; steer it instead")],
)
def test_what_can_not_be_gone_on_from_says_why(kernel: Kernel, script: str, end: str, said: str) -> None:
    begin(kernel, script, f"not-gone-on-from-{len(end)}")
    kernel.ok(end)
    assert said in kernel.fails("%subagent_resume work -- go on")


def test_a_stopped_run_is_started_again_by_its_plan(kernel: Kernel) -> None:
    begin(kernel, "slow", "stopped-once")
    shown = kernel.ok("%subagent_stop work").shown[-1]["text/html"]
    assert "start over:" in shown
    assert f"%subagent_again {kernel.run_id('stopped-once')}" in shown
    kernel.ok("%subagent_again work -o second -q")
    assert kernel.value("[second.id != work.id, second.plan.digest == work.plan.digest]") == [True, True]
    until(lambda: Run(kernel.home, kernel.value("second.id")).state == "running")


def test_new_limits_are_recorded_shown_and_in_force(kernel: Kernel) -> None:
    begin(kernel, "steerable", "retuned", show=True)
    comm = kernel.comm_of("retuned")
    said = kernel.ok("%subagent_retune work --timeout 2h --max-requests 80 --tool-timeout 90s").plain
    assert said == "retuned: retuned: timeout 2h, max requests 80, tool timeout 90s"
    kernel.until(
        lambda: 7200.0 in [t.get("deadline_s") for t in kernel.told(comm)], what="the new deadline on the page"
    )
    assert "refused: the run has worked for" in kernel.fails("%subagent_retune work --timeout 1ms")
    kernel.ok("%subagent_steer work -- finish")
    kernel.ok("work.wait(20)")
    card = kernel.ok("work").shown[-1]["text/html"]
    assert "limits changed: timeout 2 h, requests 80, tool timeout 1.5 min (a cell, " in card


def test_a_drained_run_finishes_what_it_is_doing(kernel: Kernel) -> None:
    begin(kernel, "steerable", "drained")
    heard(kernel, "drained", "tick 1")  # before its work began it would start nothing at all
    assert kernel.ok("%subagent_drain work").plain == "drained: draining: it finishes what runs and starts nothing new"
    assert kernel.value("work.status.status.draining")


def test_a_run_waits_for_its_turn_is_shown_so_and_can_be_stopped(new_kernel: Start) -> None:
    kernel = new_kernel()
    settings = kernel.user_home / ".subagents" / "settings.toml"
    settings.parent.mkdir()
    settings.write_text("max_live_runs = 1\n")
    begin(kernel, "slow", "has-the-place")
    cell = kernel.ok("%%subagent --model scripted:echo --name waits -o second\nx")
    kernel.until(lambda: kernel.state("waits") == "queued")
    assert "queued" in cell.html and "It waits for a free place." in cell.html
    opened = [m["content"]["data"]["state"] for m in kernel.log if m["msg_type"] == "comm_open"]
    assert "It waits for a free place." in [state.get("reason") for state in opened]
    assert "waits for a free place" in kernel.ok("%subagent_status").plain
    assert "--no-queue forbids to wait" in kernel.fails("%%subagent --model scripted:echo --no-queue\nx")
    kernel.ok("%config SubagentMagics.queue = False")
    assert "1 runs are live" in kernel.fails("%%subagent --model scripted:echo\nx")
    assert "waits (delegate) stopped" in kernel.ok("%subagent_stop waits").plain
    card = kernel.ok("second").shown[-1]["text/html"]
    assert "It waited for a free place and never began." in card
    assert "%subagent_again r-" in card
