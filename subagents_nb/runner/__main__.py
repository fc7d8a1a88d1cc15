"""The runner as a fresh interpreter: `python -m subagents_nb.runner RUN_DIRECTORY`, its launcher at standard input."""

from __future__ import annotations

import gc
import os
import sys

# Collecting while importing costs a third of the time of a start.
gc.disable()


def main() -> None:
    from pathlib import Path

    code = 70
    try:
        os.umask(0o077)
        channel = os.dup(0)
        for handle in filter(None, os.environ.pop("SUBAGENTS_NB_PLACE", "").split(",")):
            os.set_inheritable(int(handle), False)  # held until we end, and by nobody whom we start
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        from subagents_nb.runner.main import run

        gc.freeze()
        gc.enable()
        code = run(Path(sys.argv[1]), channel=channel)
    except BaseException:  # noqa: BLE001 - whatever it was, it is written down and the process ends
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
