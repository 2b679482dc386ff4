"""Settings, API, webhooks: endpoints registered, looked at, changed, tried, removed."""

import re
from html import unescape
from typing import Any
from uuid import uuid4

from holdfast.domain.event import EventName
from holdfast.web.pages.backoffice.endpoints import verification_snippets
from tests.support.client import Project, Unit
from tests.support.sql import Sql
from tests.support.staff_client import Person, missing
from tests.support.webhooks import NOBODY_LISTENS, Inbox, Registrar

WEBHOOKS = "/backoffice/settings/api/webhooks"
NEW = f"{WEBHOOKS}/new"
SECRET = re.compile(r"hfs_[0-9A-Za-z_-]{43}")
EVENTS = ["unit.held", "unit.sold"]
EVIL = '<img src=x onerror="alert(1)">'
PART = {"hx-request": "true"}


def fields(**changes: object) -> dict[str, object]:
    form = {"url": NOBODY_LISTENS, "description": "Portal ERP", "event": EVENTS, "reach": "all"}
    return {**form, "maxInFlight": "32", **changes}


def own(endpoint: dict[str, object]) -> str:
    return f"{WEBHOOKS}/{endpoint['id']}"


def test_an_endpoint_is_registered_with_a_secret(admin: Person, registrar: Registrar, inbox: Inbox) -> None:
    answer = admin.submit(NEW, fields(url=inbox.url, description="Shown once"))
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    (secret,) = set(SECRET.findall(answer.text))
    found = re.search(rf"{WEBHOOKS}/([0-9a-f-]{{36}})", answer.text)
    assert found is not None
    registrar.added.append(found[1])
    made = registrar.read(found[1])
    assert (made["url"], made["events"], made["projects"]) == (inbox.url, EVENTS, None)
    page = admin.see(own(made))
    assert "Shown once" in page
    assert secret not in page
    admin.done(f"{own(made)}/ping")
    post = inbox.next()
    names: dict[str, Any] = {}
    exec(verification_snippets("")["python"], names)
    assert names["is_genuine"](secret, post.headers, post.body)


def test_faults_of_a_form_stand_beside_its_fields(admin: Person, arab: Person, sql: Sql) -> None:
    url = f"ftp://{uuid4().hex}.example/hook"
    page = admin.refused(NEW, fields(url=url, event=[], reach="some", maxInFlight="many"))
    told = ("Choose at least one event.", "Choose at least one project.", "This must be a number.")
    assert missing(page, *told, f'value="{url}"', 'aria-invalid="true"', "Portal ERP") == []
    assert sql.value("select count(*) from endpoint where url = $1", url) == 0
    changes: dict[str, dict[str, str]] = {
        "Enter a URL.": {"url": ""},
        "https": {"url": "http://example.com/hook"},
        "This must be at least 1.": {"maxInFlight": "0"},
        "A ping cannot be selected": {"event": "ping"},
        "One of these projects does not exist.": {"reach": "some", "project": "no-such-project"},
    }
    for fault, changed in changes.items():
        assert fault in admin.refused(NEW, fields(**changed))
    assert "اختر حدثًا واحدًا على الأقل." in arab.refused(NEW, fields(event=[], url=""))


def test_every_event_of_the_form_is_described(admin: Person) -> None:
    described = re.findall(r"<code [^>]+>([^<]+)</code><small>[^<]+</small>", admin.see(NEW))
    assert described == list(EventName)


def test_the_list_shows_state_and_last_delivery(admin: Person, registrar: Registrar, inbox: Inbox) -> None:
    well = registrar.add(inbox.url, description="Well " + uuid4().hex, events=EVENTS)
    paused = registrar.add(description=EVIL, paused=True)
    delivery = registrar.ended(registrar.ping(well["id"])["id"])
    page = admin.see(WEBHOOKS)
    row = next(part for part in page.split("<tr>") if well["description"] in part)
    link = f"/backoffice/deliveries/{delivery['id']}"
    assert missing(row, "Active", *EVENTS, link, "Delivered", 'role="img"') == []
    assert "Paused" in page
    for path in (WEBHOOKS, own(paused), f"{own(paused)}/edit", "/backoffice/deliveries"):
        page = admin.see(path)
        assert EVIL not in page
        assert EVIL in unescape(page)


def test_an_endpoint_is_changed_by_its_form(admin: Person, registrar: Registrar, project: Project) -> None:
    endpoint = registrar.add(description="Before", ordered=True)
    form = f"{own(endpoint)}/edit"
    assert 'value="Before"' in admin.see(form)
    assert 'value="Other"' in admin.refused(form, fields(description="Other", url="nonsense"))
    assert registrar.read(endpoint["id"])["description"] == "Before"
    changes = fields(description="After", reach="some", project=project.slug, maxInFlight="7")
    assert "Endpoint saved." in admin.done(form, changes)
    changed = registrar.read(endpoint["id"])
    assert (changed["description"], changed["projects"]) == ("After", [project.slug])
    assert (changed["events"], changed["ordered"], changed["maxInFlight"]) == (EVENTS, False, 7)


