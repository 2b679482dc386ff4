"""Deliveries: listed and filtered, looked into attempt by attempt, sent again, held against the feed."""

import base64
import json
import re
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.support.bodies import minimal
from tests.support.client import Unit, succeeded
from tests.support.feed import Feed, concerning, page
from tests.support.installation import Installation
from tests.support.problems import invalid, problem
from tests.support.projects import add_project
from tests.support.webhooks import (
    ATTEMPTS,
    DELIVERIES,
    ENDPOINTS,
    NOBODY_LISTENS,
    Inbox,
    Registrar,
    pinged,
)

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LONG_AGO = "2020-01-01T00:00:00Z"
NUMBERS = ("delivered", "pending", "failed", "cancelled", "forgotten", "missing")
Failed = tuple[str, list[dict[str, Any]]]


@pytest.fixture
def registrar(impatient_registrar: Registrar) -> Registrar:
    return impatient_registrar


@pytest.fixture
def units(impatient: Installation) -> list[Unit]:
    """Three of one project, off sale."""
    project = add_project(impatient.sql)
    found = [Unit(impatient.http, project, f"A-{number}") for number in range(3)]
    for unit in found:
        unit.create(minimal(status="unavailable"))
    return found


def put_on_sale(*units: Unit) -> None:
    for unit in units:
        assert unit.patch({"status": "available"}).status_code == 200


def ids(page: dict[str, Any]) -> list[str]:
    return [one["id"] for one in page["deliveries"]]


def ended(registrar: Registrar, endpoint_id: str) -> list[dict[str, Any]]:
    """The deliveries of an endpoint, each once it is over; the latest first."""
    return [registrar.ended(one) for one in ids(registrar.deliveries(endpoint=endpoint_id))]


def test_a_delivered_one_tells_what_was_sent_and_what_came_back(
    registrar: Registrar, inbox: Inbox, units: list[Unit]
) -> None:
    inbox.headers, inbox.body = [("X-Twice", "a"), ("X-Twice", "b"), ("X-Once", "c")], "شكرا".encode()
    made = registrar.add(inbox.url, projects=[units[0].project.slug])
    put_on_sale(units[0])
    post = inbox.next()
    found = registrar.ended(post.event["id"])
    assert (found["event"], found["unitCode"], found["endpointId"]) == ("unit.available", "A-0", made["id"])
    assert (found["status"], found["reason"], found["nextAttemptAt"]) == ("delivered", None, None)
    assert (found["attemptCount"], found["lastStatusCode"], found["lastCause"]) == (1, 200, None)
    assert found["body"].encode() == post.body
    (attempt,) = found["attempts"]
    assert (attempt["number"], attempt["trigger"], attempt["cause"]) == (1, "first", None)
    sent = {"method": "POST", "url": inbox.url, "headers": post.headers, "body": post.body.decode()}
    assert attempt["request"] == sent
    response = attempt["response"]
    assert (response["statusCode"], response["body"], response["clipped"]) == (200, "شكرا", False)
    assert response["bodyBase64"] is None
    assert (response["headers"]["X-Twice"], response["headers"]["X-Once"]) == (["a", "b"], "c")
    times = [found["createdAt"], attempt["startedAt"], attempt["endedAt"], found["endedAt"]]
    assert all(MOMENT.fullmatch(time) for time in times)
    assert times == sorted(times)
    timings = attempt["timings"]
    assert list(timings) == ["dnsMs", "connectMs", "tlsMs", "firstByteMs"]
    assert (timings["dnsMs"], timings["tlsMs"]) == (None, None), "an address in the URL, and http"
    assert 0 < timings["firstByteMs"] <= attempt["durationMs"]
    assert attempt["address"] == "127.0.0.1"


