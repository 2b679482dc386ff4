"""Which process runs which tests, and which tests come first."""

import json
from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

DURATIONS = Path(__file__).parents[1] / "durations.json"
"""The seconds of each file on the machine that wrote it: of its quick tests and of its slow ones."""
UNKNOWN_SECONDS = 1.0
"""Of a file that is not listed."""
# Files that use the same servers, or the same browser, run in the same process: it starts them once.
TOGETHER = {
    "tests/browser/test_page_colours.py": "colours",
    "tests/browser/": "browser",
    "tests/faults/test_races.py": "servers",
    "tests/cli/test_simulate.py": "servers",
    "tests/web/api/test_http.py": "servers",
    "tests/web/api/test_across_processes.py": "servers",
    "tests/web/api/integration/test_malformed.py": "servers",
    "tests/web/api/payments/test_example_adapter.py": "servers",
    "tests/web/pages/backoffice/test_live.py": "servers",
    "tests/web/pages/storefront/test_projects.py": "servers",
    "tests/web/pages/storefront/test_units.py": "servers",
}


class Durations:
    def __init__(self, config: pytest.Config) -> None:
        self._with_slow = "not slow" not in config.option.markexpr
        self._seconds: dict[str, list[float]] = json.loads(DURATIONS.read_text())

    def of(self, file: str) -> float:
        quick, slow = self._seconds.get(file, (UNKNOWN_SECONDS, 0.0))
        return max(quick + slow * self._with_slow, 0.01)


class Scheduling(LoadFileScheduling):  # type: ignore[misc]  # the library has no types
    def _split_scope(self, nodeid: str) -> str:
        return group_of(file_of(nodeid))


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def group_of(file: str) -> str:
    return next((group for start, group in TOGETHER.items() if file.startswith(start)), file)
