"""Put a bad runner in the place of the real one: with this folder on PYTHONPATH and the kind in BAD_RUNNER."""

from __future__ import annotations

import os
import sys

if sys.orig_argv[-3:-1] == ["-m", "subagents_nb.runner"] and os.environ.get("BAD_RUNNER"):
    script = os.path.join(os.path.dirname(os.path.dirname(__file__)), "bad_runner.py")
    os.execv(sys.executable, [sys.executable, script, os.environ["BAD_RUNNER"], sys.orig_argv[-1]])
