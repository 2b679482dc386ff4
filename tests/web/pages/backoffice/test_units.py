"""The page of a unit: what it shows, what it offers, and what comes of it."""

from collections.abc import Callable

import httpx
import pytest

from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller, transitions_for
from tests.support.backoffice import Desk
from tests.support.bodies import full, minimal
from tests.support.buying import ANOTHER_BUYER
from tests.support.client import Unit
from tests.support.staff_client import Person, missing
from tests.support.webhooks import Registrar
from tests.web.pages.backoffice.unit_pages import booking_page, known, offered, unit_page

EVIL = "<img src=x onerror=alert(1)>"
PART = {"hx-request": "true"}


def act(person: Person, unit: Unit, action: str, **fields: str) -> str:
    """The page after an action that is possible."""
    return person.done(f"{unit_page(unit)}/{action}", {**known(person, unit), **fields})


def refused(person: Person, unit: Unit, action: str, status: int, **fields: str) -> str:
    """The page of an action that is not, which changes nothing."""
    before = unit.read()
    page = person.refused(f"{unit_page(unit)}/{action}", {**known(person, unit), **fields}, status)
    assert unit.read() == before
    return page


def test_every_field_picture_and_file_of_the_unit_is_shown(sales: Person, stored: Unit) -> None:
    page = sales.see(unit_page(stored))
    told = (
        "A-101", "SAR\xa0950,000", "SAR\xa01,092,500", "SAR\xa027,312.50", "120.5\xa0m²", "2027",
        "A corner flat.\nSea view.", stored.read()["ref"], stored.read()["id"], "Picture 2: Plan",
        '<img src="https://media.example/a.jpg"', '<img src="https://media.example/b.jpg"', 'loading="lazy"',
        'href="https://media.example/contract.pdf" rel="noreferrer noopener"',
    )  # fmt: skip
    assert missing(page, *told) == []


def test_a_picture_that_browsers_would_not_load_here_is_a_link(sales: Person, unit: Unit) -> None:
    unit.create(minimal(images=["http://media.example/plain.jpg", "HTTPS://media.example/safe.jpg"]))
    page = sales.see(unit_page(unit))
    link = '<a href="http://media.example/plain.jpg" rel="noreferrer noopener"'
    assert missing(page, link, '<img src="HTTPS://media.example/safe.jpg"', "SAR\xa07,883.82") == []
    assert '<img src="http:' not in page


def test_whatever_unit_and_buyer_are_called_is_just_a_name(
    sales: Person, http: httpx.Client, stored: Unit, desk: Desk
) -> None:
    evil = Unit(http, stored.project, EVIL)
    media = {"url": "https://media.example/x", "name": EVIL}
    evil.create(full(type=EVIL, description=EVIL, images=[media], files=[media]))
    desk.held(evil).sign(buyerName=EVIL)
    escaped = "&lt;img src=x onerror=alert(1)&gt;"
    for rest, told in (("", f"This will end the hold of <bdi>{escaped}</bdi>"), ("/history", escaped)):
        page = sales.see(unit_page(evil) + rest)
        assert "<img src=x" not in page
        assert told in page


def test_a_unit_of_any_code_can_be_acted_on(sales: Person, new_unit: Callable[..., Unit]) -> None:
    for code in ("A/101", "A.1", "وحدة 1", "50%", "a?b#c", "A+B"):
        unit = new_unit(code)
        act(sales, unit, "take-off-sale")
        assert unit.read()["status"] == "unavailable"
    for path in (unit_page(unit) + "9", f"{unit_page(unit)}9/history", unit_page(unit) + "/nonsense"):
        assert "Page not found" in sales.see(path, 404)


def test_who_has_the_unit_is_shown_to_those_who_may_see_bookings(
    sales: Person, integrator: Person, stored: Unit, desk: Desk
) -> None:
    held = desk.signed(stored)
    page = sales.see(unit_page(stored))
    assert missing(page, "Nora Al-Harbi", booking_page(held), "data-ends=") == []
    secrets = ["Nora", held.reference]
    for path in (unit_page(stored), f"{unit_page(stored)}/history", f"{unit_page(stored)}/panel"):
        assert missing(integrator.see(path), *secrets) == secrets