def test_the_body_of_an_event_is_that_of_the_specification(registrar: Registrar, units: list[Unit]) -> None:
    endpoint_id = registrar.add(projects=[units[0].project.slug], paused=True)["id"]
    put_on_sale(units[0])
    (delivery_id,) = ids(registrar.deliveries(endpoint=endpoint_id))
    event = json.loads(registrar.delivery(delivery_id)["body"])
    assert list(event) == ["id", "type", "createdAt", "data"]
    assert event["data"] == {
        "unit": {
            "id": units[0].read()["id"],
            "code": "A-0",
            "projectSlug": units[0].project.slug,
            "status": "available",
            "previousStatus": "unavailable",
        },
        "booking": None,
    }


def test_one_that_nobody_answered_and_one_that_is_no_text_are_told(
    registrar: Registrar, inbox: Inbox
) -> None:
    found = registrar.ended(registrar.ping(registrar.add(NOBODY_LISTENS)["id"])["id"])
    assert (found["lastStatusCode"], found["lastCause"]) == (None, "The connection was refused.")
    attempt = found["attempts"][0]
    assert (attempt["statusCode"], attempt["response"], attempt["secretId"]) == (None, None, None)
    assert attempt["request"]["headers"] == {}
    inbox.body = b"\xff\x00caf\xe9"
    (attempt,) = pinged(registrar, inbox, 200)["attempts"]
    assert base64.b64decode(attempt["response"]["bodyBase64"]) == inbox.body
    assert attempt["response"]["body"] == "\ufffd\x00caf\ufffd"


def test_a_failed_one_tells_why_and_can_be_sent_again(registrar: Registrar, inbox: Inbox) -> None:
    endpoint_id = registrar.add(inbox.url)["id"]
    failed = pinged(registrar, inbox, 500, endpoint_id)
    assert (failed["status"], failed["attemptCount"], failed["lastStatusCode"]) == ("failed", ATTEMPTS, 500)
    assert failed["lastCause"] == "The receiver answered 500."
    assert [one["trigger"] for one in failed["attempts"]] == ["first", "retry"]
    assert {one["cause"] for one in failed["attempts"]} == {"The receiver answered 500."}
    shown = registrar.read(endpoint_id)
    assert (shown["state"], shown["failing"]["cause"]) == ("active", "The receiver answered 500.")
    assert shown["failing"]["goneAt"] is None
    inbox.status = 200
    sent = registrar.resend(failed["id"])
    assert (sent["id"], sent["status"], sent["endedAt"]) == (failed["id"], "pending", None)
    assert len(sent["attempts"]) == ATTEMPTS
    again = registrar.ended(failed["id"], ATTEMPTS + 1)
    assert (again["attempts"][-1]["number"], again["attempts"][-1]["trigger"]) == (ATTEMPTS + 1, "resend")
    posts = [inbox.next() for _ in range(ATTEMPTS + 1)]
    assert len({post.body for post in posts}) == 1
    assert {post.headers["X-Service-Delivery"] for post in posts} == {failed["id"]}
    inbox.status = 500
    registrar.resend(failed["id"])
    last = registrar.ended(failed["id"], 2 * ATTEMPTS + 1)
    assert last["status"] == "failed"
    assert [one["trigger"] for one in last["attempts"]] == ["first", "retry", "resend", "resend", "retry"]


def test_an_endpoint_that_answers_410_is_shown_as_failing_until_it_answers_again(
    registrar: Registrar, inbox: Inbox
) -> None:
    endpoint_id = registrar.add(inbox.url)["id"]
    failed = pinged(registrar, inbox, 410, endpoint_id)
    shown = registrar.read(endpoint_id)
    assert shown["state"] == "failing"
    assert list(shown["failing"]) == ["since", "cause", "goneAt"]
    assert shown["failing"]["cause"] == "The receiver answered 410."
    assert shown["failing"]["goneAt"] >= failed["createdAt"]
    inbox.status = 200
    registrar.resend(failed["id"])
    registrar.ended(failed["id"], ATTEMPTS + 1)
    shown = registrar.read(endpoint_id)
    assert (shown["state"], shown["failing"]) == ("active", None)


