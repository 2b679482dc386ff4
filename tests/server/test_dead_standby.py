"""The server goes on answering reads while its database waits for a synchronous standby that is away."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from anyio.from_thread import start_blocking_portal

from tests.support.bodies import minimal
from tests.support.buying import Buyer, booking_url
from tests.support.client import Unit, integration_client
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.server import RunningServer, wait_until
from tests.support.sql import Sql
from tests.support.staff_client import People
from tests.support.standby import without_standby

SCOPES = ("integration", "backoffice", "admin")
HUNG = "select count(*) from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()"
# As after a restart of the primary: what waits for the standby is seen, and is not on it.
SHOW = """
    select pg_cancel_backend(pid) from pg_stat_activity
    where wait_event = 'SyncRep' and datname = current_database()
"""
IS_SHOWN = "select exists (select from unit where code like 'B-%')"
AN_HOUR_AGO = """
    update staff_session set last_seen_at = last_seen_at - interval '1 hour', notice = '["Done.", "done"]'
    where staff_id = $1::text::uuid
"""
API = [
    "/v1/integration/projects",
    "/v1/integration/projects/{slug}/units",
    "/v1/integration/projects/{slug}/units/A-1",
    "/v1/integration/events",
    "/v1/storefront/projects/{slug}/units",
    "/v1/storefront/projects/{slug}/units/A-2",
    "/v1/backoffice/projects",
    "/v1/backoffice/projects/{slug}",
    "/v1/backoffice/projects/{slug}/units",
    "/v1/backoffice/bookings/{reference}",
    "/v1/backoffice/deliveries",
    "/v1/backoffice/endpoints",
    "/v1/backoffice/keys",
    "/v1/backoffice/staff",
    "/v1/backoffice/audit",
]
PAGES = [
    "/backoffice/projects",
    "/backoffice/projects/{slug}",
    "/backoffice/projects/{slug}/units/A-1",
    "/backoffice/projects/{slug}/figures",
    "/backoffice/projects/{slug}/layout",
    "/backoffice/projects/{slug}/settings",
    "/backoffice/projects/{slug}/import",
    "/backoffice/projects/{slug}/export.csv",
    "/backoffice/bookings",
    "/backoffice/bookings/{reference}",
    "/backoffice/deliveries",
    "/backoffice/settings/api/keys",
    "/backoffice/settings/api/webhooks",
    "/backoffice/staff",
    "/backoffice/audit",
    "/backoffice/account",
    "/backoffice/sign-in",
]
PUBLIC = ["/healthz", "/readyz", "/p/{slug}", "/p/{slug}/units/A-2", "/openapi.json", "/"]


@contextmanager
def standby_away(url: str) -> Iterator[None]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(without_standby(url)):
        yield


@pytest.mark.slow
def test_reads_of_every_surface_go_on(
    real_server: RunningServer, database_url: str, sql: Sql, keys: Keys
) -> None:
    address, people = real_server.address, People(sql, real_server.address)
    with integration_client(address, keys.issue(scopes=SCOPES).text) as client:
        project = add_project(sql)
        unit, other = Unit(client, project, "A-1"), Unit(client, project, "A-2")
        unit.create(minimal())
        other.create(minimal())
        hold = Buyer(client).hold(unit)
        person = people.signed_in()
        sql.execute(AN_HOUR_AGO, person.staff_id)
        names = {"slug": project.slug, "reference": hold.reference}
        fresh_key = keys.issue(scopes=SCOPES).text
    with standby_away(database_url), ThreadPoolExecutor() as pool:
        putting = [
            pool.submit(_put, address, fresh_key, f"{project.units_url}/B-{number}") for number in range(6)
        ]
        wait_until(lambda: sql.rows(SHOW) and sql.value(IS_SHOWN))
        wait_until(lambda: sql.value(HUNG) > 0)
        with integration_client(address, fresh_key, may_fail=True) as reader:
            answers = {path: reader.get(path.format(**names)).status_code for path in API}
            own = reader.get(booking_url(hold.reference), headers={"Authorization": f"Bearer {hold.token}"})
            answers["own booking"] = own.status_code
        person.event_hooks = {}
        answers |= {path: person.look(path.format(**names)).status_code for path in PAGES + PUBLIC}
        assert not {path: status for path, status in answers.items() if status not in (200, 303)}
        assert not any(one.done() and one.result() in (200, 201) for one in putting)
    people.leave()


def _put(address: str, key: str, url: str) -> int:
    with integration_client(address, key, may_fail=True) as client:
        return client.put(url, json={"type": "apartment", "areaSqm": 120.5, "priceSar": 950_000}).status_code
