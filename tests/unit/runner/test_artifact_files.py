from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from subagents_nb.runner.workspace import artifact_files as artifacts
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter
from subagents_nb.store.files.disk import DISK

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", 30, 20) + b"rest"
TABLE = b"PAR1 what stands between PAR1"


@pytest.fixture
def keeper(tmp_path: Path) -> ArtifactWriter:
    (tmp_path / "run").mkdir()
    (tmp_path / "work").mkdir()
    return ArtifactWriter(tmp_path / "run", DISK)


def test_figures_are_numbered_and_measured(keeper: ArtifactWriter, tmp_path: Path) -> None:
    first, second = keeper.figure(0, PNG), keeper.figure(3, PNG)
    assert first is not None and second is not None
    assert (first.name, first.path, first.shape, first.step) == ("fig1", "artifacts/0-fig-1.png", (20, 30), 0)
    assert (second.name, second.path, second.step) == ("fig2", "artifacts/3-fig-2.png", 3)
    assert (tmp_path / "run" / first.path).read_bytes() == PNG
    assert first.sha256 == hashlib.sha256(PNG).hexdigest()


def test_a_table_is_taken_from_the_kernels_folder(keeper: ArtifactWriter, tmp_path: Path) -> None:
    (tmp_path / "1.parquet").write_bytes(TABLE)
    kept = keeper.table(0, tmp_path, {"file": "1.parquet", "shape": [2, 3]})
    assert kept is not None and (kept.name, kept.shape, kept.kind) == ("table1", (2, 3), "table")
    assert not (tmp_path / "1.parquet").exists()


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"file": "../../plan.json"},
        {"file": "/etc/passwd"},
        {"file": 3},
        {"file": "2.parquet"},
        {"file": "3.parquet"},
        {"file": "4.parquet"},
    ],
)
def test_the_kernels_word_about_a_table_is_checked(keeper: ArtifactWriter, tmp_path: Path, told: dict) -> None:
    (tmp_path / "3.parquet").write_bytes(b"no table")
    (tmp_path / "secret").write_bytes(TABLE)
    (tmp_path / "4.parquet").symlink_to(tmp_path / "secret")
    assert keeper.table(0, tmp_path, told) is None
    assert not (tmp_path / "run/artifacts").exists()


def test_a_file_keeps_its_place_in_the_workspace_as_its_name(keeper: ArtifactWriter, tmp_path: Path) -> None:
    place = tmp_path / "work/out/<b>a b.csv"
    place.parent.mkdir()
    place.write_text("a,b\n")
    kept = keeper.file(1, tmp_path / "work", "out/<b>a b.csv")
    assert kept is not None
    assert (kept.name, kept.workspace, kept.media_type) == ("out/<b>a b.csv", "out/<b>a b.csv", "text/csv")
    assert kept.path == "artifacts/1-file-1-_b_a_b.csv"


def test_a_file_that_is_kept_again_by_its_step_takes_the_place_of_what_it_was(
    keeper: ArtifactWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MOST", 2)
    monkeypatch.setattr(artifacts, "MOST_BYTES", 20)
    work = tmp_path / "work"
    for text in ("version 1", "version two"):
        (work / "a.csv").write_text(text)
        kept = keeper.file(0, work, "a.csv")
        assert kept is not None and kept.path == "artifacts/0-file-1-a.csv"
        assert (tmp_path / "run" / kept.path).read_text() == text
    assert (keeper.has(work, "a.csv"), keeper.has(tmp_path, "a.csv")) == (True, False)
    other = keeper.file(1, work, "a.csv")
    assert other is None, "of another step it is another artifact, for which there is no room here"
    (work / "a.csv").write_text("short")
    assert keeper.file(0, work, "a.csv") is not None
    other = keeper.file(1, work, "a.csv")
    assert other is not None and other.path == "artifacts/1-file-2-a.csv"


def test_a_link_is_no_artifact(keeper: ArtifactWriter, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "work/link").symlink_to(tmp_path / "secret")
    assert keeper.file(0, tmp_path / "work", "link") is None


def test_a_name_that_is_no_text_is_no_artifact(keeper: ArtifactWriter, tmp_path: Path) -> None:
    (tmp_path / "work" / "\udcff.csv").write_text("a")
    assert keeper.file(0, tmp_path / "work", "\udcff.csv") is None


def test_a_file_that_says_it_has_terabytes_is_not_read_through(keeper: ArtifactWriter, tmp_path: Path) -> None:
    with (tmp_path / "work" / "sparse").open("wb") as file:
        file.truncate(10**12)
    assert keeper.file(0, tmp_path / "work", "sparse") is None


def test_a_secret_is_no_artifact(keeper: ArtifactWriter, tmp_path: Path) -> None:
    (tmp_path / "work" / "new.p12").write_bytes(b"key")
    assert keeper.file(0, tmp_path / "work", "new.p12") is None


def test_what_is_too_large_is_named_and_stays_where_it_is(
    keeper: ArtifactWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MOST_FILE_BYTES", 3)
    (tmp_path / "work/big.bin").write_bytes(b"1234")
    kept = keeper.file(0, tmp_path / "work", "big.bin")
    assert kept is not None and (kept.path, kept.workspace, kept.size) == ("", "big.bin", 4)
    assert kept.sha256 == hashlib.sha256(b"1234").hexdigest()


def test_a_run_may_have_so_many_artifacts_and_no_more(
    keeper: ArtifactWriter, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(artifacts, "MOST", 2)
    assert [keeper.figure(0, PNG) is None for _ in range(3)] == [False, False, True]
    assert "as many artifacts as it may have" in capsys.readouterr().err
