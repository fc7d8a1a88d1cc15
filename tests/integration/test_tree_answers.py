"""Questions of a whole tree, answered at its root from wherever a person sits."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from support import until
from trees import agent, to

from subagents_nb import Run, attach
from subagents_nb.cli import main
from subagents_nb.errors import RequestError
from subagents_nb.notebook.views.page_requests import PageRequests
from subagents_nb.store import StoreHome

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(sys.platform != "linux", reason="a supervisor's sockets")]

KERNEL = """
import sys
from subagents_nb import launch, parallel, step
run = launch(parallel(step("lead", "x"), step("asker", "y"), concurrency=2))
print(run.id, flush=True)
for line in sys.stdin:
    question, text = line.split()
    run.answer(text, question=question)
    print("answered", flush=True)
"""


def on_the_page(run: Run, question: str, text: str) -> None:
    told: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    PageRequests(run).on_message({"kind": "answer", "question": question, "text": text}, told.put)
    said = told.get(timeout=20)
    if not said["ok"]:
        raise RequestError(said["text"])


def in_a_terminal(run: Run, question: str, text: str) -> None:
    if main(["answer", run.id, "--question", question, "--", text]) != 0:
        raise RequestError("the terminal said no")


def in_python(run: Run, question: str, text: str) -> None:
    run.answer(text, question=question)


def test_a_parent_and_three_children_get_each_its_answer_once_though_the_kernel_is_killed(
    shared_home: StoreHome,
) -> None:
    agent("lead", to("leaf", "a", "b", "c"), agents="leaf")
    agent("leaf", {"ask": "Leaf?"})
    agent("asker", {"ask": "Root?"})
    command = [sys.executable, "-c", KERNEL]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as kernel:
        assert kernel.stdin is not None and kernel.stdout is not None
        run = attach(kernel.stdout.readline().strip())
        until(lambda: len(run.questions) == 4, 60, what="four questions")
        (own,) = (one.question_id for one in run.questions if "/" not in one.question_id)
        kernel.stdin.write("leaf-3/q1 three\n")
        kernel.stdin.flush()
        assert kernel.stdout.readline() == "answered\n"
        os.kill(kernel.pid, signal.SIGKILL)
    ways: list[tuple[str, str, Callable[[Run, str, str], None]]] = [
        ("leaf-2/q1", "two", on_the_page),
        ("leaf/q1", "one", in_a_terminal),
        (own, "zero", in_python),
    ]
    for question, text, way in ways:
        way(run, question, text)
        for again in (on_the_page, in_a_terminal, in_python):
            with pytest.raises(RequestError):
                again(run, question, "late")
    assert run.wait(60)
    assert [step.text for step in run.steps] == ["one\ntwo\nthree", "zero"]
    tree = [run, *(Run(shared_home, row.run_id) for row in run.status.tree)]
    replies = [path for one in tree for path in shared_home.run(one.id).questions.glob("*.reply.json")]
    assert len(replies) == 4
