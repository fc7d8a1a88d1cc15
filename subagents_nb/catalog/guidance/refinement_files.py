"""The refinements of agents: where they lie, and what stands in them."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from pathlib import Path

from subagents_nb.catalog.scan import scan_path
from subagents_nb.catalog.search_paths import SearchPath, project_search_paths
from subagents_nb.catalog.tool_lists import AGENT_NAME
from subagents_nb.catalog.trust import home_folder
from subagents_nb.domain.agents.acting import Acting
from subagents_nb.domain.agents.refinements import FOLDER, MOST_BYTES, Refinement, text_problem
from subagents_nb.domain.values.base import sha256_text
from subagents_nb.store.files.opener import read_plain

_MOST_READ = 4 * MOST_BYTES  # line ends of two bytes become one, so that half of it is too long still


def refinement_places(root: Path, *, home: Path | None = None, cwd: Path | None = None) -> tuple[SearchPath, ...]:
    """Return the person's folder, then the project's."""
    user = SearchPath(path=home_folder(home) / FOLDER, where=f"~/{FOLDER}", source="user")
    return (user, *project_search_paths((FOLDER,), root, home=home, cwd=cwd))


def read_refinements(root: Path, *, home: Path | None = None, cwd: Path | None = None) -> Iterator[Refinement]:
    """Yield what there is of each agent, the person's before the project's; what can't be used says why."""
    for place in refinement_places(root, home=home, cwd=cwd):
        scan = scan_path(place)
        for problem in scan.problems:
            if (name := _agent_of(problem.where, place)) is not None:
                yield _refinement(name, problem.where, place, problem=problem.error)
        for path, where in scan.files:
            if (name := _agent_of(where, place)) is not None:
                yield _read(name, path, where, place)


def _agent_of(where: str, place: SearchPath) -> str | None:
    name = where.removeprefix(f"{place.where}/").removesuffix(".md")
    return name if where.endswith(".md") and AGENT_NAME.match(name) else None


def _read(name: str, path: Path, where: str, place: SearchPath) -> Refinement:
    try:
        text = refinement_text(path, within=place.root)
    except OSError as error:
        return _refinement(name, where, place, problem=f"it can't be read: {error.strerror or error}")
    except ValueError:
        return _refinement(name, where, place, problem="it is no text in UTF-8")
    if (problem := text_problem(text)) is not None:
        return _refinement(name, where, place, problem=problem)
    acting = None
    if place.source == "project":
        does = (f"adds to the instructions of {name}",)
        acting = Acting(kind="refinement", name=name, does=does, files={where: sha256_text(text)})
    return _refinement(name, where, place, text=text, acting=acting)


def refinement_text(path: Path, *, within: Path | None = None) -> str:
    """Return what stands in the file of a refinement; of one that is far too long the beginning, too long itself.

    Raises:
        OSError: it can't be read.
        ValueError: it is no text.
    """
    data = read_plain(path, _MOST_READ, within=within)
    text = getincrementaldecoder("utf-8-sig")().decode(
        data, final=len(data) <= _MOST_READ
    )  # a cut may part a character
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refinement(name: str, where: str, place: SearchPath, **found: object) -> Refinement:
    return Refinement.model_validate({"agent": name, "where": where, "source": place.source, **found})
