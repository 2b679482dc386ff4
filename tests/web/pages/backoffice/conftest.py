"""Staff of every role, on the server that all these tests share."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.app import InProcessApp, running_app
from tests.support.backoffice import Desk
from tests.support.client import Project
from tests.support.sql import Sql
from tests.support.staff_client import People, Person
from tests.support.webhooks import NOBODY_LISTENS, Registrar


class OwnRegistrar(Registrar):
    """Of endpoints that hear of one project alone: holds that other tests left behind lapse at any time."""

    project: Project

    def add(self, url: str = NOBODY_LISTENS, **config: Any) -> dict[str, Any]:
        return super().add(url, **{"projects": [self.project.slug], **config})


@pytest.fixture
def registrar(desk: Desk, project: Project) -> Iterator[Registrar]:
    own = OwnRegistrar(desk.http)
    own.project = project
    yield own
    own.remove_all()


@pytest.fixture(scope="session")
def people(sql: Sql, server: InProcessApp) -> Iterator[People]:
    everybody = People(sql, server.address)
    yield everybody
    everybody.leave()


@pytest.fixture(scope="module")
def strict_people(sql: Sql, settings_of_servers: dict[str, str], server: InProcessApp) -> Iterator[People]:
    """Where the role sales requires a second factor; ``server`` does the background work."""
    settings = {**settings_of_servers, "HOLDFAST_SECOND_FACTOR_ROLES": "sales"}
    with running_app(settings, background_work=False) as strict:
        everybody = People(sql, strict.address)
        yield everybody
        everybody.leave()


@pytest.fixture(scope="module")
def admin(people: People) -> Person:
    return people.signed_in("admin")


@pytest.fixture(scope="module")
def sales(people: People) -> Person:
    return people.signed_in("sales")


@pytest.fixture(scope="module")
def integrator(people: People) -> Person:
    return people.signed_in("integrator")


@pytest.fixture(scope="module")
def viewer(people: People) -> Person:
    return people.signed_in("viewer")


@pytest.fixture(scope="module")
def arab(people: People) -> Person:
    """An admin who reads Arabic, with the digits of it."""
    return people.signed_in("admin", language="ar", digits="arab")
