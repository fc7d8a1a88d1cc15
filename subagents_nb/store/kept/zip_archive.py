"""Runs as one zip file, and back. Reading follows no link and believes nothing that the archive says of itself."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from subagents_nb.domain.kept import archives
from subagents_nb.domain.kept.archives import MANIFEST, ArchivedFile, ArchivedRun, Imported, Manifest
from subagents_nb.domain.plans.experiments import Score
from subagents_nb.domain.plans.plan import LaunchPlan
from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.records import RunResult, StepRecord
from subagents_nb.domain.texts.redaction import Redactor
from subagents_nb.domain.texts.transcript import executed_cells, notebook
from subagents_nb.domain.values.base import Document
from subagents_nb.errors import RequestError, StoreError, Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.codec import decode, encode, lenient_json
from subagents_nb.store.files.disk import DISK, MAX_DOCUMENT_BYTES, PRIVATE_DIR
from subagents_nb.store.files.opener import NotPlain, open_plain
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.runs.contracts import index_run
from subagents_nb.version import __version__

_CHUNK = 1 << 20
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_IMPORTED = "Imported from an archive."
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same runs give the same bytes


def write_archive(home: StoreHome, run_ids: Sequence[str], target: Path, *, project: Path, redact: Redactor) -> None:
    """Write runs that have ended into a new zip file that nobody else may read.

    Raises:
        RequestError: a run worked outside of the project, or the file is there already.
        StoreError: a run can't be read, or the file can't be written.
    """
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    if os.path.lexists(target):
        raise RequestError(f"{target.name} is there already; choose another name, or remove it.")
    try:
        handle = DISK.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR)
        with open(handle, "w+b") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            runs = tuple(_pack(home, run_id, archive, project, redact) for run_id in run_ids)
            manifest = Manifest(made_with=__version__, runs=runs)
            archive.writestr(_entry(MANIFEST), manifest.model_dump_json(indent=1))
        os.link(partial, target)
    except FileExistsError as error:
        raise RequestError(f"{target.name} is there already; choose another name, or remove it.") from error
    except OSError as error:
        raise StoreError(f"{target.name} can't be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def read_archive(home: StoreHome, source: Path, *, project: Path) -> tuple[list[str], list[str]]:
    """Take the runs of an archive in; return the ids of those that are new, and of those that were here already.

    Raises:
        RequestError: it is no archive of ours, or a trap; nothing of the run at fault and of those behind it was taken.
        StoreError: it can't be read, or the store can't be written.
    """
    try:
        with open_plain(source) as fd, open(fd, "rb", closefd=False) as file, zipfile.ZipFile(file) as archive:
            manifest = _manifest(archive, os.fstat(fd).st_size, source)
            taken: list[str] = []
            names: list[str] = []
            for run in manifest.runs:
                new = _take(home, archive, run, project, manifest.made_with)
                (taken if new else names).append(run.run_id)
            return taken, names
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise RequestError(f"{source.name} is no archive of runs, or a damaged one ({error}).") from error
    except NotPlain as error:
        raise RequestError(f"{source.name} is no file.") from error
    except OSError as error:
        raise StoreError(f"{source.name} can't be taken in: {error.strerror or error}.") from error


# --- out ---


def _pack(home: StoreHome, run_id: str, archive: zipfile.ZipFile, project: Path, redact: Redactor) -> ArchivedRun:
    root = home.run(run_id).root
    plan = _plan(home, run_id)
    cwd = _relative(plan.cwd, project)
    if cwd.startswith("..") and plan.origin.root is not None:  # below another run it may be a worktree of that one's
        cwd = _relative(_plan(home, plan.origin.root).cwd, project)
    if cwd.startswith(".."):
        raise RequestError(f"{plan.name} worked outside of {project.name or project}; name its project with --project.")
    files = []
    for path in sorted(_files(root)):
        data = _data(root, path, plan, redact)
        archive.writestr(_entry(f"runs/{run_id}/{path}"), data)
        files.append(ArchivedFile(path=path, bytes=len(data), sha256=hashlib.sha256(data).hexdigest()))
    return ArchivedRun(run_id=run_id, cwd=Path(cwd).as_posix(), files=tuple(files))


def _plan(home: StoreHome, run_id: str) -> LaunchPlan:
    try:
        return decode(DISK.read(home.run(run_id).plan), LaunchPlan, run_id)
    except Unreadable as error:
        raise StoreError(f"Run {run_id} can't be exported, since its plan can't be read: {error}.") from error


def _relative(cwd: str, project: Path) -> str:
    return os.path.relpath(os.path.realpath(cwd), os.path.realpath(project))


def _files(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        here = os.path.relpath(folder, root)
        folders[:] = [name for name in folders if here != "." or name in archives.FOLDERS]
        for name in names:
            path = name if here == "." else f"{Path(here).as_posix()}/{name}"
            if archives.may_be_archived(path) and not os.path.islink(os.path.join(folder, name)):
                yield path


def _data(root: Path, path: str, plan: LaunchPlan, redact: Redactor) -> bytes:
    if path == "plan.json":
        return encode(archives.packed(plan))
    try:
        with DISK.open_reading(root / path) as file:
            data = file.read()
    except Unreadable as error:
        raise StoreError(f"{path} of {plan.name} can't be exported: {error}.") from error
    if path.rpartition("/")[2] == "result.json":
        with contextlib.suppress(ValueError, RecursionError):
            data = lenient_json(archives.without_paths(json.loads(data)))
    # Artifacts and inputs go as they are: their hashes are recorded, and the contract binds the inputs.
    return data if path.startswith(("artifacts/", "inputs/")) else _redacted(path, data, redact)


def _redacted(path: str, data: bytes, redact: Redactor) -> bytes:
    """Take secrets out of what was said and printed. A file of JSON stays one, whatever a secret looks like."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data
    if redact(text) == text:
        return data
    lines = text.splitlines(keepends=True) if path.endswith(".jsonl") else [text]
    return b"".join(_redacted_text(line, redact) for line in lines)


