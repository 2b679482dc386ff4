"""The file of a backup while it is written: beside its place, and put there when it is whole.

It is a tar file, so that it can be opened without Holdfast. Its first header is written last.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from holdfast.storage.refused import BackupRefused

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
        raise BackupRefused(f"{target} is a directory; name a file in it.")
    if not target.parent.is_dir():
        raise BackupRefused(f"There is no directory {target.parent}; make it first.")
    if os.path.lexists(target) and not replace:
        raise BackupRefused(f"{target} is there already; name another file, or replace it with --force.")


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
        raise BackupRefused(f"{target} cannot be written ({reason}).") from None
