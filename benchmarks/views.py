"""What live views cost: processor time of the kernel and of the page, as a part of one core, in one sitting.

Run it with `python -m benchmarks.views`; it needs jupyterlab, playwright and chromium, as the tests do. The machine may
be busy: what is counted is the time that the processes used, not the time that passed. The goals are those of 12 views,
each with ten lines a second: kernel below 5 %, page below 15 %.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

_TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(_TESTS / "widgets"), str(_TESTS)]

VIEWS, LINES_A_SECOND, SECONDS = 12, 10, 20.0
LINE = "a line of what an agent says while it works, as long as lines often are\n"


def main() -> None:
    from jupyterlab_page import FLAGS, Lab
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        lab = Lab(Path(tempfile.mkdtemp(prefix="views-")), browser)
        try:
            for figure in measured(lab):
                print(figure)
        finally:
            lab.close()
            browser.close()


def measured(lab: Any) -> list[str]:
    """Return the figures: with idle views' page first, then while all stream."""
    steps: list[dict[str, Any]] = [{"text": LINE}, {"sleep": 1 / LINES_A_SECOND}] * round(90 * LINES_A_SECOND)
    (lab.work / "talks.json").write_text(json.dumps(steps))
    cells = [f"%%subagent delegate --model scripted:talks.json --name talks-{n}\nx" for n in range(VIEWS)]
    book = lab.open("views", ["%load_ext subagents_nb", "import os\nopen('pid', 'w').write(str(os.getpid()))", *cells])
    book.run(0, 1)
    kernel = psutil.Process(int((lab.work / "pid").read_text()))
    page = max(_children("--type=renderer"), key=_cpu_s)
    others = [one for one in _children("--type=") if one.pid != page.pid]
    idle = _sample(kernel, page, others)
    book.run(*range(2, 2 + VIEWS))
    deadline = time.monotonic() + 60
    while lab.page.locator(".sa[data-moving=true]").count() < VIEWS and time.monotonic() < deadline:
        lab.page.wait_for_timeout(500)
    shown = lab.page.locator(".sa[data-moving=true]").count()
    busy = _sample(kernel, page, others)
    lab.page.emulate_media(reduced_motion="reduce")
    still = _sample(kernel, page, others)
    return [
        f"{shown} views at work, {LINES_A_SECOND} lines a second each, {SECONDS:g} s; percent of one core",
        *(
            f"{what}: kernel {a:.1f} %, page {b:.1f} %, rest of the browser {c:.1f} %"
            for what, (a, b, c) in {"no view": idle, "views": busy, "views, reduced motion": still}.items()
        ),
    ]


def _sample(kernel: psutil.Process, page: psutil.Process, others: list[psutil.Process]) -> tuple[float, float, float]:
    def used() -> list[float]:
        return [_cpu_s(kernel), _cpu_s(page), sum(_cpu_s(one) for one in others if one.is_running())]

    before, began = used(), time.monotonic()
    time.sleep(SECONDS)
    passed = time.monotonic() - began
    kernel_s, page_s, rest_s = (100 * (b - a) / passed for a, b in zip(before, used(), strict=True))
    return kernel_s, page_s, rest_s


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _children(words: str) -> list[psutil.Process]:
    ours = psutil.Process().children(recursive=True)
    return [one for one in ours if any(words in word for word in one.cmdline())]


if __name__ == "__main__":
    main()