def _redacted_text(text: str, redact: Redactor) -> bytes:
    with contextlib.suppress(ValueError, RecursionError):
        return lenient_json(redact.data(json.loads(text))) + (b"\n" if text.endswith("\n") else b"")
    return redact(text).encode("utf-8", "replace")


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _WHEN)
    # What may be all zeros stays as large as it is, or the archive would look like a trap.
    packs = name.endswith((".json", ".jsonl", ".txt", ".md"))
    info.compress_type = zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED
    info.external_attr = 0o600 << 16
    return info


# --- in ---


def _manifest(archive: zipfile.ZipFile, size: int, source: Path) -> Manifest:
    members = archive.infolist()
    if len(members) > archives.MAX_FILES:
        raise RequestError(f"{source.name} holds {len(members):,} files, more than {archives.MAX_FILES:,}.")
    if archives.duplicates(one.filename for one in members):
        raise RequestError(f"{source.name} holds two files of one name.")
    for one in members:
        mode = one.external_attr >> 16
        if one.is_dir() or one.flag_bits & 1 or (mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG)):
            raise RequestError(f"{source.name} holds something else than plain files: {one.filename[:80]!r}.")
        if one.compress_type not in _PACKINGS:  # others have errors of their own, and LZMA as much memory as it says
            raise RequestError(f"{source.name} is packed otherwise than our archives: {one.filename[:80]!r}.")
    sizes = {one.filename: one.file_size for one in members}
    if sizes.get(MANIFEST, archives.MAX_MANIFEST_BYTES + 1) > archives.MAX_MANIFEST_BYTES:
        raise RequestError(f"{source.name} is no archive of runs: it has no {MANIFEST} that can be read.")
    try:
        manifest = Manifest.model_validate_json(_read(archive, MANIFEST, sizes[MANIFEST]))
    except (ValidationError, ValueError) as error:
        raise RequestError(f"{source.name} is no archive of runs of this version: its {MANIFEST} is wrong.") from error
    if problems := archives.faults(manifest, sizes, size):
        raise RequestError(f"{source.name} is refused: {'; '.join(problems[:5])}.")
    return manifest


