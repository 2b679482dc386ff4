"""Buyers, on the server that all API tests share."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.app import running_app
from tests.support.buying import Buyer
from tests.support.client import integration_client


@pytest.fixture(scope="session")
def buyers(public: httpx.Client, settings_of_servers: dict[str, str]) -> Iterator[list[Buyer]]:
    """Of two applications that have nothing but the database in common."""
    with (
        running_app(settings_of_servers, background_work=False) as another,
        integration_client(another.address, None) as elsewhere,
    ):
        yield [Buyer(public), Buyer(elsewhere)]
