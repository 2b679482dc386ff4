"""Files of the embedded PostgreSQL: the locks, the folder of the socket, and the user they belong to."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pwd
import re
import secrets
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from holdfast.storage.errors import EmbeddedPostgresError

SYSTEM_USER = "holdfast"
SOCKET_NAME = ".s.PGSQL.5432"

_POLL_SECONDS = 0.02
# A socket's whole path has room for 103 bytes.
_LONGEST_SOCKET_PATH = 100
# Characters that need no quoting in a list of folders or hosts.
_PLAIN = re.compile(r"[\w./~+@-]+", re.ASCII)

_log = logging.getLogger(__name__)


class FileLock:
    """A lock that ends with its process. Python opens the file close-on-exec, so no child holds it."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = _open_lock(path)
        except OSError as error:
            raise EmbeddedPostgresError(
                f"{path} cannot be locked ({error.strerror}); run Holdfast as the user who owns it."
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


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    with closing(FileLock(path)) as lock:
        lock.take(exclusive=True)
        yield


def _open_lock(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW
    with suppress(FileNotFoundError):
        return os.open(path, flags)
    with suppress(FileExistsError):
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        _give_to_owner(descriptor, path.parent)
        return descriptor
    return os.open(path, flags)


def _give_to_owner(descriptor: int, folder: Path) -> None:
    """Let the owner of the data directory use a file that root has made in it."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def write_once(path: Path, text: str) -> None:
    """Write a private file completely or not at all, and never over one that another process has made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            _give_to_owner(descriptor, path.parent)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    # A power cut must not lose it, once something depends on it.
    sync_folder(path.parent)


def open_new(path: Path, mode: str = "w") -> IO[Any]:
    """Open a new private file each time, so that nothing is ever written through a link."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), mode)


@contextmanager
def open_descriptor(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make new names in the folder survive a power cut."""
    with open_descriptor(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)


def socket_folder(data_dir: Path) -> Path:
    """Return the folder of the server's socket."""
    name = "holdfast-" + hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    for folder in (data_dir / "socket", Path(tempfile.gettempdir()) / name):
        path = folder / SOCKET_NAME
        if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH and _PLAIN.fullmatch(str(path)):
            return folder
    return Path("/tmp") / name  # noqa: S108 - make_socket_folder checks it


def make_socket_folder(folder: Path, account: Account | None, mode: int = 0o700) -> None:
    """Make the folder, or check its owner: in a shared temporary directory anybody may have made it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    owners = {os.geteuid()} if account is None else {os.geteuid(), account.uid}
    try:
        with open_descriptor(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as descriptor:
            if os.fstat(descriptor).st_uid not in owners:
                raise EmbeddedPostgresError(
                    f"{folder} belongs to another user, so the database's socket cannot be put there."
                )
            os.fchmod(descriptor, mode)
            if account is not None:
                os.fchown(descriptor, account.uid, account.gid)
    except OSError as error:
        raise EmbeddedPostgresError(
            f"{folder} cannot be used for the database's socket: {error.strerror}."
        ) from None


class Account(NamedTuple):
    """The user that PostgreSQL runs as: it does not run as root."""

    uid: int
    gid: int
    groups: frozenset[int]

    def missing_bits(self, path: Path, needed: int) -> int:
        """Return the mode bits to add for ``needed`` (of rwx, as 0-7), in the class that applies to it."""
        status = path.stat()
        shift = 6 if status.st_uid == self.uid else 3 if status.st_gid in self.groups else 0
        return (needed << shift) & ~stat.S_IMODE(status.st_mode)

    def add_mode(self, path: Path, needed: int) -> bool:
        missing = self.missing_bits(path, needed)
        if missing:
            path.chmod(stat.S_IMODE(path.stat().st_mode) | missing)
        return bool(missing)


def account_for(cluster: Path) -> Account | None:
    """Return None for an ordinary user, who runs everything.

    Root runs a cluster as its owner, and gives a new one to the system user.
    """
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (owner := cluster.stat()).st_uid != 0:
        uid, gid = owner.st_uid, owner.st_gid
    else:
        user = system_user(SYSTEM_USER)
        uid, gid = user.pw_uid, user.pw_gid
    try:
        groups = os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        groups = [gid]
    return Account(uid, gid, frozenset(groups))


def allow_traversal(account: Account, targets: Iterable[Path]) -> None:
    """Let the account pass through the folders above the targets: traversal only, never listing."""
    opened = [
        folder
        for target in targets
        for folder in reversed(target.resolve().parents)
        if account.add_mode(folder, 0o1)
    ]
    if opened:
        _log.warning(
            "made folders passable (x, not readable) for the database's own user: %s",
            ", ".join(map(str, opened)),
        )


def make_readable(account: Account, folders: Iterable[Path]) -> None:
    """Undo a strict umask at installation, which leaves the programs unreadable for any user but root."""
    for folder in folders:
        if account.missing_bits(folder, 0o5):
            for path in (folder, *folder.rglob("*")):
                if not path.is_symlink():
                    is_executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                    account.add_mode(path, 0o5 if is_executable else 0o4)
            _log.warning("made %s readable for the database's own user", folder)


def change_owner(account: Account, path: Path, mode: int) -> None:
    """Give a path to the account by descriptor, never through a link that another user may have made."""
    with open_descriptor(path, os.O_RDONLY | os.O_NOFOLLOW) as descriptor:
        os.fchmod(descriptor, mode)
        os.fchown(descriptor, account.uid, account.gid)


def change_tree_owner(account: Account, directory: Path) -> None:
    for folder, _, files in os.walk(directory):
        os.chown(folder, account.uid, account.gid)
        for name in files:
            os.chown(Path(folder) / name, account.uid, account.gid, follow_symlinks=False)


def system_user(name: str) -> pwd.struct_passwd:
    """Return the user, who is added if there is none of this name."""
    command = [
        "useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent",
        "--shell", "/usr/sbin/nologin", name,
    ]  # fmt: skip
    with suppress(KeyError):
        return pwd.getpwnam(name)
    reason = ""
    # Two `useradd` at once would both add the user, and the second give it another id.
    with open_descriptor(Path("/etc"), os.O_RDONLY) as folder:
        fcntl.flock(folder, fcntl.LOCK_EX)
        # Another program on this machine may be adding a user.
        for _ in range(20):
            with suppress(KeyError):
                return pwd.getpwnam(name)
            try:
                result = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                reason = str(error)
                break
            reason = result.stderr.strip()
            if result.returncode != 0:
                time.sleep(0.1)
    raise EmbeddedPostgresError(
        f"The system user {name} could not be added ({reason}); run Holdfast as an ordinary user."
    )
