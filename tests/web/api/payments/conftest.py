"""A payment system, and buyers who pay, on the server that all API tests share."""

from collections.abc import Iterator

import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.buying import Buyer, Hold
from tests.support.client import Unit, integration_client
from tests.support.keys import Keys
from tests.support.payment_system import Till


@pytest.fixture(scope="session")
def till(server: InProcessApp) -> Iterator[Till]:
    with integration_client(server.address, None) as http:
        yield Till(http)


@pytest.fixture(scope="session")
def desk(server: InProcessApp, keys: Keys) -> Iterator[Desk]:
    with integration_client(server.address, keys.issue(scopes=["backoffice"]).text) as http:
        yield Desk(http)


@pytest.fixture
def buyer(till: Till) -> Buyer:
    return Buyer(till.http)


@pytest.fixture
def held(buyer: Buyer, stored: Unit) -> Hold:
    return buyer.hold(stored)


@pytest.fixture
def signed(held: Hold) -> Hold:
    held.sign()
    return held
