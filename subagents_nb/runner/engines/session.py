"""The history file of a step: replaced whole, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

SESSION_FILE = "session.json"


def save_session(step_dir: Path, content: bytes) -> None:
    """Replace the step's history file. A reader sees the old or the new one, never a part.

    Raises:
        OSError: the file could not be written; the old one stands.
    """
    temporary = step_dir / f".{SESSION_FILE}.{secrets.token_hex(4)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(step_dir / SESSION_FILE)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
