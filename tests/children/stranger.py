"""A process that a run may have started: waits to be ended. Options: session, name (an odd one), deaf (to TERM)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

if "session" in sys.argv:
    os.setsid()
if "name" in sys.argv:
    ctypes.CDLL(None).prctl(15, b"na\xc3", 0, 0, 0)  # half a character, as where a long name is cut
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", os.getpid(), flush=True)
time.sleep(120)
