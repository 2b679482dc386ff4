"""All that failed is sent again at once, and the deliveries of an endpoint agree with the feed."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.backoffice import succeeded
from tests.support.bodies import minimal
from tests.support.client import Unit
from tests.support.feed import Feed, concerning, page
from tests.support.installation import Installation
from tests.support.problems import invalid
from tests.support.webhooks import ATTEMPTS, ENDPOINTS, Inbox, Registrar

LONG_AGO = "2020-01-01T00:00:00Z"
NUMBERS = ("delivered", "pending", "failed", "cancelled", "forgotten", "missing")


@pytest.fixture
def registrar(impatient_registrar: Registrar) -> Registrar:
    return impatient_registrar


@pytest.fixture
def units(impatient: Installation) -> list[Unit]:
    project = impatient.new_project()
    found = [Unit(impatient.http, project, f"A-{number}") for number in range(3)]
    for unit in found:
        unit.create(minimal(status="unavailable"))
    return found


def put_on_sale(*units: Unit) -> None:
    for unit in units:
        assert unit.patch({"status": "available"}).status_code == 200


def ended(registrar: Registrar, endpoint_id: str) -> list[dict[str, Any]]:
    """The deliveries of an endpoint, each once it is over; the latest first."""
    page = registrar.deliveries(endpoint=endpoint_id)
    return [registrar.ended(one["id"]) for one in page["deliveries"]]


def recover(registrar: Registrar, endpoint_id: str, status: int = 202, **selection: Any) -> dict[str, Any]:
    body = {"since": LONG_AGO, **selection}
    return succeeded(registrar.post(endpoint_id, "recover", body), status)


def count(registrar: Registrar, endpoint_id: str, **selection: Any) -> int:
    answer = recover(registrar, endpoint_id, 200, dryRun=True, **selection)
    assert answer["dryRun"] is True
    return int(answer["count"])


@pytest.fixture
def failed(registrar: Registrar, inbox: Inbox, units: list[Unit]) -> tuple[str, list[dict[str, Any]]]:
    """An endpoint, and what has failed for it."""
    inbox.status = 500
    endpoint_id = registrar.add(inbox.url, projects=[units[0].project.slug])["id"]
    put_on_sale(*units)
    found = ended(registrar, endpoint_id)
    assert [one["status"] for one in found] == ["failed"] * 3
    return endpoint_id, found


def test_all_that_failed_is_sent_again_under_the_same_ids(
    registrar: Registrar, inbox: Inbox, failed: tuple[str, list[dict[str, Any]]]
) -> None:
    endpoint_id, before = failed
    inbox.status = 200
    answer = recover(registrar, endpoint_id)
    assert answer == {"count": 3, "dryRun": False, "since": "2020-01-01T00:00:00.000Z", "until": None}
    after = [registrar.ended(one["id"], ATTEMPTS + 1) for one in before]
    assert [one["status"] for one in after] == ["delivered"] * 3
    assert [one["body"] for one in after] == [one["body"] for one in before]
    assert count(registrar, endpoint_id) == 0


def test_a_dry_run_counts_and_sends_nothing(
    registrar: Registrar, failed: tuple[str, list[dict[str, Any]]]
) -> None:
    endpoint_id, before = failed
    assert count(registrar, endpoint_id) == 3
    answer = succeeded(registrar.post(endpoint_id, "recover?dryRun=true", {"since": LONG_AGO}))
    assert (answer["count"], answer["dryRun"]) == (3, True)
    assert ended(registrar, endpoint_id) == before


def test_a_recovery_is_for_what_is_selected_only(
    registrar: Registrar, failed: tuple[str, list[dict[str, Any]]]
) -> None:
    endpoint_id, before = failed
    ends = sorted(datetime.fromisoformat(one["endedAt"]) for one in before)
    later = (ends[-1] + timedelta(milliseconds=1)).isoformat()
    assert count(registrar, endpoint_id, unitCode="A-1") == 1
    assert count(registrar, endpoint_id, unitCode="A-9") == 0
    assert count(registrar, endpoint_id, events=["unit.available"]) == 3
    assert count(registrar, endpoint_id, events=["unit.sold", "ping"]) == 0
    assert count(registrar, endpoint_id, since=ends[0].isoformat(), until=later) == 3
    assert count(registrar, endpoint_id, since=later) == 0
    assert count(registrar, endpoint_id, until=ends[0].isoformat()) == 0
    assert recover(registrar, endpoint_id, unitCode="A-1")["count"] == 1


def test_what_did_not_fail_and_what_is_of_others_is_left_alone(
    registrar: Registrar, inbox: Inbox, failed: tuple[str, list[dict[str, Any]]]
) -> None:
    other = registrar.add(inbox.url)["id"]
    inbox.status = 200
    registrar.ended(registrar.ping(other)["id"])
    assert count(registrar, other) == 0
    assert recover(registrar, other)["count"] == 0
    assert count(registrar, failed[0]) == 3


def test_more_than_one_lot_is_sent_again(
    registrar: Registrar, impatient: Installation, failed: tuple[str, list[dict[str, Any]]]
) -> None:
    endpoint_id, _ = failed
    registrar.change(endpoint_id, paused=True)
    impatient.sql.execute(
        """
        insert into ended_delivery (id, endpoint_id, event, created_at, body, attempts, status, ended_at)
        select gen_random_uuid(), $1, 'ping', now(), '{}', 2, 'failed', now() from generate_series(1, 2500)
        """,
        endpoint_id,
    )
    assert count(registrar, endpoint_id) == 2503
    assert recover(registrar, endpoint_id)["count"] == 2503
    assert count(registrar, endpoint_id) == 0


def test_the_deliveries_agree_with_the_feed_whatever_became_of_them(
    registrar: Registrar, impatient: Installation, inbox: Inbox, units: list[Unit]
) -> None:
    start = Feed(impatient.http).end()
    endpoint_id = registrar.add(inbox.url, projects=[units[0].project.slug])["id"]
    for unit, status in ((units[0], 200), (units[1], 500)):
        inbox.status = status
        put_on_sale(unit)
        ended(registrar, endpoint_id)
    registrar.change(endpoint_id, paused=True)
    put_on_sale(units[2])
    registrar.ping(endpoint_id)
    found = registrar.reconciliation(endpoint_id, after=start)
    assert list(found) == ["endpointId", "after", "upTo", "events", *NUMBERS, "agrees"]
    assert [found[name] for name in ("events", *NUMBERS)] == [3, 1, 1, 1, 0, 0, 0]
    assert (found["after"], found["agrees"]) == (start, True)
    assert concerning(units[0].project, page(impatient.http, after=found["upTo"])["events"]) == []
    registrar.change(endpoint_id, events=["unit.sold"])
    assert registrar.reconciliation(endpoint_id, after=start)["cancelled"] == 1


def test_a_reconciliation_goes_on_from_where_the_last_one_ended(
    registrar: Registrar, units: list[Unit]
) -> None:
    endpoint_id = registrar.add(projects=[units[0].project.slug], paused=True)["id"]
    put_on_sale(units[0])
    first = registrar.reconciliation(endpoint_id)
    assert (first["events"], first["pending"]) == (1, 1)
    put_on_sale(units[1], units[2])
    assert registrar.reconciliation(endpoint_id, after=first["upTo"])["events"] == 2
    assert registrar.reconciliation(endpoint_id)["events"] == 3


def test_a_delivery_that_is_lost_is_shown_as_missing(
    registrar: Registrar, impatient: Installation, units: list[Unit]
) -> None:
    endpoint_id = registrar.add(projects=[units[0].project.slug], paused=True)["id"]
    put_on_sale(*units)
    assert registrar.reconciliation(endpoint_id)["agrees"] is True
    impatient.sql.execute(
        "delete from pending_delivery where endpoint_id = $1 and unit_code = 'A-1'", endpoint_id
    )
    found = registrar.reconciliation(endpoint_id)
    assert (found["events"], found["pending"], found["missing"], found["agrees"]) == (3, 2, 1, False)


def test_a_cursor_that_the_feed_has_not_given_is_refused(registrar: Registrar) -> None:
    endpoint_id = registrar.add()["id"]
    answer = registrar.http.get(f"{ENDPOINTS}/{endpoint_id}/reconciliation", params={"after": "x"})
    invalid(answer, "/query/after")
