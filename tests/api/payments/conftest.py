"""A payment system, and buyers who pay, on the server that all API tests share."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.backoffice import Desk
from tests.support.buying import Buyer, Hold
from tests.support.client import Unit, integration_client
from tests.support.keys import Keys
from tests.support.server import RunningServer
from tests.support.till import Till


@pytest.fixture(scope="session")
def till(server: RunningServer) -> Iterator[Till]:
    with integration_client(server.address, None) as http:
        yield Till(http)


@pytest.fixture(scope="session")
def desk(server: RunningServer, keys: Keys) -> Iterator[Desk]:
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
def lines(server: RunningServer) -> Callable[[str], list[str]]:
    """The lines of the server's log that tell of something."""

    def find(told: str) -> list[str]:
        return [line for line in server.log.read_text().splitlines() if told in line]

    return find


@pytest.fixture
def without_payments(two_processes: RunningServer) -> Iterator[httpx.Client]:
    """A server that knows of no payment page."""
    with integration_client(two_processes.address, None) as http:
        yield http
