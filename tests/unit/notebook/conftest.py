"""Makes the samples of this room importable: tests run in importlib mode, which adds no folder by itself."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
