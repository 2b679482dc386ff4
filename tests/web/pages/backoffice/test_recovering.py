"""All that failed at an endpoint is sent again: counted, confirmed, step by step."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from holdfast.operations.deliveries import RESENT_AT_ONCE
from tests.support.failures import failed
from tests.support.sql import Sql
from tests.support.staff_client import Person
from tests.support.webhooks import Inbox, Registrar

HIDDEN = re.compile(r'<input type="hidden" name="(since|until|event|total|resent)" value="([^"]*)">')
PENDING = "select count(*) from pending_delivery where endpoint_id = $1::text::uuid"


def path_of(endpoint: dict[str, object]) -> str:
    return f"/backoffice/settings/api/webhooks/{endpoint['id']}/recover"


def form_of(page: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in HIDDEN.findall(page)}


def since(ago: timedelta = timedelta(hours=1)) -> str:
    """As somebody in Riyadh would type it."""
    return (datetime.now(UTC) + timedelta(hours=3) - ago).strftime("%Y-%m-%dT%H:%M")


def test_failed_deliveries_are_counted_first_and_nothing_is_sent(
    admin: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add(paused=True)
    failed(sql, endpoint["id"], 3)
    assert "since" in admin.see(path_of(endpoint))
    shown = admin.see(f"{path_of(endpoint)}?since={since()}")
    assert "3 deliveries failed since then" in shown
    assert sql.value(PENDING, endpoint["id"]) == 0


def test_they_are_sent_again_once_that_is_confirmed(
    integrator: Person, registrar: Registrar, sql: Sql, inbox: Inbox
) -> None:
    endpoint = registrar.add(inbox.url)
    made = set(map(str, failed(sql, endpoint["id"], 3)))
    fields = form_of(integrator.see(f"{path_of(endpoint)}?since={since()}"))
    assert "3 failed deliveries are being sent again." in integrator.done(path_of(endpoint), fields)
    assert {inbox.next().event["id"] for _ in range(3)} == made


def test_many_are_sent_in_steps_that_go_on_from_each_other(
    admin: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add(paused=True)
    failed(sql, endpoint["id"], RESENT_AT_ONCE + 5)
    fields = form_of(admin.see(f"{path_of(endpoint)}?since={since()}"))
    answer = admin.submit(path_of(endpoint), fields)
    assert answer.status_code == 200
    assert "1,000 of 1,005 are on their way again" in answer.text
    assert sql.value(PENDING, endpoint["id"]) == RESENT_AT_ONCE
    ended = admin.post(
        path_of(endpoint),
        data={"csrf": csrf_of(answer.text), **form_of(answer.text)},
        headers={**admin.sent(), "sec-fetch-site": "same-origin", "hx-request": "true"},
    )
    assert ended.headers["hx-redirect"] == path_of(endpoint).removesuffix("/recover")
    assert sql.value(PENDING, endpoint["id"]) == RESENT_AT_ONCE + 5
    assert "1,005 failed deliveries are being sent again." in admin.see(ended.headers["hx-redirect"])


def csrf_of(page: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{128})"', page)
    assert found is not None
    return found[1]


def test_what_failed_before_the_time_that_is_named_is_left_alone(
    admin: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add(paused=True)
    failed(sql, endpoint["id"])
    shown = admin.see(f"{path_of(endpoint)}?since={since(timedelta(hours=-1))}")
    assert "Nothing failed since then" in shown
    assert "0 failed" not in shown


def test_one_event_alone_can_be_meant(admin: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add(paused=True)
    failed(sql, endpoint["id"])
    assert "Nothing failed" in admin.see(f"{path_of(endpoint)}?since={since()}&event=unit.sold")
    assert form_of(admin.see(f"{path_of(endpoint)}?since={since()}&event=ping"))["event"] == "ping"


def test_a_time_that_is_none_is_told_beside_its_field(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add(paused=True)
    shown = admin.see(f"{path_of(endpoint)}?since=yesterday", 422)
    assert "Say since when." in shown


@pytest.mark.parametrize("name", ["since", "until", "total", "resent"])
def test_a_form_with_nonsense_in_it_sends_nothing(
    admin: Person, registrar: Registrar, sql: Sql, name: str
) -> None:
    endpoint = registrar.add(paused=True)
    failed(sql, endpoint["id"])
    fields = form_of(admin.see(f"{path_of(endpoint)}?since={since()}"))
    assert admin.submit(path_of(endpoint), {**fields, name: "nonsense"}).status_code == 400
    assert sql.value(PENDING, endpoint["id"]) == 0
