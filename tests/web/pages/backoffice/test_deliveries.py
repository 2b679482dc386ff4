"""Deliveries: listed, filtered, followed, looked into, sent again one by one or all that failed."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from uuid import UUID, uuid4

from holdfast.domain.errors import Message
from holdfast.operations.deliveries import RESENT_AT_ONCE
from tests.support.client import Unit
from tests.support.failures import attempted, failed
from tests.support.sql import Sql
from tests.support.staff_client import Person, missing
from tests.support.webhooks import Inbox, Registrar

DELIVERIES = "/backoffice/deliveries"
PART = {"hx-request": "true"}
EVIL = '<img src=x onerror="alert(1)">'
ROW = re.compile(rf'href="{DELIVERIES}/([0-9a-f-]{{36}})"')
HIDDEN = re.compile(r'<input type="hidden" name="(since|until|event|total|resent)" value="([^"]*)">')
PENDING = "select count(*) from pending_delivery where endpoint_id = $1::text::uuid"


def listed(page: str) -> list[str]:
    return ROW.findall(page)


def followed_at(page: str) -> str:
    """What a script asks for to follow the page."""
    following = re.search(r'hx-get="([^"]+)"', page)
    assert following is not None
    return unescape(following[1])


def test_every_delivery_is_listed_with_what_became_of_it(
    viewer: Person, registrar: Registrar, inbox: Inbox, stored: Unit
) -> None:
    endpoint = registrar.add(inbox.url, description="Endpoint " + uuid4().hex)
    assert stored.patch({"status": "unavailable"}).status_code == 200
    delivery_id = inbox.next().event["id"]
    registrar.ended(delivery_id)
    page = viewer.see(f"{DELIVERIES}?endpoint={endpoint['id']}")
    assert listed(page) == [delivery_id]
    unit = f"/backoffice/projects/{stored.project.slug}/units/{stored.code}"
    code = '<code dir="ltr">200</code>'
    assert missing(page, "Delivered", "unit.unavailable", unit, endpoint["description"], code) == []


def test_deliveries_are_filtered(viewer: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add(paused=True)
    (delivery_id,) = failed(sql, endpoint["id"])
    for query, is_there in (
        ("status=failed", True),
        ("status=delivered", False),
        ("status=pending", False),
        ("event=ping", True),
        ("event=unit.sold", False),
        ("code=5xx", True),
        ("code=2xx", False),
        ("code=none", False),
        ("unit=A-1", False),
        ("since=2020-01-01T00:00", True),
        ("until=2020-01-01T00:00", False),
        ("status=failed&event=ping&code=5xx", True),
        ("status=nonsense&event=nonsense&code=nonsense&since=nonsense&until=0000&unit=", True),
    ):
        page = viewer.see(f"{DELIVERIES}?endpoint={endpoint['id']}&{query}")
        assert (str(delivery_id) in listed(page)) is is_there, query
        assert is_there or "No deliveries match the filters." in page or "Nothing found so far" in page
    assert listed(viewer.see(f"{DELIVERIES}?endpoint={uuid4()}")) == []


def test_pages_follow_each_other_until_all_are_shown(viewer: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add(paused=True)
    made = set(map(str, failed(sql, endpoint["id"], 120)))
    pages = viewer.all_pages(f"{DELIVERIES}?endpoint={endpoint['id']}&status=failed")
    seen = [delivery_id for page in pages for delivery_id in listed(page)]
    assert len(seen) == 120
    assert set(seen) == made


def test_only_the_newest_page_follows_by_itself(viewer: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add(paused=True)
    failed(sql, endpoint["id"])
    path = f"{DELIVERIES}?endpoint={endpoint['id']}"
    live = followed_at(viewer.see(path))
    assert viewer.look(live, **PART).status_code == 204, "nothing has changed"
    (later,) = failed(sql, endpoint["id"])
    rows = viewer.see(live, 200, **PART)
    assert str(later) in rows
    assert "<html" not in rows
    assert "hx-get" not in viewer.see(f"{path}&until=2030-01-01T00:00")


def test_a_delivery_is_shown_as_sent(viewer: Person, arab: Person, registrar: Registrar, sql: Sql) -> None:
    (delivery_id,) = failed(sql, registrar.add(paused=True)["id"], ago=timedelta(seconds=190))
    secret_id = attempted(sql, delivery_id, answer=EVIL.encode(), headers=(("X-Odd", EVIL),))
    attempted(sql, delivery_id, 2, answer=b"\xff\x00PNG\x1b[31m", is_clipped=True)
    page = viewer.see(f"{DELIVERIES}/{delivery_id}")
    assert EVIL not in page
    told = (
        "POST /hook?a=1 HTTP/1.1\nHost: erp.example\nX-Service-Event: ping\n",
        f'\n\n{{"id":"{delivery_id}"',
        f"500\nX-Odd: {EVIL}\n\n{EVIL}",
        "The receiver answered 500.", str(secret_id), "203.0.113.7",
        "000000  ff 00 50 4e 47 1b 5b 33 31 6d", "..PNG.[31m", "The body is longer",
    )  # fmt: skip
    assert missing(unescape(page), *told) == []
    timeline = page.partition('class="timeline"')[2]
    steps = ("Requested", "3 minutes later", "Attempt 1", "Attempt 2", "Failed")
    places = [timeline.index(text) for text in steps]
    assert places == sorted(places)
    page = arab.see(f"{DELIVERIES}/{delivery_id}")
    assert missing(page, "رد المستقبِل بالرمز", "المحاولة ١", 'dir="rtl"') == []


def test_the_body_is_shown_indented_and_copied_exactly_whether_or_not_it_was_sent(
    viewer: Person, registrar: Registrar, sql: Sql
) -> None:
    paused = registrar.add(paused=True)
    (never_written,) = failed(sql, paused["id"])
    attempted(sql, never_written, answer=None, cause="The certificate has expired.")
    for delivery_id in (never_written, registrar.ping(paused["id"])["id"]):
        page = unescape(viewer.see(f"{DELIVERIES}/{delivery_id}"))
        exact = f'data-copy="{{"id":"{delivery_id}","type":"ping",'
        assert missing(page, f'<code>{{\n  "id": "{delivery_id}",\n  "type": "ping",\n', exact) == []


def test_of_very_many_attempts_the_latest_are_shown(viewer: Person, registrar: Registrar, sql: Sql) -> None:
    (delivery_id,) = failed(sql, registrar.add(paused=True)["id"])
    for number in range(1, 53):
        attempted(sql, delivery_id, number)
    page = viewer.see(f"{DELIVERIES}/{delivery_id}")
    assert page.count('class="card attempt"') == 50
    assert ("Attempt 52 " in page, "Attempt 3 " in page, "Attempt 2 " in page) == (True, True, False)
    assert "Only the latest 50 attempts are shown." in page


def test_causes_are_translated(viewer: Person, arab: Person, registrar: Registrar, sql: Sql) -> None:
    (delivery_id,) = failed(sql, registrar.add(paused=True)["id"])
    attempted(sql, delivery_id, answer=None, cause="The certificate has expired.")
    page = viewer.see(f"{DELIVERIES}/{delivery_id}")
    assert missing(page, "The certificate has expired.", "No request was sent") == []
    assert "Copy as curl" not in page
    attempted(sql, delivery_id, 2, cause="The receiver answered 502.")
    attempted(sql, delivery_id, 3, cause=Message("The receiver answered %(code)s.", {"code": 503}))
    english, arabic = (person.see(f"{DELIVERIES}/{delivery_id}") for person in (viewer, arab))
    assert missing(english, "The receiver answered 502.", "The receiver answered 503.") == []
    assert missing(arabic, "The receiver answered 502.", "رد المستقبِل بالرمز ٥٠٣.") == []
    assert "The certificate has expired." not in arabic
    assert "The receiver answered 503." not in arabic


def test_a_pending_delivery_follows_by_itself(viewer: Person, registrar: Registrar, inbox: Inbox) -> None:
    inbox.status = 503
    endpoint = registrar.add(inbox.url)
    delivery_id = registrar.ping(endpoint["id"])["id"]
    registrar.tried(delivery_id)
    path = f"{DELIVERIES}/{delivery_id}"
    for page in (viewer.see(f"{DELIVERIES}?endpoint={endpoint['id']}"), viewer.see(path)):
        assert missing(page, "Retrying", 'data-ends="', "503") == []
    registrar.change(endpoint["id"], paused=True)
    page = viewer.see(path)
    assert "The endpoint is paused" in page
    assert viewer.look(followed_at(page), **PART).status_code == 204
    registrar.remove(endpoint["id"])
    part = viewer.see(followed_at(page), 200, **PART)
    assert "The endpoint was removed." in part
    assert missing(part, "<html", "hx-get") == ["<html", "hx-get"]


def test_a_delivery_is_sent_again_with_the_same_id_and_bytes(
    integrator: Person, viewer: Person, registrar: Registrar, inbox: Inbox
) -> None:
    delivery_id = registrar.ping(registrar.add(inbox.url)["id"])["id"]
    first = inbox.next()
    registrar.ended(delivery_id)
    path = f"{DELIVERIES}/{delivery_id}"
    assert "/resend" not in viewer.see(path)
    assert "has already received this. This will send it once more" in integrator.see(path)
    assert "The delivery is being resent" in integrator.done(f"{path}/resend")
    assert inbox.next().body == first.body
    registrar.ended(delivery_id, 2)
    assert "resent manually" in integrator.see(path)


def test_what_has_no_endpoint_or_never_was_is_not_sent_again(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add(description="Gone away", paused=True)
    path = f"{DELIVERIES}/{registrar.ping(endpoint['id'])['id']}"
    registrar.remove(endpoint["id"])
    page = admin.see(path)
    assert missing(page, "Gone away", "The endpoint was removed.") == []
    assert "/resend" not in page
    assert "so nothing can be sent to it" in admin.done(f"{path}/resend")
    path = f"{DELIVERIES}/{UUID(int=1)}"
    admin.see(path, 404)
    admin.see(f"{path}/result", 303)
    admin.see(f"{path}/result", 404, **PART)
    admin.refused(f"{path}/resend", status=404)


def recovery_of(endpoint: dict[str, object]) -> str:
    return f"/backoffice/settings/api/webhooks/{endpoint['id']}/recover"


def form_of(page: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in HIDDEN.findall(page)}


def since(ago: timedelta = timedelta(hours=1)) -> str:
    """As somebody in Riyadh would type it."""
    return (datetime.now(UTC) + timedelta(hours=3) - ago).strftime("%Y-%m-%dT%H:%M")


def test_failed_deliveries_are_counted_first_and_sent_again_once_that_is_confirmed(
    integrator: Person, registrar: Registrar, sql: Sql, inbox: Inbox
) -> None:
    endpoint = registrar.add(inbox.url)
    made = set(map(str, failed(sql, endpoint["id"], 3)))
    path = recovery_of(endpoint)
    assert "since" in integrator.see(path)
    assert "Enter a date and time." in integrator.see(f"{path}?since=yesterday", 422)
    for query in (f"since={since(timedelta(hours=-1))}", f"since={since()}&event=unit.sold"):
        assert "No deliveries failed since then" in integrator.see(f"{path}?{query}")
    assert form_of(integrator.see(f"{path}?since={since()}&event=ping"))["event"] == "ping"
    page = integrator.see(f"{path}?since={since()}")
    assert "3 deliveries failed since then" in page
    for name in ("since", "until", "total", "resent"):
        integrator.refused(path, {**form_of(page), name: "nonsense"}, 400)
    assert sql.value(PENDING, endpoint["id"]) == 0
    assert "3 failed deliveries are being resent." in integrator.done(path, form_of(page))
    assert {inbox.next().event["id"] for _ in range(3)} == made


def test_many_are_sent_again_step_by_step(admin: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add(paused=True)
    failed(sql, endpoint["id"], 2 * RESENT_AT_ONCE + 5)
    path = recovery_of(endpoint)
    page = admin.done(path, form_of(admin.see(f"{path}?since={since()}")))
    told = ("1,000 failed deliveries are being resent.", "1,005 deliveries failed since then")
    assert missing(page, *told) == [], "without a script"
    assert sql.value(PENDING, endpoint["id"]) == RESENT_AT_ONCE
    admin.headers.update(PART)
    answer = admin.submit(path, form_of(page))
    assert "1,000 of 1,005 resent" in answer.text
    ended = admin.submit(path, form_of(answer.text))
    del admin.headers["hx-request"]
    assert ended.headers["hx-redirect"] == path.removesuffix("/recover")
    assert sql.value(PENDING, endpoint["id"]) == 2 * RESENT_AT_ONCE + 5
    assert "1,005 failed deliveries are being resent." in admin.see(ended.headers["hx-redirect"])