@pytest.mark.parametrize("status", Status)
def test_the_buttons_are_the_lines_of_the_status_table(
    admin: Person, sales: Person, viewer: Person, stored: Unit, desk: Desk, status: Status
) -> None:
    desk.bring(stored, status)
    for person, caller in ((admin, Caller.ADMIN), (sales, Caller.STAFF)):
        possible = {str(row.action) for row in transitions_for(caller, status, archived=False)}
        if status is Status.HELD:
            # Nobody has signed.
            possible.discard("confirm-deposit")
        assert offered(person.see(unit_page(stored))) == possible
    assert offered(viewer.see(unit_page(stored))) == set()


def test_a_dangerous_action_says_whom_it_hits(sales: Person, stored: Unit, desk: Desk) -> None:
    held = desk.held(stored)
    assert "This will end the hold of the buyer." in sales.see(unit_page(stored))
    held.sign()
    page = sales.see(unit_page(stored))
    assert "This will end the hold of <bdi>Nora Al-Harbi</bdi>. Unit <bdi>A-101</bdi> will be" in page
    assert "This will reserve unit <bdi>A-101</bdi> for <bdi>Nora Al-Harbi</bdi> until" in page
    assert "Confirm only if the deposit of SAR\xa027,312.50 has arrived." in page
    assert "confirm-deposit" in offered(page)
    desk.did_to_booking(held.reference, "confirm-deposit")
    page = sales.see(unit_page(stored))
    ends = "The reservation of <bdi>Nora Al-Harbi</bdi> will end, and the deposit of SAR\xa027,312.50 will"
    assert page.count(ends) == 2, "the unit is taken off sale or archived"
    assert "This will cancel the reservation of <bdi>Nora Al-Harbi</bdi>." in page


def test_a_unit_is_put_on_and_off_sale_archived_and_held(sales: Person, stored: Unit, desk: Desk) -> None:
    for action, status in (
        ("take-off-sale", "unavailable"),
        ("put-on-sale", "available"),
        ("archive", "unavailable"),
        ("put-on-sale", "available"),
    ):
        act(sales, stored, action)
        assert stored.read()["status"] == status
    assert "The unit is held until" in act(sales, stored, "open")
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["actor"]["kind"], entry["actor"]["id"]) == ("open", "staff", sales.email)


def test_a_sale_is_revoked_by_admins(admin: Person, sales: Person, stored: Unit, desk: Desk) -> None:
    desk.signed(stored)
    act(sales, stored, "confirm-deposit")
    assert stored.read()["status"] == "reserved"
    assert "The unit is sold." in act(sales, stored, "close-sale")
    sales.refused(f"{unit_page(stored)}/revoke-sale", known(admin, stored), 403)
    assert stored.read()["status"] == "sold"
    act(admin, stored, "revoke-sale")
    assert stored.read()["status"] == "unavailable"


def test_a_walk_in_buyer_is_named_and_the_unit_sold(sales: Person, stored: Unit, desk: Desk) -> None:
    typed = {"buyerName": "Omar <b>", "buyerEmail": "nonsense", "buyerPhone": ""}
    page = refused(sales, stored, "close-sale", 422, **typed)
    told = ('value="Omar &lt;b&gt;"', 'value="nonsense"', "This field is required.")
    assert missing(page, *told) == []
    assert page.count('aria-invalid="true"') == 2
    page = act(sales, stored, "close-sale", **ANOTHER_BUYER)
    assert missing(page, "The unit is sold.", "Omar Haddad") == []
    (booking,) = desk.bookings(project=stored.project.slug)["bookings"]
    assert booking["buyer"]["email"] == ANOTHER_BUYER["buyerEmail"]


def test_a_hold_is_extended_in_the_time_of_the_person(sales: Person, stored: Unit, desk: Desk) -> None:
    page = refused(sales, stored, "extend", 422, until="2001-01-01T00:00")
    assert "must not be before the current end" in page.split('class="notice refused"')[1], "there is no form"
    desk.held(stored)
    for until in (
        "", "tomorrow", "2001-01-01T00:00", "0001-01-01T00:00", "9999-12-31T23:59", "2030-01-02T25:00",
    ):  # fmt: skip
        page = refused(sales, stored, "extend", 422, until=until)
        assert 'aria-invalid="true"' in page
        assert f'value="{until}"' in page or not until
    assert "2 Jan 2030, 12:30" in act(sales, stored, "extend", until="2030-01-02T12:30")
    # Riyadh is three hours ahead.
    assert stored.read()["holdExpiresAt"] == "2030-01-02T09:30:00.000Z"


