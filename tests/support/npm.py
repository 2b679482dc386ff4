"""The npm tools of tests/openapi, where `make` has installed them."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.node import REQUIRED, node

NODE_MODULES = Path(sys.prefix, "openapi-tools", "node_modules")
MISSING = (
    "The npm tools of tests/openapi are not installed; `make check` does it where there is npm"
    " (on Debian: apt install npm)"
)


def npm_tool(name: str) -> Path:
    """Its path; without it the test is skipped, except where it must not be."""
    node()
    tool = NODE_MODULES / ".bin" / name
    if not tool.exists() and not os.environ.get(REQUIRED):
        pytest.skip(MISSING)
    assert tool.exists(), MISSING
    return tool
