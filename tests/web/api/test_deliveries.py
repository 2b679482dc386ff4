"""The log: deliveries listed and filtered, looked into attempt by attempt, and sent again."""

import base64
import json
import re
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tests.support.bodies import minimal
from tests.support.client import Project, Unit
from tests.support.installation import Installation
from tests.support.problems import problem
from tests.support.webhooks import ATTEMPTS, DELIVERIES, NOBODY_LISTENS, Inbox, Registrar, pinged

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture
def installation(impatient: Installation) -> Installation:
    return impatient


@pytest.fixture
def registrar(impatient_registrar: Registrar) -> Registrar:
    return impatient_registrar


@pytest.fixture
def project(installation: Installation) -> Project:
    return installation.new_project()


@pytest.fixture
def off_sale(installation: Installation, project: Project) -> Unit:
    unit = Unit(installation.http, project, "A-101")
    unit.create(minimal(status="unavailable"))
    return unit


def test_a_delivered_one_tells_what_was_sent_and_what_came_back(
    registrar: Registrar, inbox: Inbox, off_sale: Unit, project: Project
) -> None:
    inbox.headers, inbox.body = [("X-Twice", "a"), ("X-Twice", "b"), ("X-Once", "c")], "شكرا".encode()
    made = registrar.add(inbox.url, projects=[project.slug])
    off_sale.patch({"status": "available"})
    post = inbox.next()
    found = registrar.ended(post.event["id"])
    assert (found["event"], found["unitCode"], found["endpointId"]) == ("unit.available", "A-101", made["id"])
    assert (found["status"], found["reason"], found["nextAttemptAt"]) == ("delivered", None, None)
    assert (found["attemptCount"], found["lastStatusCode"], found["lastCause"]) == (1, 200, None)
    assert found["body"].encode() == post.body
    (attempt,) = found["attempts"]
    assert (attempt["number"], attempt["trigger"], attempt["cause"]) == (1, "first", None)
    assert attempt["request"] == {
        "method": "POST",
        "url": inbox.url,
        "headers": post.headers,
        "body": post.body.decode(),
    }
    response = attempt["response"]
    assert (response["statusCode"], response["body"], response["clipped"]) == (200, "شكرا", False)
    assert response["bodyBase64"] is None
    assert response["headers"]["X-Twice"] == ["a", "b"]
    assert response["headers"]["X-Once"] == "c"


def test_the_times_of_an_attempt_are_told(inbox: Inbox, registrar: Registrar) -> None:
    found = pinged(registrar, inbox, 200)
    (attempt,) = found["attempts"]
    times = [found["createdAt"], attempt["startedAt"], attempt["endedAt"], found["endedAt"]]
    assert all(MOMENT.fullmatch(time) for time in times)
    assert times == sorted(times)
    timings = attempt["timings"]
    assert list(timings) == ["dnsMs", "connectMs", "tlsMs", "firstByteMs"]
    assert (timings["dnsMs"], timings["tlsMs"]) == (None, None), "an address in the URL, and http"
    assert 0 < timings["firstByteMs"] <= attempt["durationMs"]
    assert attempt["address"] == "127.0.0.1"


def test_a_failed_one_tells_why_in_plain_words(registrar: Registrar, inbox: Inbox) -> None:
    found = pinged(registrar, inbox, 500)
    assert (found["status"], found["attemptCount"], found["lastStatusCode"]) == ("failed", ATTEMPTS, 500)
    assert found["lastCause"] == "The receiver answered 500."
    assert [one["trigger"] for one in found["attempts"]] == ["first", "retry"]
    assert {one["cause"] for one in found["attempts"]} == {"The receiver answered 500."}
    assert len({one["request"]["body"] for one in found["attempts"]}) == 1


def test_one_that_nobody_answered_has_no_response(registrar: Registrar) -> None:
    found = registrar.ended(registrar.ping(registrar.add(NOBODY_LISTENS)["id"])["id"])
    assert (found["lastStatusCode"], found["lastCause"]) == (None, "The connection was refused.")
    attempt = found["attempts"][0]
    assert (attempt["statusCode"], attempt["response"], attempt["secretId"]) == (None, None, None)
    assert attempt["request"]["headers"] == {}


