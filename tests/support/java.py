"""Java, where there is one."""

import shutil
import subprocess

import pytest

MISSING = "There is no Java on this machine; on Debian: apt install openjdk-17-jre-headless"


def require_java() -> None:
    """Skip the test without it. On macOS, `java` may be a stub that only tells where to download it."""
    found = shutil.which("java")
    if found is None or subprocess.run([found, "-version"], capture_output=True, check=False).returncode:
        pytest.skip(MISSING)
