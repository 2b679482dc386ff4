"""An application with its own settings on a database of its own, and what it takes to use it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from holdfast.domain.api_key import Scope
from tests.support.app import running_app, transport_to
from tests.support.backoffice import Desk
from tests.support.bodies import full
from tests.support.client import Unit, integration_client
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.sql import Sql


@dataclass(frozen=True)
class Installation:
    address: str
    sql: Sql
    http: httpx.Client
    """With a key that opens everything."""

    @property
    def desk(self) -> Desk:
        return Desk(self.http)

    def units(self, count: int, *, hold_seconds: float | None = None) -> list[Unit]:
        """Units on sale, in a project of their own."""
        project = add_project(self.sql)
        units = [Unit(self.http, project, f"A-{number}") for number in range(1, count + 1)]
        for unit in units:
            unit.create(full())
        if hold_seconds is not None:
            self.desk.settle(project, holdSeconds=hold_seconds)
        return units


@contextmanager
def installed(database_url: str, settings: Mapping[str, str]) -> Iterator[Installation]:
    """The application in this process."""
    with (
        running_app({"HOLDFAST_DATABASE_URL": database_url, **settings}) as app,
        opened(app.address, database_url) as installation,
    ):
        yield installation


@contextmanager
def opened(address: str, database_url: str) -> Iterator[Installation]:
    """What is served at this address already."""
    with Sql(database_url) as sql:
        key = Keys(sql, database_url).issue(scopes=tuple(Scope)).text
        with integration_client(address, key) as http:
            yield Installation(address, sql, http)


@contextmanager
def client_at(address: str, peer: str) -> Iterator[httpx.Client]:
    """A client of the server at ``address`` that comes from another address of this machine."""
    with httpx.Client(base_url=address, transport=transport_to(address, peer), timeout=60) as http:
        yield http
