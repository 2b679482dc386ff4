"""The Makefile of the project, on the environment that the tests run in, whichever that is."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 300
# Of the `make check` that may have started the tests.
_OF_THE_OUTER_MAKE = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL", "ARGS")


def make_command(*arguments: str) -> list[str]:
    """It takes what is installed as it is: a test run is no time to install anything."""
    installed = [f"--old-file={sys.prefix}/.{name}" for name in ("base", "dev", "npm", "bench", "audit")]
    return ["make", "--no-print-directory", *installed, f"VENV={sys.prefix}", *arguments]


def outside_of_make(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in _OF_THE_OUTER_MAKE}


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        make_command(*arguments),
        cwd=ROOT,
        env=outside_of_make(dict(os.environ)),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