def test_an_outdated_page_changes_nothing(sales: Person, arab: Person, stored: Unit, desk: Desk) -> None:
    seen = known(sales, stored)
    assert stored.patch({"priceSar": 960_000}).status_code == 200
    page = sales.refused(f"{unit_page(stored)}/close-sale", {**seen, **ANOTHER_BUYER}, 412)
    told = ('value="Omar Haddad"', '<details class="asks" open>', "for SAR\xa01,104,000, without a hold")
    assert missing(page, *told) == []
    desk.reserved(stored)
    for revision in (seen["revision"], "", "*", "nonsense"):
        page = sales.refused(f"{unit_page(stored)}/archive", {"revision": revision}, 412)
        assert missing(page, "has changed since you opened this page", "Nora Al-Harbi") == []
    assert stored.read()["status"] == "reserved"
    page = arab.refused(f"{unit_page(stored)}/archive", {"revision": "0"}, 412)
    assert "تغيّرت الوحدة منذ أن فتحت هذه الصفحة" in page


def test_what_the_status_forbids_is_told(sales: Person, stored: Unit, desk: Desk) -> None:
    page = refused(sales, stored, "cancel-hold", 409)
    told = ('class="notice refused"', "is not possible while the unit is available", "Price and terms")
    assert missing(page, *told) == []
    desk.held(stored)
    assert "The buyer has not signed yet" in refused(sales, stored, "confirm-deposit", 409)
    assert sales.look(f"{unit_page(stored)}/archive").headers["location"] == unit_page(stored), "reloaded"


def test_the_history_says_who_did_what_and_what_was_before(sales: Person, stored: Unit) -> None:
    stored.patch({"priceSar": 960_000})
    act(sales, stored, "take-off-sale")
    for text in ("x" * 300, "x" * 300 + "y"):
        assert stored.patch({"description": text}).status_code == 200
    page = sales.see(f"{unit_page(stored)}/history")
    assert missing(page, "Taken off sale", sales.email, "Key <bdi") == []
    assert page.index("SAR\xa0950,000") < page.index("SAR\xa0960,000")
    assert page.count("x" * 280 + "…") == 3, "after the one, before and after the other"


def test_the_history_goes_on_page_by_page(sales: Person, stored: Unit) -> None:
    for price in range(951_000, 951_060):
        assert stored.patch({"priceSar": price}).status_code == 200
    assert f"{unit_page(stored)}/history" in sales.see(unit_page(stored))
    first, second = sales.all_pages(f"{unit_page(stored)}/history")
    assert "SAR\xa0951,059" in first
    assert ("Unit created" in first, "Unit created" in second) == (False, True)
    for cursor in ("nonsense", "%00", "AAAA", "-1"):
        assert sales.look(f"{unit_page(stored)}/history?cursor={cursor}").status_code in (200, 400)


def test_the_latest_deliveries_lead_to_the_log(
    sales: Person, stored: Unit, registrar: Registrar, desk: Desk
) -> None:
    endpoint = registrar.add(description="Our <CRM>")
    desk.did(stored, "open")
    (delivery,) = registrar.deliveries(endpoint=endpoint["id"])["deliveries"]
    told = ("unit.held", "Our &lt;CRM&gt;", f"/backoffice/deliveries/{delivery['id']}")
    assert missing(sales.see(unit_page(stored)), *told) == []


def test_a_script_gets_the_new_state_alone(sales: Person, arab: Person, stored: Unit, desk: Desk) -> None:
    panel = f"{unit_page(stored)}/panel?revision={known(sales, stored)['revision']}"
    answer = sales.look(panel, **PART)
    assert (answer.status_code, answer.content) == (204, b"")
    desk.signed(stored)
    page = sales.see(panel, 200, **PART)
    assert "Nora Al-Harbi" in page
    assert "<html" not in page
    page = arab.see(unit_page(stored))
    told = ("قيد الحجز", "تأكيد مبلغ الحجز", "سينتهي الحجز المؤقت باسم", "السعر والشروط")
    assert missing(page, 'lang="ar" dir="rtl"', *told) == []
