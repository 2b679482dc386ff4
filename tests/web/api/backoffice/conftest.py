"""Keys of every scope, and the people who have them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.client import Project, Unit, integration_client
from tests.support.feed import Feed
from tests.support.keys import Key, Keys
from tests.web.api.backoffice.conditions import Watch


@pytest.fixture(scope="session")
def payments_key(keys: Keys) -> Key:
    return keys.issue(scopes=["payments"])


@pytest.fixture(scope="session")
def admin_key(keys: Keys) -> Key:
    return keys.issue(scopes=["admin"])


@pytest.fixture(scope="session")
def admin(server: InProcessApp, admin_key: Key) -> Iterator[Desk]:
    with integration_client(server.address, admin_key.text) as http:
        yield Desk(http)


@pytest.fixture(scope="session")
def payments(server: InProcessApp, payments_key: Key) -> Iterator[Desk]:
    """A payment system, which is no staff."""
    with integration_client(server.address, payments_key.text) as http:
        yield Desk(http)


@pytest.fixture(scope="session")
def integration(http: httpx.Client) -> Desk:
    """The key of the integration API, where it opens nothing."""
    return Desk(http)


@pytest.fixture
def desk_with(server: InProcessApp, keys: Keys) -> Iterator[Callable[..., Desk]]:
    """Somebody with a new key of these scopes and limits."""
    with ExitStack() as clients:

        def open_desk(
            *scopes: str, projects: Sequence[str] = (), expires_in_days: float | None = None
        ) -> Desk:
            key = keys.issue(scopes=scopes, projects=projects, expires_in_days=expires_in_days)
            return Desk(clients.enter_context(integration_client(server.address, key.text)))

        yield open_desk


@pytest.fixture
def limited_desk(desk_with: Callable[..., Desk], project: Project) -> Desk:
    """Staff of `project` only."""
    return desk_with("backoffice", "payments", projects=[project.slug])


@pytest.fixture
def limited_admin(desk_with: Callable[..., Desk], project: Project) -> Desk:
    return desk_with("admin", projects=[project.slug])


@pytest.fixture
def watch(stored: Unit, admin: Desk, feed: Feed) -> Watch:
    return lambda: (stored.etag, feed.types_of(stored), len(admin.history(stored)))
