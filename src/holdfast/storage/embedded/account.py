"""Whom the embedded PostgreSQL runs as. It refuses to run as root, so root lends it a user of its own."""

from __future__ import annotations

import logging
import os
import pwd
import stat
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.storage.errors import EmbeddedPostgresError

SYSTEM_USER = "holdfast"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int
    groups: frozenset[int]

    def owns(self, path: Path) -> bool:
        return path.stat().st_uid == self.uid

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
    """None for an ordinary user: everything then runs as that user.

    Root keeps a cluster with whoever owns it, and gives a new one to the system user.
    """
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (owner := cluster.stat()).st_uid != 0:
        return _account(owner.st_uid, owner.st_gid)
    entry = _system_user()
    return _account(entry.pw_uid, entry.pw_gid)


def open_the_way(account: Account, targets: Iterable[Path]) -> None:
    """Let the account pass through the folders above the targets: traversal only, never listing."""
    opened = [
        folder for target in targets for folder in _folders_above(target) if _open(account, folder, 0o1)
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


def give(account: Account, path: Path, mode: int) -> None:
    """By descriptor, never through a link: the folder may belong to somebody whom root must not obey."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, mode)
        os.fchown(descriptor, account.uid, account.gid)
    finally:
        os.close(descriptor)


def give_tree(account: Account, directory: Path) -> None:
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


def _folders_above(path: Path) -> Iterator[Path]:
    return reversed(path.resolve().parents)


def _open(account: Account, path: Path, needed: int) -> bool:
    missing = account.missing_bits(path, needed)
    if missing:
        path.chmod(stat.S_IMODE(path.stat().st_mode) | missing)
    return bool(missing)


def _open_program(account: Account, path: Path) -> None:
    if not path.is_symlink():
        runnable = path.is_dir() or bool(path.stat().st_mode & stat.S_IXUSR)
        _open(account, path, 0o5 if runnable else 0o4)


def _system_user() -> pwd.struct_passwd:
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    failure = ""
    # Another start on this machine may be adding the same user; whoever is first wins.
    for _ in range(20):
        try:
            return pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            failure = _try_to_add([*command, "--shell", "/usr/sbin/nologin", SYSTEM_USER])
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, and a system user for it could not be added"
        f" ({failure}); run Holdfast as an ordinary user."
    )


def _try_to_add(command: list[str]) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as failure:
        return str(failure)
    if result.returncode != 0:
        time.sleep(0.1)
    return result.stderr.strip()
