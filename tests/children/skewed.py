"""Runs whose wall clock jumps while they work: skewed.py SECONDS|epoch|zone|summer|winter TIMES. Prints the ids.

The clock is the standard library's: `time.time`, `time.time_ns` and `datetime.now` are moved before anything of the
package is loaded. The launcher and a judge that looks without pause see the same jump as the runner.
"""

from __future__ import annotations

import datetime
import os
import sys
import threading
import time

import pydantic  # noqa: F401 - knows the true datetime

_offset = 0.0
_time, _time_ns = time.time, time.time_ns


class _Skewed(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
        return _true.now(tz) + datetime.timedelta(seconds=_offset)


_true = datetime.datetime
datetime.datetime = _Skewed  # type: ignore[misc]
time.time = lambda: _time() + _offset
time.time_ns = lambda: _time_ns() + int(_offset * 1e9)

sys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))

from crash.lives import a_plan, exit_code, fork, live  # noqa: E402
from support import script  # noqa: E402

from subagents_nb.store import open_home  # noqa: E402
from subagents_nb.store.clock import utc_now  # noqa: E402
from subagents_nb.supervisor.warm.reconcile import reconcile  # noqa: E402


def go_by(zone: str) -> None:
    os.environ["TZ"] = zone
    time.tzset()


def summer_time(begins: bool) -> str:
    """Return a zone whose clocks were put forward, or back, an hour a moment ago."""

    def at(moment: float, ahead: int) -> str:
        when = time.gmtime(_time() + moment)
        return f"{when.tm_yday - 1}/{when.tm_hour + ahead}:{when.tm_min:02}:{when.tm_sec:02}"

    first, last = (-1, 86_400) if begins else (-86_400, -1)
    return f"AAA0BBB,{at(first, 0)},{at(last, 1)}"  # its end is told by the clock that goes ahead


def jump(what: str, after_s: float) -> None:
    """Move the clock once, a little later."""

    def move() -> None:
        global _offset
        if what == "zone":
            go_by("Europe/Berlin")
        elif what in ("summer", "winter"):
            go_by(summer_time(what == "summer"))
        else:
            _offset = -_time() if what == "epoch" else float(what)

    timer = threading.Timer(after_s, move)
    timer.daemon = True
    timer.start()


def main(what: str, times: int) -> None:
    home = open_home()
    model = script(
        f"work{os.getpid()}", {"text": "one "}, {"sleep": 0.06}, {"tool": "read", "result": "x"}, {"text": "two"}
    )
    for number in range(times):
        global _offset
        _offset = 0.0
        go_by(summer_time(True) if what == "winter" else "UTC0")
        plan = a_plan(number, model=model, created_at=utc_now())
        after_s = 0.09 * number / times

        def work() -> int:
            jump(what, after_s)  # noqa: B023
            return live(home, plan)  # noqa: B023

        pid = fork(work)
        jump(what, after_s)
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if home.run(plan.run_id).status.exists():
                assert reconcile(home, [plan.run_id]) == [], "judged a live run"
        assert reconcile(home, [plan.run_id]) == []
        assert exit_code(pid) == 0
        print(plan.run_id)


main(sys.argv[1], int(sys.argv[2]))
