"""What MCP servers offered last, by their definitions: so that other tools, or other texts of them, are asked about.

    mcp/<definition>.json     the definition as a hash: its tools, as hashes and as texts without secrets

What a project defines is that project's: the same words in another one may start another program.

Written by the runner of whoever used the server last, whole each time.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.mcp.offered import McpOffer
from subagents_nb.domain.values.base import sha256_text, stable_json
from subagents_nb.errors import Unreadable
from subagents_nb.store.files.disk import DISK, PRIVATE_DIR


class ServerOffers:
    """The offers that are kept in one store."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "mcp"

    def last(self, server: McpServer) -> McpOffer | None:
        """Return what a server offered last; None if nobody noted it."""
        try:
            return McpOffer.model_validate_json(DISK.read(self._place(server)))
        except (Unreadable, OSError, ValueError):
            return None

    def keep(self, server: McpServer, offer: McpOffer) -> None:
        """Note what a server offers; where that fails, it counts as new the next time."""
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                self._folder.mkdir(mode=PRIVATE_DIR, parents=True)
            DISK.replace(self._place(server), offer.model_dump_json().encode(), durable=False)

    def _place(self, server: McpServer) -> Path:
        whose = {"project": server.allowed.project} if server.allowed is not None else {}
        return self._folder / f"{sha256_text(stable_json(server.contract() | whose))}.json"
