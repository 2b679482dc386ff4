"""The pages of bookings: the list, one booking, and what is done to it."""

from collections.abc import Callable, Iterator
from urllib.parse import quote

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import BUYER, Desk, Held, succeeded
from tests.support.bodies import full
from tests.support.client import Project, Unit, integration_client
from tests.support.staff_client import People, Person
from tests.web.pages.backoffice.sales import BOOKINGS, Market, booking_page, offered, unit_page

EVIL = "<img src=x onerror=alert(1)>"
LINK = {"reissue-link"}


@pytest.fixture(scope="module")
def market(server: InProcessApp, staff_http: httpx.Client) -> Iterator[Market]:
    with integration_client(server.address, None) as public:
        yield Market(public, Desk(staff_http))


@pytest.fixture
def new_unit(http: httpx.Client, project: Project) -> Callable[[str], Unit]:
    def make(code: str) -> Unit:
        unit = Unit(http, project, code)
        unit.create(full())
        return unit

    return make


def listed(person: Person, project: Project, **filters: str) -> str:
    query = "&".join(f"{name}={quote(value)}" for name, value in filters.items())
    return person.see(f"{BOOKINGS}?project={project.slug}&{query}")


# The list


def test_bookings_are_listed_with_unit_buyer_and_total(sales: Person, stored: Unit, market: Market) -> None:
    held = market.signed(stored)
    page = listed(sales, stored.project)
    for text in (held.reference, booking_page(held), unit_page(stored), "Nora Al-Harbi", "SAR\xa01,092,500"):
        assert text in page
    assert "Signed" in page


def test_the_list_can_be_narrowed_down(
    sales: Person, new_unit: Callable[[str], Unit], project: Project, market: Market
) -> None:
    first, second = market.held(new_unit("A-1")), market.signed(new_unit("A-2"))
    both = listed(sales, project)
    assert first.reference in both
    assert second.reference in both
    of_unit = listed(sales, project, unit="A-1")
    assert first.reference in of_unit
    assert second.reference not in of_unit
    signed = listed(sales, project, status="signed")
    assert first.reference not in signed
    assert second.reference in signed


@pytest.mark.parametrize("filters", ["status=nonsense", "project=No%20Such", "unit=%20x%20", "cursor=zzz"])
def test_a_filter_that_says_nothing_that_can_be_is_off(sales: Person, filters: str) -> None:
    assert sales.look(f"{BOOKINGS}?{filters}").status_code == 200


def test_what_is_typed_into_a_filter_is_just_text(sales: Person) -> None:
    page = sales.see(f"{BOOKINGS}?reference={quote(EVIL)}&unit={quote(EVIL)}")
    assert "<img src=x" not in page
    assert "There is no booking with the reference &lt;img" in page


@pytest.mark.parametrize("spelled", [str.lower, lambda text: text.replace("-", "")])
def test_a_reference_leads_to_its_booking(
    sales: Person, stored: Unit, market: Market, spelled: Callable[[str], str]
) -> None:
    held = market.held(stored)
    answer = sales.look(f"{BOOKINGS}?reference={spelled(held.reference)}")
    assert (answer.status_code, answer.headers["location"]) == (303, booking_page(held))


def test_refunds_that_are_due_stand_out(sales: Person, stored: Unit, market: Market) -> None:
    held = market.due(stored)
    page = listed(sales, stored.project)
    assert '<tr class="owed">' in page
    assert '<span class="count">' in page
    assert held.reference in listed(sales, stored.project, status="refund-due")


