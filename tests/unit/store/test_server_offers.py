"""What a server offered last: each project's own, for the same words may start another program elsewhere."""

from __future__ import annotations

from pathlib import Path

from subagents_nb.domain.agents.mcp_servers import AllowedFiles, McpServer
from subagents_nb.domain.mcp.offered import McpOffer
from subagents_nb.store.server_offers import ServerOffers


def test_no_project_speaks_for_the_server_of_another_or_of_the_person(tmp_path: Path) -> None:
    mine = McpServer(name="files", command="python", args=("server.py",))
    one, other = (
        mine.model_copy(update={"source": "project", "allowed": AllowedFiles(project=project)})
        for project in ("/w/one", "/w/other")
    )
    offers = {server.name: McpOffer.of("files", {"read": (place, {})}, "") for place, server in (("1", one),)}
    kept = ServerOffers(tmp_path)
    kept.keep(one, offers["files"])
    assert kept.last(one) == offers["files"]
    assert kept.last(other) is None and kept.last(mine) is None
    changed = one.model_copy(update={"allowed": AllowedFiles(project="/w/one", way="..", files={"server.py": "1"})})
    assert kept.last(changed) == offers["files"], "what it offers is compared also where its files are others by now"
