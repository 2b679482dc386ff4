"""The list of deliveries: page by page, and filtered."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.bodies import minimal
from tests.support.client import Project, Unit
from tests.support.installation import Installation
from tests.support.webhooks import Inbox, Registrar, pinged


@pytest.fixture
def installation(impatient: Installation) -> Installation:
    return impatient


@pytest.fixture
def registrar(impatient_registrar: Registrar) -> Registrar:
    return impatient_registrar


@pytest.fixture
def project(installation: Installation) -> Project:
    return installation.new_project()


def ids(page: dict[str, Any]) -> list[str]:
    return [one["id"] for one in page["deliveries"]]


def test_deliveries_are_listed_page_by_page_the_latest_first(registrar: Registrar) -> None:
    endpoint = registrar.add(paused=True)["id"]
    made = [registrar.ping(endpoint)["id"] for _ in range(5)]
    listed: list[str] = []
    query: dict[str, str | int] = {"endpoint": endpoint, "limit": 2}
    while True:
        page = registrar.deliveries(**query)
        listed += ids(page)
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
    assert listed == made[::-1]


def test_a_full_last_page_is_the_last(registrar: Registrar) -> None:
    endpoint = registrar.add(paused=True)["id"]
    registrar.ping(endpoint)
    assert registrar.deliveries(endpoint=endpoint, limit=1)["nextCursor"] is None


def test_pages_stay_stable_while_deliveries_end_and_others_come(registrar: Registrar, inbox: Inbox) -> None:
    endpoint = registrar.add(inbox.url, paused=True)["id"]
    made = [registrar.ping(endpoint)["id"] for _ in range(4)]
    first = registrar.deliveries(endpoint=endpoint, limit=2)
    registrar.change(endpoint, paused=False)
    for delivery_id in made:
        registrar.ended(delivery_id)
    registrar.ping(endpoint)
    rest = registrar.deliveries(endpoint=endpoint, limit=2, cursor=first["nextCursor"])
    assert ids(first) + ids(rest) == made[::-1]


def test_deliveries_are_filtered_by_status_and_by_the_class_of_the_last_answer(
    registrar: Registrar, inbox: Inbox
) -> None:
    endpoint = registrar.add(inbox.url)["id"]
    found = {status: pinged(registrar, inbox, status, endpoint)["id"] for status in (204, 301, 404, 500)}
    registrar.change(endpoint, paused=True)
    waiting = registrar.ping(endpoint)["id"]

    def listed(**query: str) -> list[str]:
        return ids(registrar.deliveries(endpoint=endpoint, **query))

    assert listed(status="delivered") == [found[204]]
    assert listed(status="failed") == [found[500], found[404], found[301]]
    assert listed(status="pending") == [waiting]
    assert listed(status="cancelled") == []
    for status, name in ((204, "2xx"), (301, "3xx"), (404, "4xx"), (500, "5xx")):
        assert listed(code=name) == [found[status]]
    assert listed(code="none") == [waiting]
    assert listed(code="1xx") == []
    assert listed(code="4xx", status="delivered") == []


def test_deliveries_are_filtered_by_event_and_unit_code(
    registrar: Registrar, installation: Installation, project: Project
) -> None:
    endpoint = registrar.add(projects=[project.slug], paused=True)["id"]
    for code in ("A-101", "A-102"):
        unit = Unit(installation.http, project, code)
        unit.create(minimal())
        unit.patch({"status": "unavailable"})
    registrar.ping(endpoint)

    def listed(**query: str) -> list[tuple[str, str | None]]:
        page = registrar.deliveries(endpoint=endpoint, **query)
        return [(one["event"], one["unitCode"]) for one in page["deliveries"]]

    off_sale = [("unit.unavailable", "A-102"), ("unit.unavailable", "A-101")]
    assert listed() == [("ping", None), *off_sale]
    assert listed(event="unit.unavailable") == off_sale
    assert listed(event="ping") == [("ping", None)]
    assert listed(event="unit.sold") == []
    assert listed(unitCode="A-101") == [("unit.unavailable", "A-101")]
    assert listed(unitCode="A-101", event="ping") == []


def test_deliveries_are_filtered_by_the_time_they_were_made(registrar: Registrar) -> None:
    endpoint = registrar.add(paused=True)["id"]
    made = registrar.ping(endpoint)
    at = datetime.fromisoformat(made["createdAt"])
    later = (at + timedelta(milliseconds=1)).isoformat()

    def listed(**query: str) -> list[str]:
        return ids(registrar.deliveries(endpoint=endpoint, **query))

    assert listed(since=made["createdAt"]) == listed(until=later) == [made["id"]]
    assert listed(since=later) == listed(until=made["createdAt"]) == []
    assert listed(since=made["createdAt"], until=later) == [made["id"]]
    assert listed(until="0001-01-01T00:00:00Z") == []
    assert listed(since="9999-12-31T23:59:59.999Z") == []