def test_what_is_unknown_is_neither_shown_nor_sent(registrar: Registrar) -> None:
    unknown = str(uuid4())
    for answer in (registrar.http.get(f"{DELIVERIES}/{unknown}"), registrar.ask_to_resend(unknown)):
        assert problem(answer, 404)["type"] == "/problems/unknown-delivery"


def test_deliveries_are_listed_page_by_page_the_latest_first_while_they_end_and_others_come(
    registrar: Registrar, inbox: Inbox
) -> None:
    endpoint_id = registrar.add(inbox.url, paused=True)["id"]
    pings = [registrar.ping(endpoint_id) for _ in range(4)]
    for found in pings:
        assert (found["status"], found["nextAttemptAt"]) == ("pending", found["createdAt"])
    first = registrar.deliveries(endpoint=endpoint_id, limit=2)
    registrar.change(endpoint_id, paused=False)
    ended(registrar, endpoint_id)
    registrar.ping(endpoint_id)
    rest = registrar.deliveries(endpoint=endpoint_id, limit=2, cursor=first["nextCursor"])
    assert ids(first) + ids(rest) == [one["id"] for one in pings][::-1]
    assert rest["nextCursor"] is None, "a full last page is the last"


def test_deliveries_are_filtered(registrar: Registrar, inbox: Inbox, units: list[Unit]) -> None:
    endpoint_id = registrar.add(inbox.url, projects=[units[0].project.slug])["id"]
    found = {status: pinged(registrar, inbox, status, endpoint_id)["id"] for status in (204, 404, 500)}
    registrar.change(endpoint_id, paused=True)
    put_on_sale(units[0])
    (latest, *_) = registrar.deliveries(endpoint=endpoint_id)["deliveries"]
    made, waiting = latest["createdAt"], latest["id"]
    later = (datetime.fromisoformat(made) + timedelta(milliseconds=1)).isoformat()
    for query, expected in (
        ({"status": "delivered"}, [found[204]]),
        ({"status": "failed"}, [found[500], found[404]]),
        ({"status": "pending"}, [waiting]),
        ({"status": "cancelled"}, []),
        ({"code": "4xx"}, [found[404]]),
        ({"code": "none"}, [waiting]),
        ({"code": "4xx", "status": "delivered"}, []),
        ({"event": "unit.available"}, [waiting]),
        ({"event": "ping"}, [found[500], found[404], found[204]]),
        ({"unitCode": "A-0"}, [waiting]),
        ({"unitCode": "A-0", "event": "ping"}, []),
        ({"since": made}, [waiting]),
        ({"since": later}, []),
        ({"until": later, "since": made}, [waiting]),
        ({"until": "0001-01-01T00:00:00Z"}, []),
    ):
        assert ids(registrar.deliveries(endpoint=endpoint_id, **query)) == expected, query


def test_every_wrong_filter_is_refused(registrar: Registrar, impatient: Installation) -> None:
    wrong = {
        "endpoint": "x", "event": "unit.gone", "unitCode": " A", "status": "lost", "code": "200",
        "since": "yesterday", "until": "2026-13-01T00:00:00Z", "cursor": "x", "limit": "0", "color": "blue",
    }  # fmt: skip
    answer = registrar.http.get(DELIVERIES, params=wrong)
    invalid(answer, *(f"/query/{name}" for name in wrong))
    invalid(registrar.http.get(f"{DELIVERIES}?event=unit.held&event=unit.sold"), "/query/event")
    cursor_of_another_list = page(impatient.http)["nextCursor"]
    for path in (ENDPOINTS, DELIVERIES):
        invalid(registrar.http.get(path, params={"cursor": cursor_of_another_list}), "/query/cursor")


def recover(registrar: Registrar, endpoint_id: str, status: int = 202, **selection: Any) -> dict[str, Any]:
    return succeeded(registrar.post(endpoint_id, "recover", {"since": LONG_AGO, **selection}), status)


