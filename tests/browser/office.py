"""A running installation, and what stands around the browser in it: systems with keys, buyers, receivers."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from holdfast.demo.project import DemoUnit
from tests.browser.staff import People
from tests.conftest import UNLIMITED
from tests.support.backoffice import Desk
from tests.support.buying import Buyer
from tests.support.client import Project, Unit, integration_client, put_array
from tests.support.keys import Keys
from tests.support.server import RunningServer, serving
from tests.support.sql import Sql
from tests.support.webhooks import IMPATIENT, Registrar

EVERY_SCOPE = ("integration", "backoffice", "payments", "admin")
SETTINGS = {**UNLIMITED, **IMPATIENT, "HOLDFAST_SECOND_FACTOR_ROLES": "integrator"}


@dataclass(frozen=True)
class Office:
    server: RunningServer
    settings: Mapping[str, str]
    sql: Sql
    people: People
    http: httpx.Client
    """With a key that opens everything."""

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def desk(self) -> Desk:
        return Desk(self.http)

    @property
    def buyer(self) -> Buyer:
        return Buyer(self.http)

    @property
    def registrar(self) -> Registrar:
        return Registrar(self.http)

    def new_project(self, slug: str, name: str, units: Iterable[dict[str, Any]] = ()) -> Project:
        made = self.http.post("/v1/backoffice/projects", json={"slug": slug, "name": name})
        assert made.status_code == 201, made.text
        project = Project(made.json()["id"], slug, name)
        stored = put_array(self.http, project, list(units))
        assert not stored.json()["counts"]["refused"], stored.text
        return project

    def unit(self, project: Project, code: str) -> Unit:
        return Unit(self.http, project, code)


@contextmanager
def open_office(folder: Path, database_url: str, *arguments: str) -> Iterator[Office]:
    settings = {"HOLDFAST_DATABASE_URL": database_url, **SETTINGS}
    with Sql(database_url) as sql, serving(folder, settings, *arguments) as server:
        key = Keys(sql, database_url).issue(scopes=EVERY_SCOPE).text
        with integration_client(server.address, key) as http:
            yield Office(server, settings, sql, People(sql), http)


def body_of(unit: DemoUnit) -> dict[str, Any]:
    """A unit of the demo as an external system would send it."""
    fields = unit.fields
    return {
        "code": unit.code,
        "type": fields.type,
        "areaSqm": fields.area_sqm,
        "priceSar": fields.price_sar,
        "vatIncluded": fields.vat_included,
        "vatRate": fields.vat_rate,
        "depositPercent": fields.deposit_percent,
        "bedrooms": fields.bedrooms,
        "bathrooms": fields.bathrooms,
        "deliveryYear": fields.delivery_year,
        "floor": fields.floor,
        "description": fields.description,
        "images": [],
        "files": list(fields.files),
    }
