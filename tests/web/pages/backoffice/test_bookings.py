"""The pages of bookings: the list, one booking, what is done to it, and its payment."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from tests.support.backoffice import Desk
from tests.support.buying import Hold
from tests.support.client import Project, Unit
from tests.support.payment_system import Till
from tests.support.staff_client import Person, missing
from tests.web.pages.backoffice.unit_pages import BOOKINGS, booking_page, offered, unit_page

EVIL = "<img src=x onerror=alert(1)>"


def listed(person: Person, project: Project, **filters: str) -> str:
    query = "&".join(f"{name}={quote(value)}" for name, value in filters.items())
    return person.see(f"{BOOKINGS}?project={project.slug}&{query}")


def test_bookings_are_listed_with_unit_buyer_and_total_and_filtered(
    sales: Person, new_unit: Callable[..., Unit], project: Project, desk: Desk
) -> None:
    unit = new_unit("A-2")
    first, second = desk.held(new_unit("A-1")), desk.signed(unit)
    told = (second.reference, booking_page(second), unit_page(unit), "Nora Al-Harbi", "SAR\xa01,092,500")
    assert missing(listed(sales, project), first.reference, "Signed", *told) == []
    for filters, found, left_out in (({"unit": "A-1"}, first, second), ({"status": "signed"}, second, first)):
        page = listed(sales, project, **filters)
        assert booking_page(found) in page
        assert booking_page(left_out) not in page
    for spelled in (first.reference.lower(), first.reference.replace("-", "")):
        assert sales.look(f"{BOOKINGS}?reference={spelled}").headers["location"] == booking_page(first)


def test_a_filter_that_says_nothing_that_can_be_is_off_and_just_text(sales: Person) -> None:
    for filters in ("status=nonsense", "project=No%20Such", "unit=%20x%20", "cursor=zzz"):
        sales.see(f"{BOOKINGS}?{filters}")
    page = sales.see(f"{BOOKINGS}?reference={quote(EVIL)}&unit={quote(EVIL)}")
    assert "<img src=x" not in page
    assert "There is no booking with the reference &lt;img" in page


def test_the_list_goes_on_page_by_page(
    sales: Person, new_unit: Callable[..., Unit], project: Project, desk: Desk
) -> None:
    unit = new_unit("A-1")
    references = []
    for _ in range(52):
        references.append(desk.did(unit, "open")["bookingReference"])
        desk.did(unit, "cancel-hold")
    pages = sales.all_pages(f"{BOOKINGS}?project={project.slug}")
    shown = [[one for one in references if f"{BOOKINGS}/{one}" in page] for page in pages]
    assert [len(found) for found in shown] == [50, 2]
    assert set(shown[0]).isdisjoint(shown[1])


def test_a_booking_shows_its_terms_its_buyer_and_its_way(sales: Person, stored: Unit, desk: Desk) -> None:
    page = sales.see(booking_page(desk.reserved(stored)))
    told = (
        "SAR\xa01,092,500", "SAR\xa027,312.50", "Nora Al-Harbi", "nora@example.com", "+966 50 123 4567",
        "Signed by the buyer", "Deposit confirmed", "Waiting for the sale to be closed", unit_page(stored),
    )  # fmt: skip
    assert missing(page, *told) == []
    for reference in ("AAA-AAA-AAA", "nonsense", "%F0%9F%8F%A0"):
        assert "Page not found" in sales.see(f"{BOOKINGS}/{reference}", 404)


@pytest.mark.parametrize(
    ("condition", "actions"),
    [
        ("held", {"extend", "cancel"}),
        ("signed", {"confirm-deposit", "extend", "cancel"}),
        ("reserved", {"close-sale", "extend", "cancel"}),
        ("sold", {"erase-buyer"}),
        ("refund_due", {"mark-refunded"}),
    ],
)
def test_what_can_be_done_to_a_booking_is_offered_and_nothing_else(
    sales: Person, viewer: Person, stored: Unit, desk: Desk, condition: str, actions: set[str]
) -> None:
    held: Hold = getattr(desk, condition)(stored)
    assert offered(sales.see(booking_page(held))) == actions | {"reissue-link"}
    assert offered(viewer.see(booking_page(held))) == set()


def act(person: Person, held: Hold, action: str, **fields: str) -> httpx.Response:
    """With what the page has shown."""
    page = person.see(booking_page(held))
    seen = {name: page.split(f'name="{name}" value="')[1].split('"')[0] for name in ("status", "link")}
    return person.submit(f"{booking_page(held)}/{action}", {**seen, **fields})


def told_after(person: Person, held: Hold, action: str, **fields: str) -> str:
    answer = act(person, held, action, **fields)
    assert answer.status_code == 303, answer.text
    return person.see(answer.headers["location"])


def test_a_booking_goes_from_the_deposit_to_the_sale(sales: Person, stored: Unit, desk: Desk) -> None:
    held = desk.signed(stored)
    assert "The deposit is confirmed" in told_after(sales, held, "confirm-deposit")
    assert "The unit is sold." in told_after(sales, held, "close-sale")
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["actor"]["id"]) == ("close-sale", sales.email)


def test_a_cancelled_reservation_owes_money(sales: Person, arab: Person, stored: Unit, desk: Desk) -> None:
    held = desk.reserved(stored)
    assert "and the deposit of SAR\xa027,312.50 will have to be refunded" in sales.see(booking_page(held))
    assert "SAR\xa027,312.50 must be refunded to the buyer." in told_after(sales, held, "cancel")
    page = listed(sales, stored.project)
    assert missing(page, '<tr class="owed">', '<span class="count">') == []
    assert held.reference in listed(sales, stored.project, status="refund-due")
    assert "مبلغ الحجز مستحق الرد" in listed(arab, stored.project)
    page = arab.see(booking_page(held))
    assert missing(page, "الشروط المتفق عليها", "تسجيل رد مبلغ الحجز", "مبلغ الحجز مستحق الرد") == []
    answer = act(arab, held, "erase-buyer")
    assert answer.status_code == 409
    assert "Pay" not in answer.text.split('class="notice refused"')[1].split("</div>")[0]
    assert "The refund of the deposit was recorded" in told_after(sales, held, "mark-refunded")


def test_what_comes_of_a_late_deposit_is_told_before(sales: Person, stored: Unit, desk: Desk) -> None:
    held = desk.signed(stored)
    desk.did_to_booking(held.reference, "cancel")
    page = sales.see(booking_page(held))
    assert "The booking has ended, but the unit is still available. This will reserve unit" in page
    desk.did(stored, "open")
    assert "has arrived and has to be refunded" in sales.see(booking_page(held))
    assert "the unit cannot be reserved again" in told_after(sales, held, "confirm-deposit")


def test_a_reservation_is_extended(sales: Person, stored: Unit, desk: Desk) -> None:
    held = desk.reserved(stored)
    assert "2 Jan 2030, 12:30" in told_after(sales, held, "extend", until="2030-01-02T12:30")
    assert desk.booking(held.reference)["reservedUntil"] == "2030-01-02T09:30:00.000Z"
    told_after(sales, held, "extend", until="2030-01-02T12:30")
    for until in ("2029-01-02T12:30", ""):
        answer = act(sales, held, "extend", until=until)
        assert (answer.status_code, 'aria-invalid="true"' in answer.text) == (422, True)
    assert desk.booking(held.reference)["reservedUntil"] == "2030-01-02T09:30:00.000Z", "and sent twice"


def test_the_end_that_is_offered_is_one_period_later_at_least(
    sales: Person, stored: Unit, desk: Desk
) -> None:
    """A browser knows no seconds."""
    desk.settle(stored.project, holdSeconds=30)
    held = desk.held(stored)
    desk.did(stored, "extend", {"until": "2030-01-02T09:30:20.000Z"})
    assert 'name="until" type="datetime-local" value="2030-01-02T12:31"' in sales.see(booking_page(held))
    assert 'name="until" type="datetime-local" value="2030-01-02T12:31"' in sales.see(unit_page(stored))


def test_a_new_link_is_shown_once_and_opens_the_booking(sales: Person, stored: Unit, desk: Desk) -> None:
    held = desk.signed(stored)
    answer = act(sales, held, "reissue-link")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    link, token = (part.split('"')[0] for part in answer.text.split('data-copy="')[1:3])
    assert link.endswith(f"/p/{stored.project.slug}/bookings/{held.reference}/{token}")
    assert 'class="qr"' in answer.text
    assert replace(held, token=token).read()["reference"] == held.reference
    assert token not in sales.see(booking_page(held))
    assert sales.look(f"{booking_page(held)}/reissue-link").headers["location"] == booking_page(held)


def test_a_buyers_data_are_erased_and_the_sale_stays(sales: Person, stored: Unit, desk: Desk) -> None:
    held = desk.sold(stored)
    assert "This will erase the name" in sales.see(booking_page(held))
    page = told_after(sales, held, "erase-buyer")
    assert missing(page, "personal data was erased", "SAR\xa01,092,500") == []
    assert missing(page, "Nora", "nora@example.com") == ["Nora", "nora@example.com"]
    assert "erase-buyer" not in offered(page)
    assert "Nora" not in sales.see(unit_page(stored))
    assert "Data erased" in listed(sales, stored.project)


def test_a_refused_action_is_told_on_the_same_page(sales: Person, stored: Unit, desk: Desk) -> None:
    held = desk.held(stored)
    answer = act(sales, held, "confirm-deposit")
    assert answer.status_code == 409
    assert missing(answer.text, "The buyer has not signed yet", "Agreed terms") == []
    held.sign(buyerName=EVIL)
    for page in (sales.see(booking_page(held)), listed(sales, stored.project)):
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page
    page = sales.refused(f"{booking_page(held)}/cancel", {"status": "open"}, 409)
    assert "has changed since you opened this page" in page
    assert desk.booking(held.reference)["status"] == "signed"


def test_a_payment_is_who_confirmed_it(sales: Person, admin: Person, stored: Unit, desk: Desk) -> None:
    held, payment = desk.signed(stored), f"pay_{uuid4().hex}<b>"
    shown, escaped = '<p class="faint">Payment ', payment.replace("<b>", "&lt;b&gt;")
    assert shown not in sales.see(booking_page(held))
    assert Till(desk.http).told(payment, held.read()) == "reserved"
    page = sales.see(booking_page(held))
    assert missing(page, shown, escaped) == []
    assert payment not in page
    assert f'Payment <bdi class="name">{escaped}</bdi>' in sales.see(unit_page(stored))
    trail = admin.see(f"/backoffice/audit?by=payment&project={stored.project.slug}")
    assert missing(trail, escaped, held.reference) == []
    assert escaped in admin.see(f"/backoffice/audit?actor={quote(payment)}")
