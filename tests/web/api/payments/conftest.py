"""A payment system, on the server that all API tests share."""

import httpx
import pytest

from tests.support.payment_system import Till


@pytest.fixture(scope="session")
def till(public: httpx.Client) -> Till:
    return Till(public)
