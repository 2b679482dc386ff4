"""File locks of a data directory. They end with the process that holds them, however it ends."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from holdfast.storage.refused import EmbeddedRefused

_POLL_SECONDS = 0.02


class FileLock:
    """One open file. Python opens it close-on-exec, so no child ever holds it along."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = _open(path)
        except OSError as failure:
            raise EmbeddedRefused(
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
