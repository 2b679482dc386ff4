"""Settings, API, webhooks: endpoints registered, looked at, changed, tried, removed."""

import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest

from holdfast.domain.event import EventName
from holdfast.web.pages.backoffice.endpoints import verification_snippets
from tests.support.client import Project, Unit
from tests.support.sql import Sql
from tests.support.staff_client import Person
from tests.support.webhooks import NOBODY_LISTENS, Inbox, Registrar

WEBHOOKS = "/backoffice/settings/api/webhooks"
NEW = f"{WEBHOOKS}/new"
SECRET = re.compile(r"hfs_[0-9A-Za-z_-]{43}")
EVENTS = ["unit.held", "unit.sold"]
NASTY = '<img src=x onerror="alert(1)">'
LISTED_BY_EVENTS = "select count(*) from endpoint where url = $1 and removed_at is null"


def fields(**changes: object) -> dict[str, object]:
    return {
        "url": NOBODY_LISTENS,
        "description": "Portal ERP",
        "event": EVENTS,
        "reach": "all",
        "maxInFlight": "32",
        **changes,
    }


def own(endpoint: dict[str, object]) -> str:
    return f"{WEBHOOKS}/{endpoint['id']}"


def test_an_endpoint_is_registered_and_its_secret_shown_once(admin: Person, registrar: Registrar) -> None:
    answer = admin.submit(NEW, fields(description="Shown once"))
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    (secret,) = set(SECRET.findall(answer.text))
    endpoint_id = re.search(rf"{WEBHOOKS}/([0-9a-f-]{{36}})", answer.text)
    assert endpoint_id is not None
    made = registrar.read(endpoint_id[1])
    assert (made["url"], made["events"], made["projects"]) == (NOBODY_LISTENS, EVENTS, None)
    shown = admin.see(f"{WEBHOOKS}/{endpoint_id[1]}")
    assert "Shown once" in shown
    assert secret not in shown
    registrar.remove(endpoint_id[1])


def test_the_secret_that_is_shown_is_the_one_that_signs(
    admin: Person, inbox: Inbox, registrar: Registrar
) -> None:
    page = admin.submit(NEW, fields(url=inbox.url)).text
    endpoint_id = re.search(rf"{WEBHOOKS}/([0-9a-f-]{{36}})", page)
    assert endpoint_id is not None
    admin.done(f"{WEBHOOKS}/{endpoint_id[1]}/ping")
    post = inbox.next()
    assert verified(SECRET.findall(page)[0], post.headers, post.body)
    registrar.remove(endpoint_id[1])


def verified(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """By the very lines that the page offers."""
    names: dict[str, Any] = {}
    exec(verification_snippets("")["python"], names)
    return bool(names["is_genuine"](secret, headers, body))


def test_what_is_wrong_with_a_form_stands_beside_its_fields_and_nothing_is_registered(
    admin: Person, sql: Sql
) -> None:
    url = f"ftp://{uuid4().hex}.example/hook"
    answer = admin.submit(NEW, fields(url=url, event=[], reach="some", maxInFlight="many"))
    assert answer.status_code == 422
    for told in ("Choose at least one event.", "Choose at least one project.", "This must be a number."):
        assert told in answer.text
    assert f'value="{url}"' in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert sql.value(LISTED_BY_EVENTS, url) == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"url": ""}, "An endpoint needs a URL."),
        ({"url": "http://example.com/hook"}, "https"),
        ({"maxInFlight": "0"}, "This must be at least 1."),
        ({"maxInFlight": "999"}, "This must be at most 256."),
        ({"event": "ping"}, "A ping cannot be chosen"),
        ({"description": "x" * 501}, "This must have at most 500 characters."),
        ({"reach": "some", "project": "no-such-project"}, "One of these projects is not there."),
    ],
    ids=["no-url", "http", "none-in-flight", "too-many-in-flight", "ping", "long", "unknown-project"],
)
def test_a_wrong_value_is_told_and_kept_as_typed(admin: Person, changes: dict[str, str], told: str) -> None:
    answer = admin.submit(NEW, fields(**changes))
    assert answer.status_code == 422
    assert told in answer.text
    assert "Portal ERP" in answer.text or "description" in changes


