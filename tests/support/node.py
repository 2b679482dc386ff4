"""Node.js, where there is one."""

import os
import shutil

import pytest

NODE_REQUIRED = "REQUIRE_NODE"
"""Set where a missing Node.js is a failure, and no reason to skip."""
MISSING = "There is no Node.js on this machine; on Debian: apt install nodejs"


def node() -> str:
    """Its path; without it the test is skipped, except where it must not be."""
    found = shutil.which("node")
    if found is None and not os.environ.get(NODE_REQUIRED):
        pytest.skip(MISSING)
    assert found is not None, MISSING
    return found