def test_an_endpoint_is_paused_resumed_and_given_a_new_secret(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add()
    assert "Its events are kept until you resume it" in admin.done(f"{own(endpoint)}/pause")
    assert registrar.read(endpoint["id"])["paused"] is True
    assert "/resume" in admin.see(own(endpoint))
    admin.done(f"{own(endpoint)}/resume")
    assert registrar.read(endpoint["id"])["paused"] is False
    answer = admin.press(f"{own(endpoint)}/rotate", on=own(endpoint))
    assert answer.headers["cache-control"] == "no-store"
    (secret,) = set(SECRET.findall(answer.text))
    assert secret != endpoint["secret"]
    assert "is no longer used for signing" in answer.text
    assert registrar.read(endpoint["id"])["secretId"] != endpoint["secretId"]


def test_a_ping_is_sent_and_its_result_follows(admin: Person, registrar: Registrar, inbox: Inbox) -> None:
    endpoint, other = registrar.add(inbox.url), registrar.add(paused=True)
    answer = admin.submit(f"{own(endpoint)}/ping")
    assert answer.status_code == 303
    delivery_id = answer.headers["location"].partition("?ping=")[2].removesuffix("#ping")
    assert inbox.next().event["id"] == delivery_id
    registrar.ended(delivery_id)
    for _ in range(6):
        registrar.ping(endpoint["id"])
    page = admin.see(answer.headers["location"].partition("#")[0])
    assert missing(page, 'id="ping"', "The receiver answered 200.") == []
    result = admin.see(f"/backoffice/deliveries/{delivery_id}/result", 200, **PART)
    assert "The receiver answered 200." in result
    assert missing(result, "<html", "hx-get") == ["<html", "hx-get"], "it need not be asked for again"
    assert 'id="ping"' not in admin.see(f"{own(other)}?ping={delivery_id}")
    assert 'id="ping"' not in admin.see(f"{own(endpoint)}?ping=nonsense")


def test_a_removed_endpoint_leads_to_its_deliveries(admin: Person, registrar: Registrar) -> None:
    endpoint = registrar.add(description="To go", paused=True)
    deliveries = [registrar.ping(endpoint["id"])["id"] for _ in range(2)]
    assert "2 pending deliveries will be cancelled" in admin.see(own(endpoint))
    assert "To go was removed" in admin.done(f"{own(endpoint)}/remove")
    assert own(endpoint) not in admin.see(WEBHOOKS)
    answer = admin.look(own(endpoint))
    assert answer.status_code == 303
    page = admin.see(answer.headers["location"])
    assert missing(page, "To go was removed.", f"/backoffice/deliveries/{deliveries[0]}") == []
    admin.see(f"{WEBHOOKS}/{uuid4()}", 404)
    admin.see(f"{WEBHOOKS}/nonsense", 422)
    admin.refused(f"{WEBHOOKS}/{uuid4()}/ping", status=404)
    admin.see(f"{WEBHOOKS}?cursor=nonsense")


def test_a_failing_endpoint_says_so(admin: Person, arab: Person, registrar: Registrar, sql: Sql) -> None:
    endpoint = registrar.add()
    update = "update endpoint set failing_since = now() - interval '25 hours',"
    cause = " failing_cause = 'The connection was refused.' where id = $1::text::uuid"
    sql.execute(update + cause, endpoint["id"])
    assert missing(admin.see(own(endpoint)), "Failing", "The connection was refused.") == []
    sql.execute(f"{update} gone_at = now(),{cause}", endpoint["id"])
    assert "Gone" in admin.see(own(endpoint))
    assert "لم تعد موجودة" in arab.see(own(endpoint))


def test_a_ping_that_arrives_takes_the_failure_off_the_open_page(
    admin: Person, registrar: Registrar, inbox: Inbox, sql: Sql
) -> None:
    """The health of an endpoint is stored a moment after the delivery: until then the script asks on."""
    endpoint = registrar.add(inbox.url)
    ping = registrar.ended(registrar.ping(endpoint["id"])["id"])
    result = f"/backoffice/deliveries/{ping['id']}/result"
    fail = "update endpoint set failing_cause = 'The connection was refused.', failing_since ="
    sql.execute(f"{fail} now() - interval '25 hours' where id = $1::text::uuid", endpoint["id"])
    part = admin.see(result, 200, **PART)
    assert missing(part, 'hx-get="', 'id="endpoint-failure" hx-swap-oob="true" class=', "Nothing has") == []
    sql.execute(f"{fail} now() where id = $1::text::uuid", endpoint["id"])
    assert "hx-get" not in admin.see(result, 200, **PART), "it failed after the ping"
    sql.execute("update endpoint set failing_since = null where id = $1::text::uuid", endpoint["id"])
    part = admin.see(result, 200, **PART)
    assert missing(part, 'id="endpoint-failure" hx-swap-oob="true" hidden', "Active") == []
    assert missing(part, "hx-get", "Nothing has been delivered") == ["hx-get", "Nothing has been delivered"]


def test_the_feed_is_held_against_the_deliveries(
    admin: Person, registrar: Registrar, inbox: Inbox, stored: Unit
) -> None:
    endpoint = registrar.add(inbox.url)
    assert stored.patch({"status": "unavailable"}).status_code == 200
    inbox.next()
    assert "Matches: nothing is missing" in admin.see(f"{own(endpoint)}/reconciliation")
    part = admin.see(f"{own(endpoint)}/reconciliation", 200, **PART)
    assert "Matches" in part
    assert "<html" not in part


def test_who_may_not_manage_webhooks_sees_them_without_buttons_and_a_reload_presses_none(
    viewer: Person, sales: Person, integrator: Person, registrar: Registrar
) -> None:
    endpoint = registrar.add()
    assert "/rotate" in integrator.see(own(endpoint))
    for person in (viewer, sales):
        assert "/rotate" not in person.see(own(endpoint))
        assert NEW not in person.see(WEBHOOKS)
    for button in ("pause", "resume", "rotate", "ping", "remove"):
        assert integrator.look(f"{own(endpoint)}/{button}").headers["location"] == own(endpoint)
