"""Two processes sweep the same dead run, or stop the same live one, at the same moment: one verdict, one outcome."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from crash.counting import times
from crash.lives import a_plan, made, settings
from support import CHILDREN, until

from subagents_nb import Run, launch
from subagents_nb.domain.runs.records import Identity
from subagents_nb.domain.runs.states import RunState
from subagents_nb.launching.starting.start_run import first_status
from subagents_nb.store import FileRuns, StoreHome
from subagents_nb.supervisor.processes.identity import identify

Case = Callable[..., None]
SWEEPS = times(16, 400)
STOPS = times(5, 100)
AT_ONCE = 10


class Judges:
    """Two processes that are told the same thing at once."""

    def __init__(self, what: str) -> None:
        command = [sys.executable, str(CHILDREN / "judge.py"), what]
        self._both = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        assert [self._answer(one) for one in self._both] == ["ready", "ready"]

    def judge(self, run_id: str) -> list[int]:
        for one in self._both:
            assert one.stdin is not None
            one.stdin.write(f"{run_id}\n")
        for one in self._both:
            assert one.stdin is not None
            one.stdin.flush()
        return [int(self._answer(one)) for one in self._both]

    def close(self) -> None:
        for one in self._both:
            one.communicate(timeout=10)

    @staticmethod
    def _answer(one: subprocess.Popen[str]) -> str:
        assert one.stdout is not None
        return one.stdout.readline().strip()


@contextlib.contextmanager
def judges(what: str) -> Iterator[Judges]:
    both = Judges(what)
    try:
        yield both
    finally:
        both.close()


def dead() -> Identity:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return identify(process.pid, "f" * 32)


@pytest.mark.row(14, cases=SWEEPS)
@pytest.mark.timeout(300)
def test_of_two_sweeps_of_a_dead_run_one_gives_the_verdict(store_home: StoreHome, case: Case) -> None:
    who = dead()
    with judges("sweep") as both:
        for number in range(SWEEPS):
            plan = a_plan(number)
            writer = made(store_home, plan)
            status = first_status(plan, runner=who).model_copy(update={"state": RunState.RUNNING})
            writer.status(status, milestone=False)
            assert sorted(both.judge(plan.run_id)) == [0, 1], f"round {number}"
            snapshot = FileRuns(store_home).snapshot(plan.run_id, whole=True)
            assert (snapshot.state, snapshot.damage, snapshot.result) == (RunState.LOST, (), None)
            case()


@pytest.mark.row(14, cases=STOPS)
@pytest.mark.timeout(600)
def test_two_stops_of_one_run_have_one_outcome(
    shared_home: StoreHome, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    settings(live=AT_ONCE + 2)
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", "warm")
    launch(model="scripted:echo", task="the supervisor is up").result(60)
    with judges("stop") as both:
        left = STOPS
        while left:
            begun = [launch(task="x", model="scripted:slow") for _ in range(min(AT_ONCE, left))]
            left -= len(begun)
            until(lambda begun=begun: all(run.state is RunState.RUNNING for run in begun), 20)
            for run in begun:
                asked = both.judge(run.id)
                assert 1 in asked
                assert run.wait(6)
                expect_one_outcome(run, sum(asked))
                case()


def expect_one_outcome(run: Run, asked: int) -> None:
    snapshot = FileRuns(run.home).snapshot(run.id, whole=True)
    assert (snapshot.state, snapshot.reason, snapshot.verdict) == (RunState.STOPPED, "stopped", None)
    answers = [json.loads(path.read_bytes())["outcome"] for path in run.home.run(run.id).answers.glob("*.json")]
    assert len(answers) <= asked
    assert set(answers) <= {"accepted", "too-late"} and "accepted" in answers

    def ends() -> list[str]:
        return [event["type"] for event in run.events() if event["type"] in ("stop-requested", "run-ended")]

    until(lambda: "run-ended" in ends(), 5, what="the line behind the result")
    assert ends() == ["stop-requested", "run-ended"]
