"""The file of a backup, opened and checked from its first byte to its last."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from holdfast.settings import parse_encryption_keys
from holdfast.storage.backups.manifest import Manifest, read_manifest
from holdfast.storage.backups.writing import (
    BLOCK,
    CHECKSUMS,
    DUMP,
    FOLDER,
    KEYS,
    MANIFEST,
    checksum_lines,
)
from holdfast.storage.refused import BackupRefused
from holdfast.storage.schema import HEAD, is_known

CHUNK = 1 << 20
# Of the parts that are read whole. Keys and counts take a few hundred bytes.
_LARGEST_SMALL_PART = 1 << 20


class Backup(NamedTuple):
    manifest: Manifest
    keys: tuple[str, ...]
    dump_bytes: int
    dump: IO[bytes]
    """From its start, once; whoever reads it is done before the file is closed."""

    def chunks(self) -> Iterator[bytes]:
        while chunk := self.dump.read(CHUNK):
            yield chunk


@contextmanager
def opened_backup(path: Path, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[Backup]:
    """``on_bytes``: how much of the dump has been checked so far."""
    with _file(path) as file, _archive(path, file) as archive:
        yield _checked(path, archive, on_bytes)


@contextmanager
def _file(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = path.open("rb")
    except OSError as failure:
        raise BackupRefused(f"{path} cannot be read ({failure.strerror or failure}).") from None
    with file:
        _refuse_foreign(path, file.read(BLOCK))
        file.seek(0)
        yield file


def _refuse_foreign(path: Path, start: bytes) -> None:
    if not start.startswith(f"{FOLDER}/{DUMP}".encode() + b"\0"):
        raise BackupRefused(f"{path} is not a backup made by `holdfast backup`.")


@contextmanager
def _archive(path: Path, file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    try:
        archive = tarfile.TarFile(fileobj=file)
    except tarfile.TarError:
        raise _damaged(path) from None
    with archive:
        yield archive


def _checked(path: Path, archive: tarfile.TarFile, on_bytes: Callable[[int], None]) -> Backup:
    try:
        small = {name: _small_part(archive, name) for name in (CHECKSUMS, MANIFEST, KEYS)}
        sums = _sums_of(archive, small, on_bytes)
    except (KeyError, OSError, tarfile.TarError):
        raise _damaged(path) from None
    if checksum_lines(sums) != small[CHECKSUMS]:
        raise _damaged(path)
    manifest = read_manifest(small[MANIFEST])
    _refuse_newer(manifest)
    return Backup(manifest, _keys_in(small[KEYS]), _size(archive), _part(archive, DUMP))


def _refuse_newer(manifest: Manifest) -> None:
    if not is_known(manifest.schema):
        raise BackupRefused(
            f"The backup has the schema {manifest.schema}, but this release of Holdfast knows it up to"
            f" {HEAD}; restore it with Holdfast {manifest.holdfast}, or a newer one."
        )


def _damaged(path: Path) -> BackupRefused:
    return BackupRefused(f"{path} is damaged or not whole; restore another backup, or copy it anew.")


def _part(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    part = archive.extractfile(f"{FOLDER}/{name}")
    if part is None:
        raise KeyError(name)
    return part


def _small_part(archive: tarfile.TarFile, name: str) -> bytes:
    return _part(archive, name).read(_LARGEST_SMALL_PART)


def _size(archive: tarfile.TarFile) -> int:
    return archive.getmember(f"{FOLDER}/{DUMP}").size


def _sums_of(
    archive: tarfile.TarFile, small: Mapping[str, bytes], on_bytes: Callable[[int], None]
) -> dict[str, str]:
    digest, dump, done = hashlib.sha256(), _part(archive, DUMP), 0
    while chunk := dump.read(CHUNK):
        digest.update(chunk)
        done += len(chunk)
        on_bytes(done)
    read = {name: hashlib.sha256(small[name]).hexdigest() for name in (KEYS, MANIFEST)}
    return {DUMP: digest.hexdigest(), **read}


def _keys_in(text: bytes) -> tuple[str, ...]:
    try:
        return parse_encryption_keys(",".join(text.decode("ascii").split()))
    except ValueError:
        raise BackupRefused("The encryption keys in the backup cannot be read.") from None