def test_every_event_of_the_form_is_described(admin: Person) -> None:
    described = re.findall(r"<code [^>]+>([^<]+)</code><small>[^<]+</small>", admin.see(NEW))
    assert described == list(EventName)


def test_faults_are_told_in_arabic(arab: Person) -> None:
    answer = arab.submit(NEW, fields(event=[], url=""))
    assert answer.status_code == 422
    assert "اختر حدثًا واحدًا على الأقل." in answer.text


def test_the_list_shows_endpoints_with_their_state_and_last_delivery(
    admin: Person, registrar: Registrar, inbox: Inbox
) -> None:
    well = registrar.add(inbox.url, description="Well " + uuid4().hex, events=EVENTS)
    registrar.add(description="Paused " + uuid4().hex, paused=True)
    delivery = registrar.ended(registrar.ping(well["id"])["id"])
    shown = admin.see(WEBHOOKS)
    row = next(part for part in shown.split("<tr>") if well["description"] in part)
    assert "Active" in row
    assert all(event in row for event in EVENTS)
    assert f"/backoffice/deliveries/{delivery['id']}" in row
    assert "Delivered" in row
    assert 'role="img"' in row
    assert "Paused" in shown


def test_a_name_is_just_a_name(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add(description=NASTY)
    for path in (WEBHOOKS, own(endpoint), f"{own(endpoint)}/edit", "/backoffice/deliveries"):
        shown = admin.see(path)
        assert NASTY not in shown
        assert NASTY in unescape(shown)


def test_an_endpoint_is_changed_by_its_form(admin: Person, registrar: Registrar, project: Project) -> None:
    endpoint = registrar.add(description="Before", ordered=True)
    form = admin.see(f"{own(endpoint)}/edit")
    assert 'value="Before"' in form
    changes = fields(description="After", reach="some", project=project.slug, maxInFlight="7")
    assert "The endpoint is changed." in admin.done(f"{own(endpoint)}/edit", changes)
    changed = registrar.read(endpoint["id"])
    assert changed["description"] == "After"
    assert changed["projects"] == [project.slug]
    assert (changed["events"], changed["ordered"], changed["maxInFlight"]) == (EVENTS, False, 7)


def test_a_change_that_is_refused_changes_nothing(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add(description="As it was")
    answer = admin.submit(f"{own(endpoint)}/edit", fields(description="Other", url="nonsense"))
    assert answer.status_code == 422
    assert 'value="Other"' in answer.text
    assert registrar.read(endpoint["id"])["description"] == "As it was"


def test_an_endpoint_is_paused_and_resumed(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add()
    assert "Events are kept for it" in admin.done(f"{own(endpoint)}/pause")
    assert registrar.read(endpoint["id"])["paused"] is True
    assert "/resume" in admin.see(own(endpoint))
    admin.done(f"{own(endpoint)}/resume")
    assert registrar.read(endpoint["id"])["paused"] is False


def test_a_new_secret_is_shown_once_and_what_that_means_is_told(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add()
    answer = admin.submit(f"{own(endpoint)}/rotate")
    assert answer.headers["cache-control"] == "no-store"
    (secret,) = set(SECRET.findall(answer.text))
    assert secret != endpoint["secret"]
    assert "signs nothing any more" in answer.text
    assert registrar.read(endpoint["id"])["secretId"] != endpoint["secretId"]


def test_a_ping_is_sent_and_its_result_follows(admin: Person, registrar: Registrar, inbox: Inbox) -> None:
    endpoint = registrar.add(inbox.url)
    answer = admin.submit(f"{own(endpoint)}/ping")
    assert answer.status_code == 303
    delivery_id = answer.headers["location"].partition("?ping=")[2].removesuffix("#ping")
    assert inbox.next().event["id"] == delivery_id
    registrar.ended(delivery_id)
    shown = admin.see(answer.headers["location"].partition("#")[0])
    assert "The receiver answered 200." in shown
    result = admin.see(f"/backoffice/deliveries/{delivery_id}/result", 200, **{"hx-request": "true"})
    assert "The receiver answered 200." in result
    assert "<html" not in result
    assert "hx-get" not in result, "what is over need not be asked for again"


def test_the_result_of_a_ping_stays_whatever_is_sent_after_it(admin: Person, registrar: Registrar) -> None:
    endpoint, other = registrar.add(paused=True), registrar.add(paused=True)
    first, *_ = [registrar.ping(endpoint["id"])["id"] for _ in range(10)]
    assert 'id="ping"' in admin.see(f"{own(endpoint)}?ping={first}")
    assert 'id="ping"' not in admin.see(f"{own(other)}?ping={first}")
    assert 'id="ping"' not in admin.see(f"{own(endpoint)}?ping=nonsense")


def test_removing_says_how_many_deliveries_are_cancelled(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add(description="To go", paused=True)
    registrar.ping(endpoint["id"])
    registrar.ping(endpoint["id"])
    assert "2 pending deliveries are cancelled" in admin.see(own(endpoint))
    assert "To go is removed" in admin.done(f"{own(endpoint)}/remove")
    assert f"{own(endpoint)}" not in admin.see(WEBHOOKS)


def test_a_removed_endpoint_leads_to_what_was_sent_to_it(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add(description="Once here", paused=True)
    delivery = registrar.ping(endpoint["id"])
    registrar.remove(endpoint["id"])
    answer = admin.look(own(endpoint))
    assert answer.status_code == 303
    shown = admin.see(answer.headers["location"])
    assert "Once here was removed." in shown
    assert f"/backoffice/deliveries/{delivery['id']}" in shown


def test_an_endpoint_that_fails_says_why(admin: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add()
    sql.execute(
        "update endpoint set failing_since = now() - interval '25 hours',"
        " failing_cause = 'The connection was refused.' where id = $1::text::uuid",
        endpoint["id"],
    )
    shown = admin.see(own(endpoint))
    assert "Failing" in shown
    assert "The connection was refused." in shown


def test_an_endpoint_that_is_gone_is_shown_as_gone(
    admin: Person, arab: Person, registrar: Registrar, sql: Sql
) -> None:
    endpoint = registrar.add()
    sql.execute(
        "update endpoint set failing_since = now(), gone_at = now(),"
        " failing_cause = 'The receiver answered 410.' where id = $1::text::uuid",
        endpoint["id"],
    )
    assert "Gone" in admin.see(own(endpoint))
    assert "لم تعد موجودة" in arab.see(own(endpoint))


def test_the_feed_is_held_against_the_deliveries(
    admin: Person, registrar: Registrar, inbox: Inbox, stored: Unit, project: Project
) -> None:
    endpoint = registrar.add(inbox.url, projects=[project.slug])
    assert stored.patch({"status": "unavailable"}).status_code == 200
    inbox.next()
    shown = admin.see(f"{own(endpoint)}/reconciliation")
    assert "Agrees: nothing is missing" in shown
    part = admin.see(f"{own(endpoint)}/reconciliation", 200, **{"hx-request": "true"})
    assert "Agrees" in part
    assert "<html" not in part


def test_who_may_not_manage_webhooks_sees_them_without_buttons(
    viewer: Person, sales: Person, registrar: Registrar
) -> None:
    endpoint = registrar.add()
    for person in (viewer, sales):
        shown = person.see(own(endpoint))
        assert "/rotate" not in shown
        assert NEW not in person.see(WEBHOOKS)
        assert person.submit(f"{own(endpoint)}/ping").status_code == 403
        person.see(NEW, 403)


def test_whoever_reloads_a_button_is_led_back_to_the_endpoint(
    integrator: Person, registrar: Registrar
) -> None:
    endpoint = registrar.add()
    for button in ("pause", "resume", "rotate", "ping", "remove"):
        answer = integrator.look(f"{own(endpoint)}/{button}")
        assert (answer.status_code, answer.headers["location"]) == (303, own(endpoint))


def test_an_endpoint_that_never_was_is_nowhere(admin: Person) -> None:
    admin.see(f"{WEBHOOKS}/{uuid4()}", 404)
    admin.see(f"{WEBHOOKS}/nonsense", 422)
    assert admin.submit(f"{WEBHOOKS}/{uuid4()}/ping").status_code == 404
    assert admin.look(f"{WEBHOOKS}?cursor=nonsense").status_code == 200
