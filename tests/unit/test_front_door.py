"""The package as a stranger meets it: its names, what importing it costs, how long its modules are, and its wheel."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

import subagents_nb
from subagents_nb.above import above
from subagents_nb.errors import unchanged
from subagents_nb.version import __version__

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "subagents_nb"
MODULES = sorted(PACKAGE.rglob("*.py"))

FRONT_DOOR = {
    "Cases",
    "Preflight",
    "Run",
    "Runs",
    "agents",
    "attach",
    "board",
    "chain",
    "compare",
    "create_agent",
    "diff",
    "disable_agent",
    "eject_agent",
    "enable_agent",
    "expand",
    "export",
    "frame",
    "launch",
    "load_ipython_extension",
    "on_event",
    "parallel",
    "preflight",
    "refinement",
    "register_agent",
    "retry",
    "runs",
    "score",
    "settings",
    "step",
    "sweep",
    "trust",
    "unload_ipython_extension",
    "validate_agents",
}
HEAVY = ("IPython", "anywidget", "ipywidgets", "openai", "psutil", "pydantic", "pydantic_ai", "watchfiles", "asyncio")

# Runs in an interpreter of its own, which reports every act that an import must not do.
WITNESS = """
import json, os, sys
acts = []
def hear(event, args):
    if event == "open" and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        acts.append(f"open {args[0]}")
    if event in ("_thread.start_new_thread", "os.mkdir", "subprocess.Popen", "os.fork", "socket.connect"):
        acts.append(event)
sys.addaudithook(hear)
before = set(sys.modules)
import subagents_nb
print(json.dumps({"acts": acts, "modules": sorted(set(sys.modules) - before)}))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return what a fresh interpreter did and loaded when it imported the package."""
    place = tmp_path_factory.mktemp("import")
    environ = {**os.environ, "HOME": str(place), "SUBAGENTS_NB_HOME": str(place / "store")}
    command = [sys.executable, "-B", "-P", "-c", WITNESS]
    done = subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, check=True)
    assert list(place.iterdir()) == []
    seen: dict[str, list[str]] = json.loads(done.stdout)
    return seen


def test_the_names_of_the_front_door_are_these_and_no_others() -> None:
    assert set(subagents_nb.__all__) == FRONT_DOOR
    assert sorted(subagents_nb.__all__) == dir(subagents_nb)


@pytest.mark.parametrize("name", sorted(FRONT_DOOR))
def test_every_name_is_there_and_explains_itself(name: str) -> None:
    assert (getattr(subagents_nb, name).__doc__ or "").strip()


def test_a_name_that_is_not_there_is_an_attribute_error_that_says_it() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lunch'"):
        _ = subagents_nb.lunch


def test_what_an_upgrade_took_away_is_told_in_one_line(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "subagents_nb", ignore=shutil.ignore_patterns("__pycache__"))
    code = "import shutil, subagents_nb as s; s.launch; shutil.rmtree(s.__path__[0] + '/experiments'); s.frame"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-P", "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert "installed anew or removed" in done.stderr.splitlines()[-1] and "Restart the kernel" in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "domain.agents.guarded", "local_model.serve", "runner", "runner.engines.kernel.kernel_child",
        "runner.engines.kernel.preload", "runner.engines.tools.searcher", "supervisor.host", "supervisor.shim",
        "supervisor.warm.takeover",
    ],
)  # fmt: skip
def test_what_processes_of_an_earlier_installation_start_by_its_name_stays_where_it_is(name: str) -> None:
    assert importlib.util.find_spec(f"subagents_nb.{name}") is not None


def test_a_module_of_others_that_is_not_there_is_told_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'nonsense'"), unchanged():
        importlib.import_module("nonsense")


@pytest.mark.parametrize("name", sorted(subagents_nb._ABOVE))
def test_what_a_layer_calls_of_one_above_it_is_there(name: str) -> None:
    assert above(name).__name__ == name


def test_importing_loads_nothing_heavy(imported: dict[str, list[str]]) -> None:
    tops = {name.partition(".")[0] for name in imported["modules"]}
    assert tops.isdisjoint(HEAVY)


def test_importing_loads_no_room_of_ours(imported: dict[str, list[str]]) -> None:
    ours = [name for name in imported["modules"] if name.startswith("subagents_nb")]
    assert ours == ["subagents_nb", "subagents_nb.above", "subagents_nb.version"]


def test_importing_starts_and_writes_nothing(imported: dict[str, list[str]]) -> None:
    assert imported["acts"] == []


def test_using_a_name_starts_no_thread() -> None:
    before = threading.active_count()
    for name in FRONT_DOOR:
        getattr(subagents_nb, name)
    assert threading.active_count() == before


def test_each_module_fits_in_one_sitting_and_says_what_it_is() -> None:
    for path in MODULES:
        text, name = path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).as_posix()
        assert text.count("\n") < 400, name
        assert text.startswith('"""'), name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return a wheel of this checkout. Where the environment has the build backend, no network is needed."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(ROOT)]
    if importlib.util.find_spec("hatchling") is not None:
        command.append("--no-build-isolation")
    done = subprocess.run(command, cwd=target, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (built,) = target.glob("*.whl")
    assert built.name.startswith(f"subagents_nb-{__version__}-")
    return zipfile.ZipFile(built)


def test_the_wheel_carries_every_module_and_every_builtin_agent(wheel: zipfile.ZipFile) -> None:
    agents = sorted((PACKAGE / "catalog" / "builtin").glob("*.md"))
    assert len(agents) >= 4
    expected = {path.relative_to(ROOT).as_posix() for path in (*MODULES, *agents, PACKAGE / "py.typed")}
    assert expected <= set(wheel.namelist())


def test_the_wheel_carries_the_assets_of_every_widget(wheel: zipfile.ZipFile) -> None:
    pages = [path for path in MODULES if path.is_relative_to(PACKAGE / "notebook")]  # others name scripts of strangers
    named = {name for path in pages for name in re.findall(r'"(\w+\.(?:js|css))"', path.read_text(encoding="utf-8"))}
    assert {"run.js", "run.css"} <= named
    for name in named:
        assert wheel.read(f"subagents_nb/static/{name}") == (ROOT / "widgets" / name).read_bytes()


def test_the_wheel_carries_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"subagents_nb", f"subagents_nb-{__version__}.dist-info"}
    endings = {Path(name).suffix for name in wheel.namelist() if name.startswith("subagents_nb/")}
    assert endings == {".py", ".md", ".js", ".css", ".typed"}


def test_the_wheel_brings_the_command_and_the_extras(wheel: zipfile.ZipFile) -> None:
    info = f"subagents_nb-{__version__}.dist-info"
    assert "subagents-nb = subagents_nb.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    metadata = wheel.read(f"{info}/METADATA").decode()
    assert "Provides-Extra: local" in metadata
    assert "pydantic-ai-slim[openai]" in metadata