def test_the_list_goes_on_page_by_page(
    sales: Person, new_unit: Callable[[str], Unit], project: Project, market: Market
) -> None:
    unit = new_unit("A-1")
    references = []
    for _ in range(52):
        references.append(market.desk.did(unit, "open")["bookingReference"])
        market.desk.did(unit, "cancel-hold")
    first = listed(sales, project)
    following = first.split('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    second = sales.see(following)
    shown = [[reference for reference in references if reference in page] for page in (first, second)]
    assert [len(found) for found in shown] == [50, 2]
    assert set(shown[0]).isdisjoint(shown[1])


@pytest.mark.parametrize("path", ["", "/Q39-4F6-4K6"])
def test_who_may_not_see_bookings_is_told_so(integrator: Person, path: str) -> None:
    assert "not open to you" in integrator.see(BOOKINGS + path, 403)


# One booking


def test_a_booking_shows_its_terms_its_buyer_and_its_way(sales: Person, stored: Unit, market: Market) -> None:
    page = sales.see(booking_page(market.reserved(stored)))
    for text in (
        "SAR\xa01,092,500", "SAR\xa027,312.50", "Nora Al-Harbi", "nora@example.com", "+966 50 123 4567",
        "Signed by the buyer", "Deposit confirmed", "Waiting for the sale to be closed", unit_page(stored),
    ):  # fmt: skip
        assert text in page


def test_an_unknown_reference_is_told_on_a_page(sales: Person) -> None:
    for reference in ("AAA-AAA-AAA", "nonsense", "%F0%9F%8F%A0"):
        assert "There is nothing here" in sales.see(f"{BOOKINGS}/{reference}", 404)


@pytest.mark.parametrize(
    ("condition", "actions"),
    [
        ("held", {"extend", "cancel"}),
        ("signed", {"confirm-deposit", "extend", "cancel"}),
        ("reserved", {"close-sale", "extend", "cancel"}),
        ("sold", {"erase-buyer"}),
        ("due", {"mark-refunded"}),
    ],
)
def test_what_can_be_done_to_a_booking_is_offered_and_nothing_else(
    sales: Person, viewer: Person, stored: Unit, market: Market, condition: str, actions: set[str]
) -> None:
    held: Held = getattr(market, condition)(stored)
    assert offered(sales.see(booking_page(held))) == actions | LINK
    assert offered(viewer.see(booking_page(held))) == set()


def act(person: Person, held: Held, action: str, **fields: str) -> httpx.Response:
    """With what the page has shown."""
    page = person.see(booking_page(held))
    status = page.split('name="status" value="')[1].split('"')[0]
    return person.submit(f"{booking_page(held)}/{action}", {"status": status, **fields})


def told_after(person: Person, answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    return person.see(answer.headers["location"])


def test_a_booking_goes_from_the_deposit_to_the_sale(sales: Person, stored: Unit, market: Market) -> None:
    held = market.signed(stored)
    assert "The deposit is confirmed" in told_after(sales, act(sales, held, "confirm-deposit"))
    assert "The unit is sold." in told_after(sales, act(sales, held, "close-sale"))
    assert market.desk.booking(held.reference)["status"] == "sold"
    entry = market.desk.last_entry(stored)
    assert (entry["actor"]["kind"], entry["actor"]["id"]) == ("staff", sales.email)


def test_a_cancelled_reservation_owes_its_deposit_until_that_is_paid_back(
    sales: Person, stored: Unit, market: Market
) -> None:
    held = market.reserved(stored)
    assert "and the deposit of SAR\xa027,312.50 is due back" in sales.see(booking_page(held))
    page = told_after(sales, act(sales, held, "cancel"))
    assert "SAR\xa027,312.50 is due back to the buyer." in page
    assert "marked as paid back" in told_after(sales, act(sales, held, "mark-refunded"))
    assert market.desk.booking(held.reference)["status"] == "refunded"


def test_a_late_deposit_is_told_beforehand_what_comes_of_it(
    sales: Person, stored: Unit, market: Market
) -> None:
    held = market.signed(stored)
    market.desk.did_to_booking(held.reference, "cancel")
    assert "it is reserved again for <bdi>Nora Al-Harbi</bdi>" in sales.see(booking_page(held))
    market.desk.did(stored, "open")
    assert "is due back at once" in sales.see(booking_page(held))
    page = told_after(sales, act(sales, held, "confirm-deposit"))
    assert "the unit cannot be reserved again" in page
    assert market.desk.booking(held.reference)["status"] == "refund-due"


def test_a_reservation_is_extended(sales: Person, stored: Unit, market: Market) -> None:
    held = market.reserved(stored)
    page = told_after(sales, act(sales, held, "extend", until="2030-01-02T12:30"))
    assert "2 Jan 2030, 12:30" in page
    assert market.desk.booking(held.reference)["reservedUntil"] == "2030-01-02T09:30:00.000Z"
    answer = act(sales, held, "extend", until="2029-01-02T12:30")
    assert answer.status_code == 422
    assert 'value="2029-01-02T12:30"' in answer.text
    assert 'aria-invalid="true"' in answer.text


def test_a_new_link_is_shown_once_and_opens_the_booking(sales: Person, stored: Unit, market: Market) -> None:
    held = market.signed(stored)
    answer = act(sales, held, "reissue-link")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    link, token = (part.split('"')[0] for part in answer.text.split('data-copy="')[1:3])
    assert link.endswith(f"/p/{stored.project.slug}/bookings/{held.reference}/{token}")
    assert 'class="qr"' in answer.text
    assert succeeded(Held(held.http, held.reference, token).read())["reference"] == held.reference
    assert held.read().status_code == 404
    assert token not in sales.see(booking_page(held))


def test_a_buyers_data_are_erased_and_the_sale_stays(sales: Person, stored: Unit, market: Market) -> None:
    held = market.sold(stored)
    assert "are gone for good" in sales.see(booking_page(held))
    page = told_after(sales, act(sales, held, "erase-buyer"))
    assert "personal data were erased" in page
    assert "Nora" not in page
    assert "nora@example.com" not in page
    assert "SAR\xa01,092,500" in page
    assert "erase-buyer" not in offered(page)
    assert market.desk.booking(held.reference)["buyer"] is None
    assert "Nora" not in sales.see(unit_page(stored))
    assert "Data erased" in listed(sales, stored.project)


@pytest.mark.parametrize("condition", ["signed", "reserved", "due"])
def test_data_that_are_still_needed_are_not_erased(
    sales: Person, stored: Unit, market: Market, condition: str
) -> None:
    held: Held = getattr(market, condition)(stored)
    answer = act(sales, held, "erase-buyer")
    assert answer.status_code == 409
    assert 'class="notice refused"' in answer.text
    assert market.desk.booking(held.reference)["buyer"] is not None


def test_acting_on_a_page_that_is_out_of_date_is_refused_kindly(
    sales: Person, stored: Unit, market: Market
) -> None:
    held = market.signed(stored)
    market.desk.did_to_booking(held.reference, "confirm-deposit")
    answer = sales.submit(f"{booking_page(held)}/cancel", {"status": "signed"})
    assert answer.status_code == 409
    assert "has changed since you opened this page" in answer.text
    assert market.desk.booking(held.reference)["status"] == "reserved"


def test_what_the_status_forbids_is_told_on_the_same_page(
    sales: Person, stored: Unit, market: Market
) -> None:
    held = market.held(stored)
    answer = act(sales, held, "confirm-deposit")
    assert answer.status_code == 409
    assert "The buyer has not signed yet" in answer.text
    assert "Terms agreed" in answer.text


@pytest.mark.parametrize("role", ["viewer", "integrator"])
@pytest.mark.parametrize("action", ["cancel", "erase-buyer", "reissue-link", "confirm-deposit"])
def test_who_may_only_look_changes_nothing(
    people: People, stored: Unit, market: Market, role: str, action: str
) -> None:
    held = market.signed(stored)
    answer = people.signed_in(role).submit(f"{booking_page(held)}/{action}", {"status": "signed"})
    assert answer.status_code == 403
    assert market.desk.booking(held.reference)["status"] == "signed"
    assert held.read().status_code == 200


def test_reloading_the_answer_to_an_action_shows_the_booking(
    sales: Person, stored: Unit, market: Market
) -> None:
    held = market.held(stored)
    answer = sales.look(f"{booking_page(held)}/reissue-link")
    assert (answer.status_code, answer.headers["location"]) == (303, booking_page(held))


def test_a_buyer_with_markup_for_a_name_is_just_a_name(sales: Person, stored: Unit, market: Market) -> None:
    held = market.held(stored)
    assert held.sign({**BUYER, "buyerName": EVIL}).status_code == 200
    for page in (sales.see(booking_page(held)), listed(sales, stored.project)):
        assert "<img src=x" not in page
        assert "&lt;img src=x" in page


def test_bookings_are_shown_in_arabic(arab: Person, stored: Unit, market: Market) -> None:
    held = market.due(stored)
    assert "مستحق رد العربون" in listed(arab, stored.project)
    page = arab.see(booking_page(held))
    for text in ("الشروط المتفق عليها", "تسجيل رد العربون", "العربون مستحق الرد"):
        assert text in page
    answer = act(arab, held, "erase-buyer")
    assert "Pay" not in answer.text.split('class="notice refused"')[1].split("</div>")[0]
