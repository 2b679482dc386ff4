"""What the tests of chaos runs share."""

import pytest

from tests.chaos.machine import CannotRun, check_machine
from tests.support.programs import is_required


@pytest.fixture(scope="session")
def able_machine() -> None:
    """A machine on which a chaos run can run. In CI, any other fails the test."""
    try:
        check_machine()
    except CannotRun as reason:
        if is_required("chaos"):
            raise
        pytest.skip(str(reason))
