"""A server with its own settings on a database of its own, and what it takes to use it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support import states
from tests.support.bodies import full
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.server import RunningServer, serving
from tests.support.sql import Sql


@dataclass(frozen=True)
class Installation:
    server: RunningServer
    sql: Sql
    http: httpx.Client
    """With a key for the integration API."""

    def units(self, count: int, *, hold_seconds: float | None = None) -> list[Unit]:
        """Units on sale, in a project of their own."""
        project = add_project(self.sql)
        units = [Unit(self.http, project, f"A-{number}") for number in range(1, count + 1)]
        for unit in units:
            unit.create(full())
        if hold_seconds is not None:
            states.settle(self.sql, units[0], holdSeconds=hold_seconds)
        return units

    def new_project(self) -> Project:
        return add_project(self.sql)


@contextmanager
def installed(
    folder: Path, database_url: str, settings: Mapping[str, str], *arguments: str
) -> Iterator[Installation]:
    own = {"HOLDFAST_DATABASE_URL": database_url, **settings}
    with Sql(database_url) as sql, serving(folder, own, *arguments) as server:
        key = Keys(sql, database_url).issue().text
        with integration_client(server.address, key) as http:
            yield Installation(server, sql, http)


@contextmanager
def client_at(address: str, local_address: str) -> Iterator[httpx.Client]:
    """A client of the server at ``address`` that comes from another address of this machine."""
    transport = httpx.HTTPTransport(local_address=local_address)
    with httpx.Client(base_url=address, transport=transport, timeout=60) as http:
        yield http
