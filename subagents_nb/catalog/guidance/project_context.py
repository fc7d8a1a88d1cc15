"""The instructions a project keeps for agents in general."""

from __future__ import annotations

from pathlib import Path

from subagents_nb.store.files.opener import read_plain

MAX_BYTES = 32 * 1024
_NAMES = ("AGENTS.md", "CLAUDE.md")
_CUT = "\n\n[The rest of this file was left out.]"


def project_context(root: Path) -> str:
    """Return the text of AGENTS.md, else of CLAUDE.md, at the root of a project; empty when there is neither.

    At most 32 KiB, with a last line that says so when it was cut. A link that leads out of the project is not followed:
    a cloned repository must not send the user's other files to a model.
    """
    for name in _NAMES:
        text = _read(root, name)
        if text:
            return text
    return ""


def _read(root: Path, name: str) -> str:
    try:
        data = read_plain(root / name, MAX_BYTES, within=root)
    except OSError:
        return ""
    cut = len(data) > MAX_BYTES
    content = data[: MAX_BYTES - len(_CUT)] if cut else data
    # A character cut in two at the end is dropped; other stray bytes become replacement characters, which are longer.
    text = content.decode("utf-8-sig", "ignore" if cut else "replace").replace("\r\n", "\n").strip()
    text = text.encode()[:MAX_BYTES].decode("utf-8", "ignore")
    return text + _CUT if cut else text
