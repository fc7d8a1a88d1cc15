"""RESULTS.md: one section a command; writing one leaves the others as they are."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from subagents_nb.version import __version__

RESULTS = Path(__file__).with_name("RESULTS.md")
_TITLE = "# Measured"
_SECTION = re.compile(r"^## ", re.MULTILINE)


def where() -> str:
    """Say when, on what and how busy a machine this was."""
    day = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {load}"
    return f"{day}, subagents_nb {__version__} ({_commit()}), Python {platform.python_version()}, {system}"


def _commit() -> str:
    command = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "no commit"


def put_section(heading: str, text: str) -> None:
    """Put a section in place of the one with the same heading, or at the end."""
    old = RESULTS.read_text(encoding="utf-8") if RESULTS.is_file() else ""
    sections = dict(part.split("\n", 1) for part in _SECTION.split(old)[1:])
    sections[heading] = f"\n{text.strip()}\n\n"
    whole = "".join(f"## {name}\n{body.rstrip()}\n\n" for name, body in sections.items())
    RESULTS.write_text(f"{_TITLE}\n\n{whole.rstrip()}\n", encoding="utf-8")
