"""Deliveries: listed, filtered, followed, looked into, sent again."""

import re
from datetime import timedelta
from html import unescape
from uuid import UUID, uuid4

import pytest

from holdfast.domain.errors import Message
from tests.support.client import Project, Unit
from tests.support.failures import attempted, failed
from tests.support.sql import Sql
from tests.support.staff_client import Person
from tests.support.webhooks import Inbox, Registrar

DELIVERIES = "/backoffice/deliveries"
PART = {"hx-request": "true"}
NASTY = '<img src=x onerror="alert(1)">'
ROW = re.compile(rf'href="{DELIVERIES}/([0-9a-f-]{{36}})"')


def listed(page: str) -> list[str]:
    return ROW.findall(page)


def test_every_delivery_is_listed_with_what_became_of_it(
    viewer: Person, registrar: Registrar, inbox: Inbox, stored: Unit, project: Project
) -> None:
    endpoint = registrar.add(inbox.url, projects=[project.slug], description="Endpoint " + uuid4().hex)
    assert stored.patch({"status": "unavailable"}).status_code == 200
    delivery_id = inbox.next().event["id"]
    registrar.ended(delivery_id)
    shown = viewer.see(f"{DELIVERIES}?endpoint={endpoint['id']}")
    assert listed(shown) == [delivery_id]
    assert "Delivered" in shown
    assert "unit.unavailable" in shown
    assert f"/backoffice/projects/{project.slug}/units/{stored.code}" in shown
    assert endpoint["description"] in shown
    assert '<code dir="ltr">200</code>' in shown


def test_of_very_many_attempts_the_latest_are_shown(viewer: Person, registrar: Registrar, sql: Sql) -> None:
    (delivery_id,) = failed(sql, registrar.add(paused=True)["id"])
    for number in range(1, 53):
        attempted(sql, delivery_id, number)
    shown = viewer.see(f"{DELIVERIES}/{delivery_id}")
    assert shown.count('class="card attempt"') == 50
    assert ("Attempt 52 " in shown, "Attempt 3 " in shown, "Attempt 2 " in shown) == (True, True, False)
    assert "Only the latest 50 attempts are shown." in shown
    assert len(registrar.delivery(str(delivery_id))["attempts"]) == 52


def test_one_that_is_retried_counts_down_to_its_next_attempt(
    viewer: Person, registrar: Registrar, inbox: Inbox
) -> None:
    inbox.status = 503
    endpoint = registrar.add(inbox.url)
    delivery = registrar.tried(registrar.ping(endpoint["id"])["id"])
    for path in (f"{DELIVERIES}?endpoint={endpoint['id']}", f"{DELIVERIES}/{delivery['id']}"):
        shown = viewer.see(path)
        assert "Retrying" in shown
        assert 'data-ends="' in shown
        assert "503" in shown


@pytest.mark.parametrize(
    ("query", "is_there"),
    [
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
        ("cursor=nonsense", True),
    ],
)
def test_deliveries_are_filtered(
    viewer: Person, registrar: Registrar, sql: Sql, query: str, is_there: bool
) -> None:
    endpoint = registrar.add(paused=True)
    (delivery_id,) = failed(sql, endpoint["id"])
    shown = viewer.see(f"{DELIVERIES}?endpoint={endpoint['id']}&{query}")
    assert (str(delivery_id) in listed(shown)) is is_there
    assert is_there or "There are none that fit." in shown or "Nothing found yet" in shown


def test_an_endpoint_that_never_was_has_no_deliveries(viewer: Person) -> None:
    assert listed(viewer.see(f"{DELIVERIES}?endpoint={uuid4()}")) == []


