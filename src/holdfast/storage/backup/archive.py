"""What a backup says of itself."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from holdfast.domain.spelling import format_timestamp
from holdfast.settings import parse_encryption_keys
from holdfast.storage.errors import BackupError
from holdfast.storage.schema import unknown_reason

FORMAT = 1
"""One more whenever a release could not read what this one writes."""


class Manifest(NamedTuple):
    holdfast: str
    """The release that made it."""
    created_at: datetime
    """The moment that the backup shows, by the clock of the database."""
    schema: str
    postgresql: str
    counts: Mapping[str, int]
    """Rows of the tables that tell how much it is."""

    def document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "holdfast": self.holdfast,
            "createdAt": format_timestamp(self.created_at),
            "schema": self.schema,
            "postgresql": self.postgresql,
            "counts": dict(self.counts),
        }


def write_manifest(manifest: Manifest) -> bytes:
    return json.dumps(manifest.document(), indent=2).encode() + b"\n"


def read_manifest(text: bytes) -> Manifest:
    """Its checksum was right, so what cannot be read was written by another release."""
    try:
        found = json.loads(text)
        number = int(found["format"])
        if number > FORMAT:
            raise BackupError(
                f"The backup was made by Holdfast {found['holdfast']} in a newer format; restore it with that"
                " release, or a newer one."
            )
        return _manifest(found)
    except (KeyError, TypeError, ValueError):
        raise BackupError("The manifest of the backup cannot be read.") from None


def _manifest(found: Mapping[str, Any]) -> Manifest:
    return Manifest(
        holdfast=str(found["holdfast"]),
        created_at=datetime.fromisoformat(found["createdAt"]),
        schema=str(found["schema"]),
        postgresql=str(found["postgresql"]),
        counts={str(name): int(number) for name, number in found["counts"].items()},
    )


# The file of a backup while it is written: beside its place, and put there when it is whole.
#
# It is a tar file, so that it can be opened without Holdfast. Its first header is written last.

FOLDER = "holdfast-backup"
DUMP, KEYS, MANIFEST, CHECKSUMS = "database.dump", "encryption-keys", "manifest.json", "SHA256SUMS"
BLOCK = tarfile.BLOCKSIZE


class UnfinishedBackup:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sums: dict[str, str] = {}
        self._hash = hashlib.sha256()
        self.dumped = 0
        """Bytes of the dump so far."""
        file.write(bytes(BLOCK))

    def add(self, chunk: bytes) -> None:
        """The next bytes of the dump. How many there will be, nobody knows yet."""
        self._file.write(chunk)
        self._hash.update(chunk)
        self.dumped += len(chunk)

    def complete(self, keys: bytes, manifest: bytes, at: float) -> None:
        self._sums[DUMP] = self._hash.hexdigest()
        self._file.write(bytes(-self.dumped % BLOCK))
        for name, contents in ((KEYS, keys), (MANIFEST, manifest)):
            self._sums[name] = hashlib.sha256(contents).hexdigest()
            self._write_part(name, contents, at)
        self._write_part(CHECKSUMS, checksum_lines(self._sums), at)
        self._file.write(bytes(2 * BLOCK))
        self._file.seek(0)
        self._file.write(_header(DUMP, self.dumped, at))

    def _write_part(self, name: str, contents: bytes, at: float) -> None:
        self._file.write(_header(name, len(contents), at) + contents + bytes(-len(contents) % BLOCK))


def checksum_lines(sums: Mapping[str, str]) -> bytes:
    """As `sha256sum --check` reads them."""
    return "".join(f"{digest}  {name}\n" for name, digest in sums.items()).encode()


@contextmanager
def writing_backup(target: Path, *, replace: bool) -> Iterator[UnfinishedBackup]:
    """What stands at the target stays as it is until the block has ended well."""
    refuse_target(target, replace=replace)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.unfinished")
    with _files_named(target):
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield UnfinishedBackup(file)
                file.flush()
                os.fsync(file.fileno())
            _put_in_place(draft, target, replace=replace)
        finally:
            draft.unlink(missing_ok=True)


def refuse_target(target: Path, *, replace: bool) -> None:
    if target.is_dir():
        raise BackupError(f"{target} is a directory; name a file in it.")
    if not target.parent.is_dir():
        raise BackupError(f"There is no directory {target.parent}; make it first.")
    if os.path.lexists(target) and not replace:
        raise BackupError(f"{target} is there already; name another file, or replace it with --force.")


def _header(name: str, size: int, at: float) -> bytes:
    part = tarfile.TarInfo(f"{FOLDER}/{name}")
    part.size, part.mtime, part.mode = size, int(at), 0o600
    # Sizes over 8 GiB stand in this header itself, which PAX would put into a second one.
    return part.tobuf(tarfile.GNU_FORMAT)


def _put_in_place(draft: Path, target: Path, *, replace: bool) -> None:
    if not replace:
        try:
            os.link(draft, target)
        except FileExistsError:
            refuse_target(target, replace=False)
        except OSError:
            # No hard links on this file system, which alone never overwrite. Look once more, then.
            refuse_target(target, replace=False)
            draft.rename(target)
    else:
        draft.replace(target)
    _keep(target.parent)


def _keep(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _files_named(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        reason = failure.strerror or str(failure)
        raise BackupError(f"{target} cannot be written ({reason}).") from None


# The file of a backup, opened and checked from its first byte to its last.

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
        raise BackupError(f"{path} cannot be read ({failure.strerror or failure}).") from None
    with file:
        _refuse_foreign(path, file.read(BLOCK))
        file.seek(0)
        yield file


def _refuse_foreign(path: Path, start: bytes) -> None:
    if not start.startswith(f"{FOLDER}/{DUMP}".encode() + b"\0"):
        raise BackupError(f"{path} is not a backup made by `holdfast backup`.")


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
    if reason := unknown_reason(manifest.schema):
        raise BackupError(f"The backup has the schema {manifest.schema}, {reason}")
    return Backup(manifest, _keys_in(small[KEYS]), _size(archive), _part(archive, DUMP))


def _damaged(path: Path) -> BackupError:
    return BackupError(f"{path} is damaged or not whole; restore another backup, or copy it anew.")


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
        raise BackupError("The encryption keys in the backup cannot be read.") from None
