"""Agents of installed packages: found among installed files, without a line of the package's code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from subagents_nb.catalog import discover, resolve
from subagents_nb.catalog.scopes.packages import package_paths

AGENT = "---\nname: {name}\ndescription: {description}\n---\nYou work."


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    def install(self, project: str, value: str, agents: dict[str, str], *, sources: Path | None = None) -> Path:
        about = self.folder / f"{project}-1.0.dist-info"
        about.mkdir()
        (about / "entry_points.txt").write_text(
            f"[console_scripts]\nx = y:z\n\n[subagents_nb.agents]\nmine = {value}\n"
        )
        if sources is not None:
            noted = {"url": sources.as_uri(), "dir_info": {"editable": True}}
            (about / "direct_url.json").write_text(json.dumps(noted))
        package = (sources / "src" if sources else self.folder) / value.replace(":", ".").replace(".", "/")
        package.mkdir(parents=True)
        (package.parent / "__init__.py").write_text("raise SystemExit('imported')")
        for name, description in agents.items():
            (package / f"{name}.md").write_text(AGENT.format(name=name, description=description))
        os.utime(self.folder, ns=(0, len(list(self.folder.iterdir()))))  # an installer changes the folder, some time
        return package


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    found = Site(tmp_path / "lib" / "site-packages")
    monkeypatch.setattr(sys, "path", [*sys.path, str(found.folder)])
    return found


def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "work").mkdir(parents=True)
    return tmp_path / "home"


@pytest.mark.parametrize("value", ["labtools.agents", "labtools:agents"])
def test_a_package_brings_agents_between_the_built_in_ones_and_the_persons(
    site: Site, tmp_path: Path, value: str
) -> None:
    site.install("labtools", value, {"scout": "of the lab", "titrator": "Titrates."})
    top = home(tmp_path)
    catalog = discover(top / "work", home=top)
    found = resolve("titrator", catalog)
    assert (found.source, found.where) == ("package", "labtools:labtools/agents/titrator.md")
    assert resolve("scout", catalog).description == "of the lab"
    assert ("package:scout", "builtin:scout") in catalog.shadowed
    (top / ".agents").mkdir()
    (top / ".agents" / "scout.md").write_text(AGENT.format(name="scout", description="mine"))
    assert resolve("scout", discover(top / "work", home=top)).description == "mine"
    assert "labtools" not in sys.modules


def test_what_is_installed_and_taken_away_is_seen_at_once(site: Site) -> None:
    site.install("one", "one.agents", {"a": "d"})
    assert [place.where for place in package_paths()] == ["one:one/agents"]
    site.install("a_first", "first.agents", {"b": "d"})
    assert [place.where for place in package_paths()] == ["a-first:first/agents", "one:one/agents"]


def test_an_editable_installation_is_read_where_its_sources_lie(site: Site, tmp_path: Path) -> None:
    package = site.install("labtools", "labtools.agents", {"titrator": "d"}, sources=tmp_path / "checkout")
    (place,) = package_paths()
    assert place.path == package
    assert package.is_relative_to(tmp_path / "checkout")


def test_a_folder_that_only_lies_on_the_path_brings_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Site(tmp_path / "project").install("evil", "evil.agents", {"scout": "d"})
    monkeypatch.setattr(sys, "path", [str(tmp_path / "project"), *sys.path])
    assert package_paths() == ()


@pytest.mark.parametrize("value", ["../../etc", "lab tools.agents", "", "labtools..agents"])
def test_what_names_no_folder_of_a_package_is_left_out(site: Site, value: str) -> None:
    about = site.folder / "odd-1.0.dist-info"
    about.mkdir()
    (about / "entry_points.txt").write_text(f"[subagents_nb.agents]\nmine = {value}\n")
    assert package_paths() == ()


def test_a_folder_that_is_not_there_is_told_as_absent(site: Site, tmp_path: Path) -> None:
    (site.install("labtools", "labtools.agents", {})).rmdir()
    top = home(tmp_path)
    places = discover(top / "work", home=top).places
    assert [(place.where, place.state) for place in places if place.source == "package"] == [
        ("labtools:labtools/agents", "absent")
    ]
