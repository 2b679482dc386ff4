"""The file of a backup: a tar file, so that it can be opened without Holdfast."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from holdfast.domain.wire_format import format_timestamp
from holdfast.settings import parse_encryption_keys
from holdfast.storage.embedded.files import sync_folder
from holdfast.storage.errors import BackupError
from holdfast.storage.schema import unsuitable_reason

FORMAT, FORMAT_WITHOUT_KEYS = 1, 2
"""A higher number whenever a release could not read what this one writes."""
FOLDER = "holdfast-backup"
DUMP, KEYS, MANIFEST, CHECKSUMS = "database.dump", "encryption-keys", "manifest.json", "SHA256SUMS"
BLOCK = tarfile.BLOCKSIZE
CHUNK = 1 << 20
# Of the parts that are read whole. Keys and counts take a few hundred bytes.
_LARGEST_SMALL_PART = 1 << 20


class Manifest(NamedTuple):
    holdfast: str
    """The release that made it."""
    created_at: datetime
    """The time that the backup shows, by the clock of the database."""
    schema: str
    postgresql: str
    counts: Mapping[str, int]
    """Rows of the tables that tell how much it is."""
    sealed: Sequence[str] | None = None
    """Of a backup without keys: secrets that tell whether a restore has the right ones."""

    def document(self) -> dict[str, Any]:
        return {
            "format": FORMAT if self.sealed is None else FORMAT_WITHOUT_KEYS,
            "holdfast": self.holdfast,
            "createdAt": format_timestamp(self.created_at),
            "schema": self.schema,
            "postgresql": self.postgresql,
            "counts": dict(self.counts),
            "hasKeys": self.sealed is None,
        }


def write_manifest(manifest: Manifest) -> bytes:
    return json.dumps({**manifest.document(), "sealed": manifest.sealed}, indent=2).encode() + b"\n"


def _read_manifest(text: bytes) -> Manifest:
    """Its checksum was right, so a manifest that cannot be read was written by another release."""
    try:
        document = json.loads(text)
        if int(document["format"]) > FORMAT_WITHOUT_KEYS:
            raise BackupError(
                f"The backup was made by Holdfast {document['holdfast']} in a newer format; restore it with"
                " that release, or a newer one."
            )
        return Manifest(
            holdfast=str(document["holdfast"]),
            created_at=datetime.fromisoformat(document["createdAt"]),
            schema=str(document["schema"]),
            postgresql=str(document["postgresql"]),
            counts={str(name): int(number) for name, number in document["counts"].items()},
            sealed=document.get("sealed"),
        )
    except (KeyError, TypeError, ValueError):
        raise BackupError("The manifest of the backup cannot be read.") from None


class UnfinishedBackup:
    """The file while it is written. Its first header is written last: the size of the dump is in it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.dumped = 0
        """Bytes of the dump so far."""
        file.write(bytes(BLOCK))

    def add(self, chunk: bytes) -> None:
        """Add the next bytes of the dump."""
        self._file.write(chunk)
        self._hash.update(chunk)
        self.dumped += len(chunk)

    def complete(self, keys: bytes, manifest: bytes, at: float) -> None:
        self._file.write(bytes(-self.dumped % BLOCK))
        sums = _checksums(self._hash.hexdigest(), keys, manifest)
        for name, contents in ((KEYS, keys), (MANIFEST, manifest), (CHECKSUMS, sums)):
            self._file.write(_header(name, len(contents), at) + contents + bytes(-len(contents) % BLOCK))
        self._file.write(bytes(2 * BLOCK))
        self._file.seek(0)
        self._file.write(_header(DUMP, self.dumped, at))


def _checksums(dump_digest: str, keys: bytes, manifest: bytes) -> bytes:
    """Return the lines that `sha256sum --check` reads."""
    lines = [f"{dump_digest}  {DUMP}\n"]
    for name, contents in ((KEYS, keys), (MANIFEST, manifest)):
        lines.append(f"{hashlib.sha256(contents).hexdigest()}  {name}\n")
    return "".join(lines).encode()


