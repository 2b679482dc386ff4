"""Files of the embedded PostgreSQL: their owner, the locks, and the folder of the socket."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pwd
import re
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from holdfast.storage.errors import EmbeddedPostgresError

SYSTEM_USER = "holdfast"

_POLL_SECONDS = 0.02

# A socket's whole path has room for 103 bytes, and ".s.PGSQL.5432" is part of it.
_LONGEST_SOCKET_PATH = 100
_SOCKET_NAME = ".s.PGSQL.5432"
# Characters that need no quoting in a list of folders or hosts.
_PLAIN = re.compile(r"[\w./~+@-]+", re.ASCII)

_log = logging.getLogger(__name__)


class FileLock:
    """A lock that ends with its process. Python opens the file close-on-exec, so no child holds it."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = _open_lock(path)
        except OSError as failure:
            raise EmbeddedPostgresError(
                f"{path} cannot be locked ({failure.strerror}); run Holdfast as the user who owns it."
            ) from None

    def take(self, *, exclusive: bool) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)

    def try_exclusive(self, patience_seconds: float = 0.0) -> bool:
        """Turn a shared lock of ours into an exclusive one, unless another process holds one."""
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


def _open_lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW
    with suppress(FileNotFoundError):
        return os.open(path, flags)
    with suppress(FileExistsError):
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        _give_to_owner_of(path.parent, descriptor)
        return descriptor
    return os.open(path, flags)


def _give_to_owner_of(directory: Path, descriptor: int) -> None:
    """Let the owner of the data directory use a lock file that root has made."""
    if os.geteuid() == 0:
        owner = directory.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


# The folder of the server's unix socket. Its mode is what keeps other users out of the database.


def socket_folder(data_dir: Path) -> Path:
    inside = data_dir / "socket"
    if _fits(inside):
        return inside
    name = "holdfast-" + hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    shared = Path(tempfile.gettempdir()) / name
    return shared if _fits(shared) else Path("/tmp") / name  # noqa: S108 - made and checked below


def make_socket_folder(folder: Path, account: Account | None) -> None:
    """Make the folder, or check its owner: in a shared temporary directory anybody may have made it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as failure:
        raise EmbeddedPostgresError(
            f"{folder} cannot be used for the database's socket: {failure.strerror}."
        ) from None
    try:
        _check_owner(folder, os.fstat(descriptor), account)
        os.fchmod(descriptor, 0o700)
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
    finally:
        os.close(descriptor)


def remove_stale_socket(folder: Path) -> None:
    """Remove what a crash left: a lock file whose pid is in use again would prevent a start."""
    for name in (_SOCKET_NAME, _SOCKET_NAME + ".lock"):
        (folder / name).unlink(missing_ok=True)


def remove_socket_folder(folder: Path, data_dir: Path) -> None:
    """Remove the folder if it is outside of the data directory."""
    if folder.parent != data_dir:
        with suppress(OSError):
            folder.rmdir()


def _fits(folder: Path) -> bool:
    path = folder / _SOCKET_NAME
    return len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH and _PLAIN.fullmatch(str(path)) is not None


def _check_owner(folder: Path, status: os.stat_result, account: Account | None) -> None:
    ours = {os.geteuid()} if account is None else {os.geteuid(), account.uid}
    if status.st_uid not in ours or not stat.S_ISDIR(status.st_mode):
        raise EmbeddedPostgresError(
            f"{folder} belongs to somebody else, so the database's socket cannot be put there."
        )


# The account of the server.


@dataclass(frozen=True, slots=True)
class Account:
    """The user that PostgreSQL runs as: it does not run as root."""

    uid: int
    gid: int
    groups: frozenset[int]

    def missing_bits(self, path: Path, needed: int) -> int:
        """The mode bits to add for ``needed`` (of rwx, as 0-7), in the class that counts for this account."""
        status = path.stat()
        if status.st_uid == self.uid:
            shift = 6
        elif status.st_gid in self.groups:
            shift = 3
        else:
            shift = 0
        return (needed << shift) & ~stat.S_IMODE(status.st_mode)


def account_for(cluster: Path) -> Account | None:
    """Return None for an ordinary user, who runs everything.

    Root runs a cluster as its owner, and gives a new one to the system user.
    """
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (owner := cluster.stat()).st_uid != 0:
        return _account(owner.st_uid, owner.st_gid)
    entry = _system_user()
    return _account(entry.pw_uid, entry.pw_gid)


def allow_traversal(account: Account, targets: Iterable[Path]) -> None:
    """Let the account pass through the folders above the targets: traversal only, never listing."""
    opened = [
        folder
        for target in targets
        for folder in reversed(target.resolve().parents)
        if _add_mode(account, folder, 0o1)
    ]
    if opened:
        _log.warning(
            "made folders passable (x, not readable) for the database's own user: %s",
            ", ".join(map(str, opened)),
        )


def open_programs(account: Account, folders: Iterable[Path]) -> None:
    """A strict umask at installation leaves the programs unreadable for any user but root."""
    for folder in folders:
        if account.missing_bits(folder, 0o5):
            for path in (folder, *folder.rglob("*")):
                _open_program(account, path)
            _log.warning("made %s readable for the database's own user", folder)


def change_owner(account: Account, path: Path, mode: int) -> None:
    """Give a path to the account by descriptor, never through a link that another user may have made."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, mode)
        os.fchown(descriptor, account.uid, account.gid)
    finally:
        os.close(descriptor)


def change_tree_owner(account: Account, directory: Path) -> None:
    for folder, _, files in os.walk(directory):
        os.chown(folder, account.uid, account.gid)
        for name in files:
            os.chown(Path(folder) / name, account.uid, account.gid, follow_symlinks=False)


def _account(uid: int, gid: int) -> Account:
    try:
        groups = os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        groups = [gid]
    return Account(uid, gid, frozenset(groups))


def _add_mode(account: Account, path: Path, needed: int) -> bool:
    missing = account.missing_bits(path, needed)
    if missing:
        path.chmod(stat.S_IMODE(path.stat().st_mode) | missing)
    return bool(missing)


def _open_program(account: Account, path: Path) -> None:
    if not path.is_symlink():
        runnable = path.is_dir() or bool(path.stat().st_mode & stat.S_IXUSR)
        _add_mode(account, path, 0o5 if runnable else 0o4)


def _system_user() -> pwd.struct_passwd:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    failure = ""
    # Another start on this machine may be adding the same user.
    for _ in range(20):
        try:
            return pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            failure = _add_user([*command, "--shell", "/usr/sbin/nologin", SYSTEM_USER])
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, and a system user for it could not be added"
        f" ({failure}); run Holdfast as an ordinary user."
    )


def _add_user(command: list[str]) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as failure:
        return str(failure)
    if result.returncode != 0:
        time.sleep(0.1)
    return result.stderr.strip()
