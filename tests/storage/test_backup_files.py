"""The file of a backup: whole, or no backup."""

import os
import subprocess
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.storage.backup.archive import (
    Manifest,
    UnfinishedBackup,
    open_backup,
    write_manifest,
    writing_backup,
)
from holdfast.storage.errors import BackupError
from holdfast.storage.schema import HEAD, LAST_COMMIT_FOR_OLDER

KEYS = ("bm90IGEgc2VjcmV0LCBmb3IgdGVzdHMgYWxvbmUgISE=", "YW5vdGhlciBvbmUsIGZvciB0ZXN0cyBhbG9uZSAhISE=")
MOMENT = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
DUMP = os.urandom(3000)


def manifest(schema: str = HEAD) -> bytes:
    return write_manifest(Manifest("0.1.0", MOMENT, schema, "18.4", {"units": 3}))


def fill(file: UnfinishedBackup, about: bytes, dump: bytes = DUMP) -> None:
    file.add(dump[:1000])
    file.add(dump[1000:])
    file.complete("".join(f"{key}\n" for key in KEYS).encode(), about, MOMENT.timestamp())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "made.backup"
    with writing_backup(target, replace=False) as file:
        fill(file, manifest())
    return target


def refusal(path: Path) -> str:
    with pytest.raises(BackupError) as refused, open_backup(path):
        pass
    return str(refused.value)


def test_what_was_written_is_read(path: Path) -> None:
    with open_backup(path) as backup:
        assert b"".join(backup.chunks()) == DUMP
    assert (backup.keys, backup.dump_bytes) == (KEYS, len(DUMP))
    assert backup.manifest == Manifest("0.1.0", MOMENT, HEAD, "18.4", {"units": 3})


def test_nobody_else_may_read_it(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_can_be_opened_and_checked_without_holdfast(path: Path, tmp_path: Path) -> None:
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "holdfast-backup"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)
    assert (folder / "database.dump").read_bytes() == DUMP


@pytest.mark.parametrize("kept", [512, 513, 2000, 3500, 4096, 5000, -1025])
def test_a_file_that_breaks_off_is_refused(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    assert "damaged or not whole" in refusal(path)


def test_a_changed_byte_is_found_wherever_it_is(path: Path) -> None:
    """But in the padding, where nothing stands, and in what headers say of times and owners."""
    whole = path.read_bytes()
    with tarfile.open(path) as archive:
        parts = [(part.offset_data, part.size) for part in archive]
    assert len(parts) == 4
    for start, size in parts:
        for at in (start, start + size // 2, start + size - 1):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert "damaged or not whole" in refusal(path)


@pytest.mark.parametrize("contents", [b"", b"x", b"PGDMP" + bytes(2000), bytes(4096)])
def test_another_file_is_no_backup(tmp_path: Path, contents: bytes) -> None:
    other = tmp_path / "other"
    other.write_bytes(contents)
    assert "is not a backup made by `holdfast backup`" in refusal(other)


def test_another_tar_file_is_no_backup(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tar"
    with tarfile.open(other, "w") as archive:
        archive.add(path, "some/file")
    assert "is not a backup" in refusal(other)


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nothing")
    assert "Is a directory" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("about", "told"),
    [
        (manifest(schema="9999"), "use the release that made it, or a newer"),
        (manifest(schema="0011"), f"with the commit {LAST_COMMIT_FOR_OLDER} first"),
        (manifest().replace(b'"format": 1', b'"format": 2'), "in a newer format"),
        (b"{}", "manifest of the backup cannot be read"),
    ],
)
def test_what_another_release_made_is_refused(tmp_path: Path, about: bytes, told: str) -> None:
    with writing_backup(tmp_path / "newer", replace=False) as file:
        fill(file, about)
    assert told in refusal(tmp_path / "newer")


def test_a_file_that_is_there_is_never_replaced_unasked(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(BackupError, match="--force"), writing_backup(path, replace=False):
        pass
    assert path.read_bytes() == before


def test_a_file_that_comes_meanwhile_is_not_replaced_either(tmp_path: Path) -> None:
    target = tmp_path / "made"

    def write() -> None:
        with writing_backup(target, replace=False) as file:
            fill(file, manifest())
            target.write_text("somebody else's")

    with pytest.raises(BackupError, match="--force"):
        write()
    assert [entry.name for entry in tmp_path.iterdir()] == ["made"]
    assert target.read_text() == "somebody else's"


def test_a_file_is_replaced_when_the_new_one_is_whole(path: Path) -> None:
    before = path.read_bytes()

    def begin() -> None:
        with writing_backup(path, replace=True) as file:
            file.add(b"some of it")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        begin()
    assert path.read_bytes() == before
    with writing_backup(path, replace=True) as file:
        fill(file, manifest(), dump=b"another one")
    with open_backup(path) as backup:
        assert b"".join(backup.chunks()) == b"another one"
    assert len(list(path.parent.iterdir())) == 1


@pytest.mark.parametrize(
    ("place", "told"),
    [(lambda folder: folder, "is a directory"), (lambda folder: folder / "no" / "file", "no directory")],
)
def test_a_place_where_no_file_can_be_is_refused(
    tmp_path: Path, place: Callable[[Path], Path], told: str
) -> None:
    with pytest.raises(BackupError, match=told), writing_backup(place(tmp_path), replace=True):
        pass


def test_what_is_not_complete_looks_like_no_backup(tmp_path: Path) -> None:
    """As a crash leaves it."""
    with writing_backup(tmp_path / "made", replace=False) as file:
        file.add(DUMP)
        file._file.flush()
        (draft,) = tmp_path.iterdir()
        assert draft.name.endswith(".unfinished")
        assert "is not a backup" in refusal(draft)
        fill(file, manifest(), dump=b"")
