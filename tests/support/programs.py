"""Programs that tests run and that may not be installed."""

import os
import shutil

import pytest


def is_required(name: str) -> bool:
    """Where ``REQUIRE_NAME`` is set, a missing program is a failure, and no reason to skip."""
    return bool(os.environ.get(f"REQUIRE_{name.upper()}"))


def installed(*names: str) -> str:
    """Return the path of the first that there is. Without one the test is skipped, or fails if required."""
    found = next((path for path in map(shutil.which, names) if path), None)
    missing = f"There is no {names[0]} on this machine."
    if found is None and not is_required(names[0]):
        pytest.skip(missing)
    assert found is not None, missing
    return found