def _take(home: StoreHome, archive: zipfile.ZipFile, run: ArchivedRun, project: Path, made_with: str) -> bool:
    target = home.run(run.run_id).root
    if os.path.lexists(target):
        return False
    cwd = os.path.normpath(Path(os.path.abspath(project)) / run.cwd)
    staging = home.runs / f".import-{secrets.token_hex(8)}"
    staging.mkdir(mode=PRIVATE_DIR)
    try:
        plan = _unpack(archive, run, staging, cwd)
        note = Imported(run_id=run.run_id, imported_at=utc_now(), made_with=made_with[:40])
        _write(RunPaths(staging).imported, encode(note))
        index_run(home, plan)
        try:
            os.rename(staging, target)  # over a directory that is not empty it fails
        except OSError:
            if os.path.lexists(target):
                return False
            raise
        DISK.sync_dir(home.runs)
        return True
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack(archive: zipfile.ZipFile, run: ArchivedRun, staging: Path, cwd: str) -> LaunchPlan:
    plan: LaunchPlan | None = None
    ended = False
    for file in run.files:
        data = _read(archive, f"runs/{run.run_id}/{file.path}", file.bytes)
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise RequestError(f"{file.path} of {run.run_id} is not what the manifest says; nothing of it was taken.")
        try:
            document = _document(file.path, data, run.run_id)
            if (problem := archives.state_problem(document)) is not None:
                raise ValueError(problem)
            ended = ended or isinstance(document, RunResult | Verdict)
            if isinstance(document, LaunchPlan):
                document = plan = archives.unpacked(document, cwd)
            elif isinstance(document, RunResult):
                document = document.model_copy(update={"notes": (*document.notes, _IMPORTED)})
        except (Unreadable, ValueError) as error:
            raise RequestError(f"{file.path} of {run.run_id} is refused: {error}.") from error
        if document is not None:
            data = encode(document)
        elif file.path.endswith("/python.ipynb"):
            data = _harmless(data, run.run_id)
        _write(staging / file.path, data)
    if plan is None:
        raise RequestError(f"Run {run.run_id} of the archive has no plan; nothing of it was taken.")
    if not ended:
        raise RequestError(f"Nothing in the archive says how run {run.run_id} ended; nothing of it was taken.")
    return plan


def _harmless(data: bytes, run_id: str) -> bytes:
    """Return what an agent ran, as it may be opened: whoever made the archive may have put anything into it."""
    executed: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        executed = json.loads(data)
    return lenient_json(notebook(executed_cells(executed), run_id=run_id))


def _document(path: str, data: bytes, run_id: str) -> Document | None:
    """Read what is a record of ours; None for files that are only looked at."""
    kind: type[Any] | None = {"plan.json": LaunchPlan, "result.json": RunResult, "verdict.json": Verdict}.get(path)
    if kind is None and path.startswith("scores/"):
        kind = Score
    if kind is None and path.startswith("steps/") and path.endswith("/result.json"):
        kind = StepRecord
    if kind is None:
        return None
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ValueError("it is larger than any document of ours")
    document: Document = decode(data, kind, run_id)
    return document


def _read(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """Read one member, and no byte more than it claims to have."""
    parts, left = [], size + 1
    with archive.open(name) as member:
        while left > 0 and (piece := member.read(min(left, _CHUNK))):
            parts.append(piece)
            left -= len(piece)
    data = b"".join(parts)
    if len(data) != size:
        raise RequestError(f"{name[-80:]!r} has another size than the archive says; it is refused.")
    return data


def _write(path: Path, data: bytes) -> None:
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE_DIR)
    handle = DISK.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    try:
        DISK.write(handle, data)
        DISK.sync(handle)
    finally:
        os.close(handle)