def _header(name: str, size: int, at: float) -> bytes:
    part = tarfile.TarInfo(f"{FOLDER}/{name}")
    part.size, part.mtime, part.mode = size, int(at), 0o600
    # Sizes over 8 GiB stand in this header itself, which PAX would put into a second one.
    return part.tobuf(tarfile.GNU_FORMAT)


@contextmanager
def writing_backup(target: Path, *, replace: bool) -> Iterator[UnfinishedBackup]:
    """Write beside the target. What is at the target stays as it is until the block has ended well."""
    check_target(target, replace=replace)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.unfinished")
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield UnfinishedBackup(file)
                file.flush()
                os.fsync(file.fileno())
            _put_in_place(draft, target, replace=replace)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise BackupError(f"{target} cannot be written ({error.strerror or error}).") from None


def check_target(target: Path, *, replace: bool) -> None:
    if target.is_dir():
        raise BackupError(f"{target} is a directory; name a file in it.")
    if not target.parent.is_dir():
        raise BackupError(f"There is no directory {target.parent}; create it first.")
    if os.path.lexists(target) and not replace:
        raise BackupError(f"{target} already exists; name another file, or replace it with --force.")


def _put_in_place(draft: Path, target: Path, *, replace: bool) -> None:
    try:
        if replace:
            draft.replace(target)
        else:
            os.link(draft, target)
    except OSError:
        if replace:
            raise
        # The file is there by now, or the file system has no hard links, which alone never overwrite.
        check_target(target, replace=False)
        draft.rename(target)
    with suppress(OSError):
        sync_folder(target.parent)


class Backup(NamedTuple):
    manifest: Manifest
    keys: tuple[str, ...]
    dump_bytes: int
    dump: IO[bytes]

    def chunks(self) -> Iterator[bytes]:
        """Read the dump from its start, once, before the file is closed."""
        return _read_chunks(self.dump)


@contextmanager
def open_backup(path: Path, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[Backup]:
    """Check the whole file. ``on_bytes`` is called with the bytes of the dump checked so far."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            start = file.read(BLOCK)
            file.seek(0)
        except OSError as error:
            raise BackupError(f"{path} cannot be read ({error.strerror or error}).") from None
        if not start.startswith(f"{FOLDER}/{DUMP}".encode() + b"\0"):
            raise BackupError(f"{path} is not a backup made by `holdfast backup`.")
        try:
            backup = _check(stack.enter_context(tarfile.TarFile(fileobj=file)), on_bytes)
        except (KeyError, OSError, tarfile.TarError):
            raise BackupError(
                f"{path} is damaged or incomplete; restore another backup, or copy it again."
            ) from None
        yield backup


def _check(archive: tarfile.TarFile, on_bytes: Callable[[int], None]) -> Backup:
    """Raise KeyError or TarError for a damaged file, and BackupError for one of another release."""
    sums, manifest_text, keys_text = (
        _open_part(archive, name).read(_LARGEST_SMALL_PART) for name in (CHECKSUMS, MANIFEST, KEYS)
    )
    digest, done = hashlib.sha256(), 0
    for chunk in _read_chunks(_open_part(archive, DUMP)):
        digest.update(chunk)
        done += len(chunk)
        on_bytes(done)
    if _checksums(digest.hexdigest(), keys_text, manifest_text) != sums:
        raise tarfile.ReadError
    manifest = _read_manifest(manifest_text)
    if reason := unsuitable_reason(manifest.schema):
        raise BackupError(f"The backup has {reason}")
    try:
        keys = parse_encryption_keys(",".join(keys_text.decode("ascii").split()))
    except ValueError:
        raise BackupError("The encryption keys in the backup cannot be read.") from None
    return Backup(manifest, keys, done, _open_part(archive, DUMP))


def _open_part(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    part = archive.extractfile(f"{FOLDER}/{name}")
    if part is None:
        raise KeyError(name)
    return part


def _read_chunks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.read, CHUNK), b"")
