"""The Binder image: its files say what they must, and its build step works in a fresh environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from subagents_nb.local_model.weights import models_directory
from subagents_nb.version import __version__

ROOT = Path(__file__).parents[2]
BINDER = ROOT / "binder"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[a-z,]+\])?==\d+(?:\.\d+)*(?:\.?[a-z]+\d+)?\Z")
BADGE = re.compile(
    r"https://mybinder\.org/v2/gh/(?P<owner>[\w.-]+)/(?P<repo>[\w.-]+)/(?P<tag>[\w.-]+)"
    r"\?urlpath=lab/tree/(?P<path>[\w./-]+)"
)


def pinned() -> set[str]:
    lines = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [PIN.match(line) for line in lines if line and not line.startswith("#")]
    assert all(pins), f"not a pin: {lines}"
    return {pin["name"].lower() for pin in pins if pin}


def test_every_requirement_is_pinned_and_covers_the_package_and_the_lab() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["local"], "jupyterlab"]
    names = {match[0].lower() for text in needed if (match := NAME.match(text))}
    assert names <= pinned()


def test_the_runtime_is_a_python_the_package_supports() -> None:
    major, minor = re.fullmatch(r"python-(\d+)\.(\d+)", (BINDER / "runtime.txt").read_text().strip()).groups()  # type: ignore[union-attr]
    assert (int(major), int(minor)) >= (3, 11)


def test_the_overrides_are_json() -> None:
    assert isinstance(json.loads((BINDER / "overrides.json").read_text(encoding="utf-8")), dict)


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_a_script_is_executable_and_names_its_interpreter(name: str) -> None:
    assert os.access(BINDER / name, os.X_OK)
    assert (BINDER / name).read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
    subprocess.run(["bash", "-n", str(BINDER / name)], check=True)


def test_start_ends_by_becoming_the_command() -> None:
    assert (BINDER / "start").read_text(encoding="utf-8").rstrip().endswith('exec "$@"')


def test_both_scripts_mean_the_same_store() -> None:
    homes = {
        line
        for name in ("postBuild", "start")
        for line in (BINDER / name).read_text(encoding="utf-8").splitlines()
        if "SUBAGENTS_NB_HOME=" in line
    }
    assert homes == {'export SUBAGENTS_NB_HOME="$HOME/.subagents-nb"'}


def test_the_badges_open_every_notebook_at_the_tag_of_this_version() -> None:
    badges = list(BADGE.finditer((ROOT / "README.md").read_text(encoding="utf-8")))
    assert {badge["path"] for badge in badges} == {f"notebooks/{path.name}" for path in ROOT.glob("notebooks/*.ipynb")}
    assert {badge["tag"] for badge in badges} == {f"v{__version__}"}


@pytest.fixture(scope="module")
def environment() -> Iterator[Path]:
    """An environment with the pinned requirements and without the package: made once, and kept below `build/`."""
    venv, wanted = ROOT / "build" / "binder", (BINDER / "requirements.txt").read_text(encoding="utf-8")
    ready, overrides = venv / "ready", venv / "share" / "jupyter" / "lab" / "settings" / "overrides.json"
    uv = str(Path(sys.executable).with_name("uv"))  # it takes a quarter of pip's time for these hundred packages
    venv.parent.mkdir(exist_ok=True)
    with FileLock(venv.with_suffix(".lock")):
        if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
            run([uv, "venv", "--quiet", "--clear", "--seed", "--python", sys.executable, str(venv)])
            python = str(venv / "bin" / "python")
            run([uv, "pip", "install", "--quiet", "--python", python, "-r", str(BINDER / "requirements.txt")])
            ready.write_text(wanted, encoding="utf-8")
        run([uv, "pip", "uninstall", "--quiet", "--python", str(venv / "bin" / "python"), "subagents-nb"])
        overrides.unlink(missing_ok=True)
        yield venv


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, environment: Path) -> tuple[Path, dict[str, str]]:
    """Return a copy of the repository in which the build step ran, and the session's environment."""
    base = tmp_path_factory.mktemp("binder")
    repo, home = base / "repo", base / "home"
    left_out = shutil.ignore_patterns(".*cache", ".venv", ".git", ".hypothesis", "node_modules", "build", "__pycache__")
    shutil.copytree(ROOT, repo, ignore=left_out)
    home.mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("SUBAGENTS_NB", "PYTEST"))}
    environ |= {
        "HOME": str(home),
        "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
        # The weights are fetched once for all tests, into the user's cache.
        "SUBAGENTS_NB_MODELS": str(models_directory()),
        "SUBAGENTS_NB_SPAWN": "cold",
    }
    run(["binder/postBuild"], repo, environ)
    return repo, environ


def run(command: list[str], cwd: Path | None = None, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=environ, text=True, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.timeout(300)
def test_the_build_step_leaves_a_session_in_which_runs_work(built: tuple[Path, dict[str, str]]) -> None:
    repo, environ = built
    said = run([str(repo / "binder" / "start"), "subagents-nb", "list"], repo, environ)
    assert "sample one" in said
    assert "sample failure" in said
    start = str(repo / "binder" / "start")
    code = 'from subagents_nb import launch; print(launch("delegate", "Well?", model="scripted:echo").result(60))'
    assert run([start, "python", "-P", "-c", code], repo / "notebooks", environ).strip() == "Well?"


@pytest.mark.timeout(300)
def test_the_build_step_installs_the_widget_and_the_labs_settings(built: tuple[Path, dict[str, str]]) -> None:
    repo, environ = built
    code = (
        "import sys, pathlib, subagents_nb; from subagents_nb.notebook.page.assets import asset; "
        "assert pathlib.Path(sys.prefix) in pathlib.Path(subagents_nb.__file__).parents; asset('run.js'); "
        "print(pathlib.Path(sys.prefix, 'share/jupyter/lab/settings/overrides.json').read_text())"
    )
    shown = run(["python", "-P", "-c", code], repo / "notebooks", environ)
    assert json.loads(shown) == json.loads((repo / "binder" / "overrides.json").read_text(encoding="utf-8"))


@pytest.mark.timeout(300)
def test_without_the_embedded_model_the_notebooks_use_the_scripted_one(
    built: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    repo, environ = built
    copy = tmp_path / "repo"
    shutil.copytree(repo, copy)
    blocker = tmp_path / "no-directory"
    blocker.write_text("a file where the models' directory should be")
    # All is installed already, and the sample runs were made by the build before.
    installed = tmp_path / "bin" / "python"
    installed.parent.mkdir()
    installed.write_text('#!/bin/sh\n[ "$1 $2" = "-m pip" ] || [ "$*" = - ] || exec "$PYTHON" "$@"\n')
    installed.chmod(0o755)
    environ = {
        **environ,
        "PYTHON": str(shutil.which("python", path=environ["PATH"])),
        "PATH": f"{installed.parent}{os.pathsep}{environ['PATH']}",
        "SUBAGENTS_NB_MODELS": str(blocker),
        "HOME": str(tmp_path),
    }
    run(["binder/postBuild"], copy, environ)
    for notebook in (copy / "notebooks").glob("*.ipynb"):
        text = notebook.read_text(encoding="utf-8")
        assert "local:smollm2" not in text
        assert "scripted:" in text
