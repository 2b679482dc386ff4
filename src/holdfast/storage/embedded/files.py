"""File locks of a data directory. They end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from holdfast.storage.embedded.account import Account
from holdfast.storage.errors import EmbeddedPostgresError

_POLL_SECONDS = 0.02


class FileLock:
    """One open file. Python opens it close-on-exec, so no child ever holds it along."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = _open(path)
        except OSError as failure:
            raise EmbeddedPostgresError(
                f"{path} cannot be locked ({failure.strerror}); run Holdfast as the user who owns it."
            ) from None

    def take(self, *, exclusive: bool) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)

    def try_exclusive(self, patience_seconds: float = 0.0) -> bool:
        """Turns a shared lock of ours into an exclusive one when nobody else holds one."""
        give_up_at = time.monotonic() + patience_seconds
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if time.monotonic() >= give_up_at:
                return False
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    with FileLock(path) as lock:
        lock.take(exclusive=True)
        yield


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW
    with suppress(FileNotFoundError):
        return os.open(path, flags)
    with suppress(FileExistsError):
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        _give_to_owner_of(path.parent, descriptor)
        return descriptor
    return os.open(path, flags)


def _give_to_owner_of(directory: Path, descriptor: int) -> None:
    """Root helping out in somebody's data directory must not lock that person out."""
    if os.geteuid() == 0:
        owner = directory.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


# The folder of the server's unix socket: short, and closed to everybody else, for it is the only guard.

# A socket's whole path has room for 103 bytes, and ".s.PGSQL.5432" is part of it.
_LONGEST_SOCKET_PATH = 100
_SOCKET_NAME = ".s.PGSQL.5432"
# What needs no quoting in a list of folders or hosts.
_PLAIN = re.compile(r"[\w./~+@-]+", re.ASCII)


def socket_folder(data_dir: Path) -> Path:
    inside = data_dir / "socket"
    if _fits(inside):
        return inside
    name = "holdfast-" + hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    shared = Path(tempfile.gettempdir()) / name
    return shared if _fits(shared) else Path("/tmp") / name  # noqa: S108 - made and checked below


def make_socket_folder(folder: Path, account: Account | None) -> None:
    """In a shared temporary directory somebody may have been there first, so look before trusting it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as failure:
        raise EmbeddedPostgresError(
            f"{folder} cannot be used for the database's socket: {failure.strerror}."
        ) from None
    try:
        _refuse_foreign(folder, os.fstat(descriptor), account)
        os.fchmod(descriptor, 0o700)
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
    finally:
        os.close(descriptor)


def remove_stale_socket(folder: Path) -> None:
    """A lock file with a pid that now belongs to somebody else would keep the server from starting."""
    for name in (_SOCKET_NAME, _SOCKET_NAME + ".lock"):
        (folder / name).unlink(missing_ok=True)


def remove_socket_folder(folder: Path, data_dir: Path) -> None:
    """Nothing of ours stays in a directory that is not ours."""
    if folder.parent != data_dir:
        with suppress(OSError):
            folder.rmdir()


def _fits(folder: Path) -> bool:
    path = folder / _SOCKET_NAME
    return len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH and _PLAIN.fullmatch(str(path)) is not None


def _refuse_foreign(folder: Path, status: os.stat_result, account: Account | None) -> None:
    ours = {os.geteuid()} if account is None else {os.geteuid(), account.uid}
    if status.st_uid not in ours or not stat.S_ISDIR(status.st_mode):
        raise EmbeddedPostgresError(
            f"{folder} belongs to somebody else, so the database's socket cannot be put there."
        )
