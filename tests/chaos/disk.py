"""A file system of its own for a server: it can lose its power, fail, fill up and hang."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from holdfast.storage.embedded.files import open_descriptor
from tests.chaos.machine import CannotRun

IMAGE_BYTES = 640 << 20
FREEZE, THAW = 0xC0045877, 0xC0045878  # FIFREEZE and FITHAW
SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
FLUSHED, NOT_FLUSHED = 0, 2
UNMOUNT_SECONDS = 10.0
_UNFLUSHED = b"unflushed" * 512


class DiskFailed(Exception):
    """What the harness does with a disk failed, by no fault of a plan."""


class Disk:
    """An ext4 file system with a journal, in a sparse file that is mounted through a loop device."""

    def __init__(self, image: Path, folder: Path) -> None:
        self._image = image
        self.folder = folder
        self._ballast = folder / "ballast"
        self._unflushed = folder / "unflushed"

    def make(self) -> None:
        """Make and mount it, which not every container may."""
        with self._image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        self.folder.mkdir(exist_ok=True)
        try:
            # Nothing is reserved for root, so a full disk is full for everybody.
            _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
            self.mount()
        except DiskFailed as failure:
            raise CannotRun(str(failure)) from failure

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.folder))

    def unmount(self) -> None:
        """Unmount it everywhere, which frees the loop device.

        Processes that were started meanwhile with mounts of their own (`unshare --mount`) have a copy. As
        long as there is one, the file system stays as it is in memory, and mounting it again finds that.
        """
        if not self.folder.is_mount():
            return
        number = self.folder.stat().st_dev
        device = f"{os.major(number)}:{os.minor(number)}"
        give_up_at = time.monotonic() + UNMOUNT_SECONDS
        while self._is_behind(device):
            if time.monotonic() >= give_up_at:
                raise DiskFailed(f"{self.folder} is in use and cannot be unmounted.")
            for pid in _namespaces_with(device):
                # A process that has just been killed may still hold it.
                with suppress(DiskFailed):
                    _run("nsenter", f"--target={pid}", "--mount", "umount", str(self.folder))
            time.sleep(0.01)

    def _is_behind(self, device: str) -> bool:
        with suppress(OSError):
            backing_file = Path(f"/sys/dev/block/{device}/loop/backing_file").read_text()
            return backing_file.strip() == str(self._image)
        return False

    def remove(self) -> None:
        self.unmount()
        self._image.unlink(missing_ok=True)

    def flush(self) -> None:
        _run("sync", "--file-system", str(self.folder))

    def lose_power(self) -> None:
        """Keep only what was flushed. Every access fails until it is mounted anew."""
        self._require_mount()
        self._unflushed.write_bytes(_UNFLUSHED)
        self._control(SHUTDOWN, NOT_FLUSHED.to_bytes(4, "little"))

    def has_lost_unflushed(self) -> bool:
        """Tell, once it is mounted anew, whether what was written last before the power failed is gone."""
        return not self._unflushed.exists() or self._unflushed.read_bytes() != _UNFLUSHED

    def fail(self) -> None:
        """Let every access fail from now on, until it is mounted anew; what was written before is kept."""
        self._control(SHUTDOWN, FLUSHED.to_bytes(4, "little"))

    def freeze(self) -> None:
        """Let every write wait, and with it its process, which nothing can kill."""
        self._control(FREEZE)

    def thaw(self) -> None:
        with suppress(DiskFailed):  # It is not frozen, or not mounted.
            self._control(THAW)

    def fill(self) -> None:
        self._require_mount()
        with self._ballast.open("ab") as file:
            size = IMAGE_BYTES
            while size >= 4096:
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size)
                except OSError:
                    size //= 2

    def empty(self) -> None:
        with suppress(OSError):  # Power may have failed meanwhile.
            self._ballast.unlink(missing_ok=True)

    def _control(self, request: int, argument: bytes = b"") -> None:
        self._require_mount()
        try:
            with open_descriptor(self.folder, os.O_RDONLY) as descriptor:
                fcntl.ioctl(descriptor, request, argument)
        except OSError as failure:
            raise DiskFailed(f"{self.folder}: request {request:#x} failed: {failure}") from failure

    def _require_mount(self) -> None:
        """Without the mount, the folder is on a disk of this machine."""
        if not self.folder.is_mount():
            raise DiskFailed(f"{self.folder} is not mounted.")


def _run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise DiskFailed(f"`{' '.join(command)}` failed: {' '.join(result.stderr.split())}.")


def _namespaces_with(device: str) -> list[str]:
    """Return a process of each mount namespace in which the device is mounted."""
    found: dict[Path, Path] = {}
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdecimal():
                found.setdefault((process / "ns" / "mnt").readlink(), process)
    return [process.name for process in found.values() if _mounts(process, device)]


def _mounts(process: Path, device: str) -> bool:
    with suppress(OSError):
        return f" {device} " in (process / "mountinfo").read_text()
    return False
