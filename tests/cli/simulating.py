"""What the tests of `holdfast simulate` share: projects with something for sale."""

import httpx

from tests.support import exact_json
from tests.support.bodies import full
from tests.support.client import JSON, Project
from tests.support.projects import add_project
from tests.support.sql import Sql

ALL_SCOPES = ("integration", "backoffice", "payments")
OWN_KEYS = "select revoked_at from api_key where name = 'holdfast simulate' order by created_at"


def project_on_sale(http: httpx.Client, sql: Sql, units: int) -> Project:
    made = add_project(sql)
    put_on_sale(http, made, units)
    return made


def put_on_sale(http: httpx.Client, project: Project, count: int) -> None:
    units = [
        full(code=f"A-{number:02}", priceSar=500_000 + 10_000 * number, bedrooms=number % 4)
        for number in range(count)
    ]
    stored = http.put(project.units_url, content=exact_json.write(units), headers={"Content-Type": JSON})
    assert stored.json()["counts"]["created"] == count