def test_an_answer_that_is_no_text_is_told_byte_for_byte(registrar: Registrar, inbox: Inbox) -> None:
    inbox.body = b"\xff\x00caf\xe9"
    (attempt,) = pinged(registrar, inbox, 200)["attempts"]
    assert base64.b64decode(attempt["response"]["bodyBase64"]) == inbox.body
    assert attempt["response"]["body"] == "\ufffd\x00caf\ufffd"


def test_a_pending_one_says_when_it_is_sent_next(registrar: Registrar) -> None:
    found = registrar.ping(registrar.add(paused=True)["id"])
    assert (found["status"], found["endedAt"]) == ("pending", None)
    assert found["nextAttemptAt"] == found["createdAt"]


def test_a_failed_one_can_be_sent_again(registrar: Registrar, inbox: Inbox) -> None:
    failed = pinged(registrar, inbox, 500)
    inbox.status = 200
    sent = registrar.resend(failed["id"])
    assert (sent["id"], sent["status"], sent["endedAt"]) == (failed["id"], "pending", None)
    assert len(sent["attempts"]) == ATTEMPTS
    ended = registrar.ended(failed["id"], ATTEMPTS + 1)
    assert [(one["number"], one["trigger"]) for one in ended["attempts"]][-1] == (ATTEMPTS + 1, "resend")
    posts = [inbox.next() for _ in range(ATTEMPTS + 1)]
    assert len({post.body for post in posts}) == 1
    assert {post.headers["X-Service-Delivery"] for post in posts} == {failed["id"]}


def test_a_delivered_one_can_be_sent_again_as_a_new_series(registrar: Registrar, inbox: Inbox) -> None:
    delivered = pinged(registrar, inbox, 200)
    inbox.status = 500
    registrar.resend(delivered["id"])
    ended = registrar.ended(delivered["id"], 1 + ATTEMPTS)
    assert ended["status"] == "failed"
    assert [one["trigger"] for one in ended["attempts"]] == ["first", "resend", "retry"]


def test_what_is_unknown_is_neither_shown_nor_sent(registrar: Registrar) -> None:
    unknown = str(uuid4())
    for answer in (registrar.http.get(f"{DELIVERIES}/{unknown}"), registrar.ask_to_resend(unknown)):
        assert problem(answer, 404)["type"] == "/problems/unknown-delivery"


def test_the_body_of_an_event_is_that_of_the_specification(
    registrar: Registrar, inbox: Inbox, off_sale: Unit, project: Project
) -> None:
    registrar.add(inbox.url, projects=[project.slug])
    unit = off_sale.read()
    off_sale.patch({"status": "available"})
    event = json.loads(registrar.ended(inbox.next().event["id"])["body"])
    assert list(event) == ["id", "type", "createdAt", "data"]
    assert event["data"] == {
        "unit": {
            "id": unit["id"],
            "code": "A-101",
            "projectSlug": project.slug,
            "status": "available",
            "previousStatus": "unavailable",
        },
        "booking": None,
    }


def test_an_endpoint_that_answers_410_is_shown_as_failing_until_it_answers_again(
    registrar: Registrar, inbox: Inbox
) -> None:
    endpoint = registrar.add(inbox.url)["id"]
    before = datetime.now(UTC) - timedelta(seconds=5)
    failed = pinged(registrar, inbox, 410, endpoint)
    shown = registrar.read(endpoint)
    assert shown["state"] == "failing"
    assert list(shown["failing"]) == ["since", "cause", "goneAt"]
    assert shown["failing"]["cause"] == "The receiver answered 410."
    assert datetime.fromisoformat(shown["failing"]["goneAt"]) > before
    inbox.status = 200
    registrar.resend(failed["id"])
    registrar.ended(failed["id"], ATTEMPTS + 1)
    shown = registrar.read(endpoint)
    assert (shown["state"], shown["failing"]) == ("active", None)


def test_a_first_failure_is_told_though_the_endpoint_is_not_failing_yet(
    registrar: Registrar, inbox: Inbox
) -> None:
    endpoint = registrar.add(inbox.url)["id"]
    pinged(registrar, inbox, 500, endpoint)
    shown = registrar.read(endpoint)
    assert shown["state"] == "active"
    assert (shown["failing"]["cause"], shown["failing"]["goneAt"]) == ("The receiver answered 500.", None)
