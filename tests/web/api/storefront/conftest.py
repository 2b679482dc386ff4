"""Buyers, on the server that all API tests share."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.app import InProcessApp, running_app
from tests.support.buying import Buyer, Hold
from tests.support.client import Unit, integration_client


@pytest.fixture(scope="session")
def public(server: InProcessApp) -> Iterator[httpx.Client]:
    """Without a key."""
    with integration_client(server.address, None) as client:
        yield client


@pytest.fixture(scope="session")
def buyers(public: httpx.Client, settings_of_servers: dict[str, str]) -> Iterator[list[Buyer]]:
    """Of two applications that have nothing but the database in common."""
    with (
        running_app(settings_of_servers, background_work=False) as another,
        integration_client(another.address, None) as elsewhere,
    ):
        yield [Buyer(public), Buyer(elsewhere)]


@pytest.fixture
def buyer(public: httpx.Client) -> Buyer:
    return Buyer(public)


@pytest.fixture
def held(buyer: Buyer, stored: Unit) -> Hold:
    """A hold of the unit `stored`."""
    return buyer.hold(stored)


@pytest.fixture
def signed(held: Hold) -> Hold:
    held.sign()
    return held