def count(registrar: Registrar, endpoint_id: str, **selection: Any) -> int:
    answer = recover(registrar, endpoint_id, 200, dryRun=True, **selection)
    assert answer["dryRun"] is True
    return int(answer["count"])


@pytest.fixture
def failed(registrar: Registrar, inbox: Inbox, units: list[Unit]) -> Failed:
    """An endpoint, and what has failed for it."""
    inbox.status = 500
    endpoint_id = registrar.add(inbox.url, projects=[units[0].project.slug])["id"]
    put_on_sale(*units)
    found = ended(registrar, endpoint_id)
    assert [one["status"] for one in found] == ["failed"] * 3
    return endpoint_id, found


def test_all_that_failed_is_sent_again_under_the_same_ids(
    registrar: Registrar, inbox: Inbox, failed: Failed
) -> None:
    endpoint_id, before = failed
    inbox.status = 200
    other = registrar.add(inbox.url)["id"]
    registrar.ended(registrar.ping(other)["id"])
    assert (count(registrar, other), recover(registrar, other)["count"]) == (0, 0)
    answer = recover(registrar, endpoint_id)
    assert answer == {"count": 3, "dryRun": False, "since": "2020-01-01T00:00:00.000Z", "until": None}
    after = [registrar.ended(one["id"], ATTEMPTS + 1) for one in before]
    assert [one["status"] for one in after] == ["delivered"] * 3
    assert [one["body"] for one in after] == [one["body"] for one in before]
    assert count(registrar, endpoint_id) == 0


def test_a_dry_run_counts_what_is_selected_and_sends_nothing(registrar: Registrar, failed: Failed) -> None:
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
    answer = succeeded(registrar.post(endpoint_id, "recover?dryRun=true", {"since": LONG_AGO}))
    assert (answer["count"], answer["dryRun"]) == (3, True)
    assert ended(registrar, endpoint_id) == before
    assert recover(registrar, endpoint_id, unitCode="A-1")["count"] == 1


def test_the_deliveries_agree_with_the_feed_unless_one_is_lost(
    registrar: Registrar, impatient: Installation, inbox: Inbox, units: list[Unit]
) -> None:
    start = Feed(impatient.http).end()
    endpoint_id = registrar.add(inbox.url, projects=[units[0].project.slug])["id"]
    for unit, status in ((units[0], 200), (units[1], 500)):
        inbox.status = status
        put_on_sale(unit)
        ended(registrar, endpoint_id)
    half = registrar.reconciliation(endpoint_id, after=start)
    assert (half["events"], half["delivered"], half["failed"]) == (2, 1, 1)
    registrar.change(endpoint_id, paused=True)
    put_on_sale(units[2])
    registrar.ping(endpoint_id)
    found = registrar.reconciliation(endpoint_id, after=start)
    assert list(found) == ["endpointId", "after", "upTo", "events", *NUMBERS, "agrees"]
    assert [found[name] for name in ("events", *NUMBERS)] == [3, 1, 1, 1, 0, 0, 0]
    assert (found["after"], found["agrees"]) == (start, True)
    assert registrar.reconciliation(endpoint_id, after=half["upTo"])["events"] == 1
    assert concerning(units[0].project, page(impatient.http, after=found["upTo"])["events"]) == []
    impatient.sql.execute(
        "delete from pending_delivery where endpoint_id = $1 and unit_code = 'A-2'", endpoint_id
    )
    found = registrar.reconciliation(endpoint_id)
    assert (found["events"], found["pending"], found["missing"], found["agrees"]) == (3, 0, 1, False)


def test_a_cursor_that_the_feed_has_not_given_is_refused(registrar: Registrar) -> None:
    endpoint_id = registrar.add()["id"]
    answer = registrar.http.get(f"{ENDPOINTS}/{endpoint_id}/reconciliation", params={"after": "x"})
    invalid(answer, "/query/after")