def test_pages_follow_each_other_until_all_are_shown(viewer: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add(paused=True)
    made = set(map(str, failed(sql, endpoint["id"], 120)))
    path: str | None = f"{DELIVERIES}?endpoint={endpoint['id']}&status=failed"
    seen: list[str] = []
    while path is not None:
        shown = viewer.see(path)
        seen += listed(shown)
        following = re.search(r'href="([^"]+)" rel="next"', shown)
        path = unescape(following[1]) if following else None
    assert len(seen) == len(set(seen)) == 120
    assert set(seen) == made


def test_the_newest_page_follows_by_itself_and_others_do_not(
    viewer: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add(paused=True)
    failed(sql, endpoint["id"])
    path = f"{DELIVERIES}?endpoint={endpoint['id']}"
    following = re.search(r'hx-get="([^"]+)"', viewer.see(path))
    assert following is not None
    live = unescape(following[1])
    assert viewer.look(live, **PART).status_code == 204, "nothing has changed"
    (later,) = failed(sql, endpoint["id"])
    rows = viewer.look(live, **PART)
    assert rows.status_code == 200
    assert str(later) in rows.text
    assert "<html" not in rows.text
    assert "hx-get" not in viewer.see(f"{path}&until=2030-01-01T00:00")


def test_a_delivery_is_shown_as_it_was_on_the_wire(viewer: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add(paused=True)
    (delivery_id,) = failed(sql, endpoint["id"])
    secret_id = attempted(sql, delivery_id, answer=NASTY.encode(), headers=(("X-Odd", NASTY),))
    shown = viewer.see(f"{DELIVERIES}/{delivery_id}")
    assert NASTY not in shown
    text = unescape(shown)
    assert "POST /hook?a=1 HTTP/1.1\nHost: erp.example\nX-Service-Event: ping\n" in text
    assert f'\n\n{{"id":"{delivery_id}"' in text
    assert f"500\nX-Odd: {NASTY}\n\n{NASTY}" in text
    assert "The receiver answered 500." in text
    assert str(secret_id) in text
    assert "203.0.113.7" in text


def test_an_answer_that_is_no_text_is_shown_by_its_bytes(
    viewer: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add(paused=True)
    (delivery_id,) = failed(sql, endpoint["id"])
    attempted(sql, delivery_id, answer=b"\xff\x00PNG\x1b[31m", is_clipped=True)
    shown = unescape(viewer.see(f"{DELIVERIES}/{delivery_id}"))
    assert "000000  ff 00 50 4e 47 1b 5b 33 31 6d" in shown
    assert "..PNG.[31m" in shown
    assert "There was more" in shown


def test_an_attempt_that_never_came_to_a_request_says_so(
    viewer: Person, arab: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add(paused=True)
    (delivery_id,) = failed(sql, endpoint["id"])
    attempted(sql, delivery_id, answer=None, cause="The certificate has expired.")
    shown = viewer.see(f"{DELIVERIES}/{delivery_id}")
    assert "The certificate has expired." in shown
    assert "The request was never written" in shown
    assert "Copy as curl" not in shown
    assert "The certificate has expired." not in arab.see(f"{DELIVERIES}/{delivery_id}")


def test_a_cause_is_told_in_arabic_by_its_message_and_one_of_an_older_release_as_it_was_stored(
    viewer: Person, arab: Person, registrar: Registrar, sql: Sql
) -> None:
    (delivery_id,) = failed(sql, registrar.add(paused=True)["id"])
    attempted(sql, delivery_id, 1, cause="The receiver answered 502.")
    attempted(sql, delivery_id, 2, cause=Message("The receiver answered %(code)s.", {"code": 503}))
    english, arabic = viewer.see(f"{DELIVERIES}/{delivery_id}"), arab.see(f"{DELIVERIES}/{delivery_id}")
    assert "The receiver answered 502." in english
    assert "The receiver answered 503." in english
    assert "The receiver answered 502." in arabic
    assert "The receiver answered 503." not in arabic
    assert "رد المستقبِل بالرمز ٥٠٣." in arabic


def test_the_timeline_tells_every_step_and_the_time_between(
    viewer: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add(paused=True)
    (delivery_id,) = failed(sql, endpoint["id"], ago=timedelta(seconds=190))
    attempted(sql, delivery_id, 1)
    attempted(sql, delivery_id, 2)
    shown = viewer.see(f"{DELIVERIES}/{delivery_id}").partition('class="timeline"')[2]
    steps = [
        shown.index(text) for text in ("Asked for", "3 minutes later", "Attempt 1", "Attempt 2", "Failed")
    ]
    assert steps == sorted(steps)


def test_a_pending_delivery_follows_by_itself_until_it_is_over(
    viewer: Person, registrar: Registrar, inbox: Inbox
) -> None:
    endpoint = registrar.add(inbox.url, paused=True)
    delivery_id = registrar.ping(endpoint["id"])["id"]
    shown = viewer.see(f"{DELIVERIES}/{delivery_id}")
    assert "The endpoint is paused" in shown
    following = re.search(r'hx-get="([^"]+)"', shown)
    assert following is not None
    live = unescape(following[1])
    assert viewer.look(live, **PART).status_code == 204
    registrar.change(endpoint["id"], paused=False)
    registrar.ended(delivery_id)
    part = viewer.see(live, 200, **PART)
    assert "Delivered" in part
    assert "<html" not in part
    assert "hx-get" not in part


def test_a_delivery_is_sent_again_with_the_same_id_and_bytes(
    integrator: Person, registrar: Registrar, inbox: Inbox
) -> None:
    endpoint = registrar.add(inbox.url)
    delivery_id = registrar.ping(endpoint["id"])["id"]
    first = inbox.next()
    registrar.ended(delivery_id)
    path = f"{DELIVERIES}/{delivery_id}"
    assert "has it already and gets it once more" in integrator.see(path)
    assert "It is being sent again" in integrator.done(f"{path}/resend")
    assert inbox.next().body == first.body
    shown = registrar.ended(delivery_id, 2)
    assert [attempt["trigger"] for attempt in shown["attempts"]] == ["first", "resend"]
    assert "resent by hand" in integrator.see(path)


def test_a_delivery_of_a_removed_endpoint_is_shown_and_cannot_be_sent_again(
    admin: Person, registrar: Registrar
) -> None:
    endpoint = registrar.add(description="Gone away", paused=True)
    delivery_id = registrar.ping(endpoint["id"])["id"]
    registrar.remove(endpoint["id"])
    shown = admin.see(f"{DELIVERIES}/{delivery_id}")
    assert "Gone away" in shown
    assert "The endpoint was removed." in shown
    assert "/resend" not in shown
    answer = admin.done(f"{DELIVERIES}/{delivery_id}/resend")
    assert "nothing can be sent to it any more" in answer


def test_who_may_not_manage_webhooks_can_resend_nothing(
    viewer: Person, sales: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add(paused=True)
    (delivery_id,) = failed(sql, endpoint["id"])
    for person in (viewer, sales):
        assert "/resend" not in person.see(f"{DELIVERIES}/{delivery_id}")
        assert person.submit(f"{DELIVERIES}/{delivery_id}/resend").status_code == 403
        person.see(f"/backoffice/settings/api/webhooks/{endpoint['id']}/recover", 403)


def test_a_delivery_that_never_was_is_nowhere(admin: Person) -> None:
    admin.see(f"{DELIVERIES}/{UUID(int=1)}", 404)
    admin.see(f"{DELIVERIES}/{UUID(int=1)}/result", 303)
    assert admin.look(f"{DELIVERIES}/{UUID(int=1)}/result", **PART).status_code == 404
    assert admin.submit(f"{DELIVERIES}/{UUID(int=1)}/resend").status_code == 404


def test_the_pages_speak_arabic_with_arabic_digits(arab: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add(paused=True)
    (delivery_id,) = failed(sql, endpoint["id"])
    attempted(sql, delivery_id)
    shown = arab.see(f"{DELIVERIES}/{delivery_id}")
    assert "رد المستقبِل بالرمز" in shown
    assert "المحاولة ١" in shown
    assert 'dir="rtl"' in shown
