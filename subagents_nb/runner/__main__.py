"""The runner as a fresh interpreter: `python -m subagents_nb.runner RUN_DIRECTORY`, its launcher at standard input."""

from __future__ import annotations

import gc
import os
import sys

# Collecting while importing costs a third of the time of a start.
gc.disable()


_CWD = "SUBAGENTS_NB_CWD"


def _read_variables() -> None:
    """Take in the variables that nobody may read in /proc, and where to work, from the pipe that our starter writes."""
    import json

    number = os.environ.pop("SUBAGENTS_NB_ENVIRON", "")
    if number:
        with open(int(number), "rb") as pipe:
            message = json.loads(pipe.read())
        os.environ.update(message["environ"])
        os.environ[_CWD] = message["cwd"]


def main() -> None:
    from pathlib import Path

    from subagents_nb.prctl import keep_memory_private

    code = 70
    try:
        os.umask(0o077)
        keep_memory_private()
        _read_variables()
        channel = os.dup(0)
        places = tuple(map(int, filter(None, os.environ.pop("SUBAGENTS_NB_PLACE", "").split(","))))
        for handle in places:
            os.set_inheritable(handle, False)  # held until we end, and by nobody whom we start
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        from subagents_nb.runner.main import run

        os.chdir(os.environ.pop(_CWD, "."))  # only now: a file of the workspace must not stand in for a module
        gc.freeze()
        gc.enable()
        code = run(Path(sys.argv[1]), channel=channel, places=places)
    except BaseException:  # noqa: BLE001 - whatever it was, it is written down and the process ends
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
