"""A payment system, and buyers who pay, on the server that all API tests share."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.app import InProcessApp, running_app
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


@pytest.fixture
def lines(server: InProcessApp) -> Callable[[str], list[str]]:
    """The lines of the server's log that tell of something."""

    def find(told: str) -> list[str]:
        return [line for line in server.log.read_text().splitlines() if told in line]

    return find


@pytest.fixture
def without_payments(database_url: str) -> Iterator[httpx.Client]:
    """Where there is no payment page."""
    settings = {"HOLDFAST_DATABASE_URL": database_url}
    with (
        running_app(settings, background_work=False) as app,
        integration_client(app.address, None) as http,
    ):
        yield http
