"""How soon the first launch of a fresh kernel asks its model, two seconds after `%load_ext`.

Run it with `python -m benchmarks.first`, with `cold` for the same without what is made ready meanwhile. Kernel, store
and supervisor are new each time. The goal is 80 ms from the beginning of the cell to the request.
"""

from __future__ import annotations

import statistics
import sys
import time

from benchmarks.kernel import Kernel
from benchmarks.places import sitting

TIMES, PAUSE_S = 5, 2.0
_LAUNCH = (
    'import time\nbegan = time.time()\nfrom subagents_nb import launch\nrun = launch("scout", "x", model="loop:m")'
)


def main(*, cold: bool) -> None:
    found = []
    for _ in range(TIMES):
        with sitting() as model:
            profile = model.root / "ipython" / "profile_default"
            profile.mkdir()
            (profile / "ipython_config.py").write_text(f"c.SubagentMagics.prewarm = {not cold}\n")
            kernel = Kernel(model.root, model.work)
            try:
                time.sleep(PAUSE_S)
                began = kernel.run(_LAUNCH, "began")
                kernel.run("run.wait(60)")
            finally:
                kernel.close()
            found.append(1000 * (next(iter(model.notes().values()))["came"] - began))
    spread = f"median {statistics.median(found):.0f} ms ({min(found):.0f} to {max(found):.0f}), n={TIMES}"
    print(f"{PAUSE_S:g} s after %load_ext, {'nothing' if cold else 'all'} made ready: {spread}")


if __name__ == "__main__":
    main(cold="cold" in sys.argv[1:])
