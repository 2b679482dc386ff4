"""Buyers at the storefront's pages, on the server that all these tests share."""

from collections.abc import Callable, Iterator

import pytest

from tests.support.app import InProcessApp, running_app
from tests.web.api.storefront.limits import BEHIND_A_PROXY
from tests.web.pages.storefront.buyers import Buyer

STRICT = {**BEHIND_A_PROXY, "HOLDFAST_HOLDS_PER_ADDRESS": "2"}


@pytest.fixture(scope="session")
def strict(database_url: str) -> Iterator[InProcessApp]:
    """With the limits that are usual, fewer holds for an address, and no payment page."""
    settings = {"HOLDFAST_DATABASE_URL": database_url, **STRICT}
    with running_app(settings, background_work=False) as running:
        yield running


@pytest.fixture
def new_buyer(server: InProcessApp) -> Iterator[Callable[..., Buyer]]:
    """Somebody in front of a browser of their own."""
    made: list[Buyer] = []

    def make(address: str | None = None, **headers: str) -> Buyer:
        made.append(Buyer(address or server.address, **headers))
        return made[-1]

    yield make
    for buyer in made:
        buyer.close()


@pytest.fixture
def buyer(new_buyer: Callable[..., Buyer]) -> Buyer:
    return new_buyer()


@pytest.fixture
def limited_buyer(new_buyer: Callable[..., Buyer], strict: InProcessApp) -> Buyer:
    """At the server that has limits, and no payment page."""
    return new_buyer(strict.address)
