"""How much memory a process took at its peak, by the kernel's own account."""

from pathlib import Path


def forget_peak(pid: int) -> None:
    """Sets the kernel's high-water mark back to what is resident now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def resident_bytes(pid: int) -> int:
    return _status(pid, "VmRSS")


def peak_bytes(pid: int) -> int:
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)
