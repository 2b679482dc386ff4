"""The page of a unit: what it shows, what it offers, and what comes of it."""

from collections.abc import Iterator
from itertools import product

import httpx
import pytest

from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller, transitions_for
from tests.support.app import InProcessApp
from tests.support.backoffice import ANOTHER_BUYER, BUYER, Desk
from tests.support.bodies import full, minimal
from tests.support.client import Unit, integration_client
from tests.support.staff_client import People, Person
from tests.support.webhooks import Registrar
from tests.web.pages.backoffice.sales import Market, booking_page, known, offered, unit_page

EVIL = "<img src=x onerror=alert(1)>"
OF_SALES = tuple(Status)


@pytest.fixture(scope="module")
def market(server: InProcessApp, staff_http: httpx.Client) -> Iterator[Market]:
    with integration_client(server.address, None) as public:
        yield Market(public, Desk(staff_http))


# What it shows


def test_every_field_of_the_unit_is_shown(sales: Person, stored: Unit) -> None:
    page = sales.see(unit_page(stored))
    for text in ("A-101", "SAR\xa0950,000", "SAR\xa01,092,500", "SAR\xa027,312.50", "120.5\xa0m²", "2027"):
        assert text in page
    assert "A corner flat.\nSea view." in page
    assert stored.read()["ref"] in page
    assert stored.read()["id"] in page


def test_a_unit_with_nothing_but_what_it_needs_is_shown(sales: Person, unit: Unit) -> None:
    unit.create(minimal())
    assert "SAR\xa07,883.82" in sales.see(unit_page(unit))


def test_pictures_and_files_are_those_of_the_unit(sales: Person, stored: Unit) -> None:
    page = sales.see(unit_page(stored))
    for image in ("https://media.example/a.jpg", "https://media.example/b.jpg"):
        assert f'<img src="{image}"' in page
    assert 'loading="lazy"' in page
    assert "Picture 2: Plan" in page
    assert 'href="https://media.example/contract.pdf" rel="noreferrer noopener"' in page


def test_a_picture_that_browsers_would_not_load_here_is_a_link(sales: Person, unit: Unit) -> None:
    unit.create(minimal(images=["http://media.example/plain.jpg", "HTTPS://media.example/safe.jpg"]))
    page = sales.see(unit_page(unit))
    assert '<img src="http:' not in page
    assert '<a href="http://media.example/plain.jpg" rel="noreferrer noopener"' in page
    assert '<img src="HTTPS://media.example/safe.jpg"' in page


def test_whatever_a_unit_is_called_is_just_a_name(sales: Person, http: httpx.Client, stored: Unit) -> None:
    evil = Unit(http, stored.project, EVIL)
    media = {"url": "https://media.example/x", "name": EVIL}
    evil.create(full(type=EVIL, description=EVIL, images=[media], files=[media]))
    for path in (unit_page(evil), f"{unit_page(evil)}/history"):
        page = sales.see(path)
        assert "<img src=x" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page


@pytest.mark.parametrize("code", ["A/101", "A.1", "وحدة 1", "50%", "a?b#c", "A+B"])
def test_a_unit_of_any_code_has_a_page_and_can_be_acted_on(
    sales: Person, http: httpx.Client, stored: Unit, code: str
) -> None:
    unit = Unit(http, stored.project, code)
    unit.create(full())
    sales.done(f"{unit_page(unit)}/take-off-sale", known(sales, unit))
    assert unit.read()["status"] == "unavailable"


def test_what_is_not_there_is_told_on_a_page(sales: Person, stored: Unit) -> None:
    for path in (unit_page(stored) + "9", f"{unit_page(stored)}9/history", unit_page(stored) + "/nonsense"):
        assert "There is nothing here" in sales.see(path, 404)


def test_who_has_the_unit_is_shown_with_the_end_of_the_hold(
    sales: Person, stored: Unit, market: Market
) -> None:
    held = market.signed(stored)
    page = sales.see(unit_page(stored))
    assert "Nora Al-Harbi" in page
    assert booking_page(held) in page
    assert "data-ends=" in page


def test_who_may_not_see_bookings_sees_neither_buyer_nor_reference(
    integrator: Person, stored: Unit, market: Market
) -> None:
    held = market.reserved(stored)
    for path in (unit_page(stored), f"{unit_page(stored)}/history", f"{unit_page(stored)}/panel"):
        page = integrator.see(path)
        assert "Nora" not in page
        assert held.reference not in page


# What it offers


@pytest.mark.parametrize(("role", "status"), list(product(("sales", "admin"), OF_SALES)))
def test_the_buttons_are_the_lines_of_the_status_table(
    people: People, stored: Unit, market: Market, role: str, status: Status
) -> None:
    market.brought(stored, status)
    caller = Caller.ADMIN if role == "admin" else Caller.STAFF
    possible = {str(row.action) for row in transitions_for(caller, status, archived=False)}
    if status is Status.HELD:
        # Nobody has signed.
        possible.discard("confirm-deposit")
    assert offered(people.signed_in(role).see(unit_page(stored))) == possible


@pytest.mark.parametrize("role", ["viewer", "integrator"])
@pytest.mark.parametrize("status", OF_SALES)
def test_who_may_only_look_is_offered_nothing(
    people: People, stored: Unit, market: Market, role: str, status: Status
) -> None:
    market.brought(stored, status)
    assert offered(people.signed_in(role).see(unit_page(stored))) == set()


def test_the_deposit_can_be_confirmed_once_the_buyer_has_signed(
    sales: Person, stored: Unit, market: Market
) -> None:
    market.signed(stored)
    assert "confirm-deposit" in offered(sales.see(unit_page(stored)))


def test_a_dangerous_action_says_whom_it_hits(sales: Person, stored: Unit, market: Market) -> None:
    held = market.held(stored)
    assert "The buyer's hold ends now." in sales.see(unit_page(stored))
    assert held.sign().status_code == 200
    assert "The hold of <bdi>Nora Al-Harbi</bdi> ends now." in sales.see(unit_page(stored))
    market.desk.did_to_booking(held.reference, "confirm-deposit")
    page = sales.see(unit_page(stored))
    assert "The reservation of <bdi>Nora Al-Harbi</bdi> ends now, and the deposit of SAR\xa027,312.50" in page


# What comes of it


def test_a_unit_is_held_for_a_buyer(sales: Person, stored: Unit, market: Market) -> None:
    page = sales.done(f"{unit_page(stored)}/open", known(sales, stored))
    assert "The unit is held until" in page
    assert stored.read()["status"] == "held"
    entry = market.desk.last_entry(stored)
    assert (entry["action"], entry["actor"]["kind"], entry["actor"]["id"]) == ("open", "staff", sales.email)


def test_a_unit_is_put_on_and_off_sale_and_archived(sales: Person, stored: Unit) -> None:
    for action, status in (
        ("take-off-sale", "unavailable"),
        ("put-on-sale", "available"),
        ("archive", "unavailable"),
        ("put-on-sale", "available"),
    ):
        sales.done(f"{unit_page(stored)}/{action}", known(sales, stored))
        assert stored.read()["status"] == status


def test_a_hold_goes_on_to_the_sale(sales: Person, stored: Unit, market: Market) -> None:
    market.signed(stored)
    sales.done(f"{unit_page(stored)}/confirm-deposit", known(sales, stored))
    assert stored.read()["status"] == "reserved"
    assert "The unit is sold." in sales.done(f"{unit_page(stored)}/close-sale", known(sales, stored))
    assert stored.read()["status"] == "sold"


def test_an_admin_revokes_a_sale_and_sales_may_not(
    admin: Person, sales: Person, stored: Unit, market: Market
) -> None:
    market.sold(stored)
    answer = sales.submit(f"{unit_page(stored)}/revoke-sale", known(admin, stored))
    assert answer.status_code == 403
    assert stored.read()["status"] == "sold"
    admin.done(f"{unit_page(stored)}/revoke-sale", known(admin, stored))
    assert stored.read()["status"] == "unavailable"


@pytest.mark.parametrize("role", ["viewer", "integrator"])
def test_who_may_only_look_changes_nothing(people: People, stored: Unit, role: str) -> None:
    person = people.signed_in(role)
    known_revision = {"revision": stored.etag.strip('"')}
    assert person.submit(f"{unit_page(stored)}/archive", known_revision).status_code == 403
    assert stored.read()["status"] == "available"


def test_a_walk_in_buyer_is_named_and_the_unit_sold(sales: Person, stored: Unit, market: Market) -> None:
    page = sales.done(f"{unit_page(stored)}/close-sale", {**known(sales, stored), **ANOTHER_BUYER})
    assert "The unit is sold." in page
    assert "Omar Haddad" in page
    (booking,) = market.desk.bookings(project=stored.project.slug)["bookings"]
    assert booking["buyer"]["email"] == ANOTHER_BUYER["buyerEmail"]


def test_what_is_wrong_with_a_buyer_stands_beside_its_field(sales: Person, stored: Unit) -> None:
    typed = {"buyerName": "Omar <b>", "buyerEmail": "nonsense", "buyerPhone": ""}
    answer = sales.submit(f"{unit_page(stored)}/close-sale", {**known(sales, stored), **typed})
    assert answer.status_code == 422
    assert 'value="Omar &lt;b&gt;"' in answer.text
    assert 'value="nonsense"' in answer.text
    assert answer.text.count('aria-invalid="true"') == 2
    assert "This field is required." in answer.text
    assert stored.read()["status"] == "available"


def test_a_hold_is_extended_to_a_chosen_end_in_the_time_of_the_person(
    sales: Person, stored: Unit, market: Market
) -> None:
    market.held(stored)
    fields = {**known(sales, stored), "until": "2030-01-02T12:30"}
    assert "2 Jan 2030, 12:30" in sales.done(f"{unit_page(stored)}/extend", fields)
    # Riyadh is three hours ahead.
    assert stored.read()["holdExpiresAt"] == "2030-01-02T09:30:00.000Z"


def test_an_extension_without_an_end_adds_a_period(sales: Person, stored: Unit, market: Market) -> None:
    market.held(stored)
    before = stored.read()["holdExpiresAt"]
    sales.done(f"{unit_page(stored)}/extend", {**known(sales, stored), "until": ""})
    assert stored.read()["holdExpiresAt"] > before


@pytest.mark.parametrize(
    "until", ["tomorrow", "2001-01-01T00:00", "0001-01-01T00:00", "9999-12-31T23:59", "2030-01-02T25:00"]
)
def test_an_end_that_cannot_be_is_told_beside_its_field(
    sales: Person, stored: Unit, market: Market, until: str
) -> None:
    market.held(stored)
    before = stored.read()
    answer = sales.submit(f"{unit_page(stored)}/extend", {**known(sales, stored), "until": until})
    assert answer.status_code == 422
    assert f'value="{until}"' in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert stored.read() == before


def test_a_fault_of_a_form_that_is_not_there_any_more_is_told_all_the_same(
    sales: Person, stored: Unit
) -> None:
    answer = sales.submit(
        f"{unit_page(stored)}/extend", {**known(sales, stored), "until": "2001-01-01T00:00"}
    )
    assert answer.status_code == 422
    assert "must not be before the present end" in answer.text.split('class="notice refused"')[1]


def test_acting_on_a_page_that_is_out_of_date_is_refused_kindly(
    sales: Person, stored: Unit, market: Market
) -> None:
    seen = known(sales, stored)
    market.reserved(stored)
    answer = sales.submit(f"{unit_page(stored)}/archive", seen)
    assert answer.status_code == 412
    assert "has changed since you opened this page" in answer.text
    assert "Nora Al-Harbi" in answer.text
    assert stored.read()["status"] == "reserved"


def test_what_was_typed_for_a_unit_that_changed_meanwhile_is_kept(sales: Person, stored: Unit) -> None:
    seen = known(sales, stored)
    assert stored.patch({"priceSar": 960_000}).status_code == 200
    answer = sales.submit(f"{unit_page(stored)}/close-sale", {**seen, **ANOTHER_BUYER})
    assert answer.status_code == 412
    assert 'value="Omar Haddad"' in answer.text
    assert '<details class="asks" open>' in answer.text
    assert "The unit is sold at SAR\xa01,104,000" in answer.text
    assert stored.read()["status"] == "available"


@pytest.mark.parametrize("revision", ["", "*", "nonsense"])
def test_a_form_that_names_no_state_changes_nothing(sales: Person, stored: Unit, revision: str) -> None:
    answer = sales.submit(f"{unit_page(stored)}/archive", {"revision": revision})
    assert answer.status_code == 412
    assert stored.read()["status"] == "available"


def test_what_the_status_forbids_is_told_on_the_same_page(sales: Person, stored: Unit) -> None:
    answer = sales.submit(f"{unit_page(stored)}/cancel-hold", known(sales, stored))
    assert answer.status_code == 409
    assert 'class="notice refused"' in answer.text
    assert "is not possible while the unit is available" in answer.text
    assert "Price and terms" in answer.text


def test_a_deposit_before_the_signature_is_refused_on_the_same_page(
    sales: Person, stored: Unit, market: Market
) -> None:
    market.held(stored)
    answer = sales.submit(f"{unit_page(stored)}/confirm-deposit", known(sales, stored))
    assert answer.status_code == 409
    assert "The buyer has not signed yet" in answer.text


def test_reloading_the_answer_to_an_action_shows_the_unit(sales: Person, stored: Unit) -> None:
    answer = sales.look(f"{unit_page(stored)}/archive")
    assert (answer.status_code, answer.headers["location"]) == (303, unit_page(stored))


# What was done to it


def test_the_history_says_who_did_what_and_what_was_before(sales: Person, stored: Unit) -> None:
    stored.patch({"priceSar": 960_000})
    sales.done(f"{unit_page(stored)}/take-off-sale", known(sales, stored))
    page = sales.see(f"{unit_page(stored)}/history")
    assert "Was taken off sale" in page
    assert sales.email in page
    assert page.index("SAR\xa0950,000") < page.index("SAR\xa0960,000")
    assert "Key <bdi" in page


def test_a_change_at_the_end_of_a_long_text_is_told(sales: Person, stored: Unit) -> None:
    for text in ("x" * 300, "x" * 300 + "y"):
        assert stored.patch({"description": text}).status_code == 200
    page = sales.see(f"{unit_page(stored)}/history")
    assert page.count("x" * 280 + "…") == 3, "after the one, before and after the other"


def test_the_history_goes_on_page_by_page(sales: Person, stored: Unit) -> None:
    for price in range(951_000, 951_060):
        assert stored.patch({"priceSar": price}).status_code == 200
    assert f"{unit_page(stored)}/history" in sales.see(unit_page(stored))
    first = sales.see(f"{unit_page(stored)}/history")
    assert "SAR\xa0951,059" in first
    assert "Unit created" not in first
    following = first.split('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
    assert "Unit created" in sales.see(following)


@pytest.mark.parametrize("cursor", ["nonsense", "%00", "AAAA", "-1"])
def test_a_cursor_that_is_none_leads_to_the_first_page(sales: Person, stored: Unit, cursor: str) -> None:
    answer = sales.look(f"{unit_page(stored)}/history?cursor={cursor}")
    assert answer.status_code in (200, 400)


def test_the_latest_deliveries_lead_to_the_log(
    sales: Person, stored: Unit, registrar: Registrar, market: Market
) -> None:
    registrar.add(projects=[stored.project.slug], description="Our <CRM>")
    market.desk.did(stored, "open")
    page = sales.see(unit_page(stored))
    assert "unit.held" in page
    assert "Our &lt;CRM&gt;" in page
    (delivery,) = market.desk.http.get(
        "/v1/backoffice/deliveries", params={"endpoint": registrar.added[-1]}
    ).json()["deliveries"]
    assert f"/backoffice/deliveries/{delivery['id']}" in page


# Live


def test_a_script_is_told_nothing_while_the_unit_is_as_it_was(sales: Person, stored: Unit) -> None:
    seen = known(sales, stored)["revision"]
    answer = sales.look(f"{unit_page(stored)}/panel?revision={seen}", **{"hx-request": "true"})
    assert (answer.status_code, answer.content) == (204, b"")


def test_a_script_gets_the_new_state_without_the_rest_of_the_page(
    sales: Person, stored: Unit, market: Market
) -> None:
    seen = known(sales, stored)["revision"]
    market.signed(stored)
    page = sales.look(f"{unit_page(stored)}/panel?revision={seen}", **{"hx-request": "true"}).text
    assert "Nora Al-Harbi" in page
    assert "<html" not in page


def test_a_unit_is_shown_in_arabic_from_right_to_left(arab: Person, stored: Unit, market: Market) -> None:
    market.signed(stored)
    page = arab.see(unit_page(stored))
    assert 'lang="ar" dir="rtl"' in page
    for text in ("محجوزة مؤقتًا", "تأكيد العربون", "ينتهي الآن الحجز المؤقت باسم", "السعر والشروط"):
        assert text in page
    answer = arab.submit(f"{unit_page(stored)}/archive", {"revision": "0"})
    assert "تغيّرت الوحدة منذ أن فتحت هذه الصفحة" in answer.text


def test_a_buyer_with_markup_for_a_name_is_just_a_name(sales: Person, stored: Unit, market: Market) -> None:
    held = market.held(stored)
    assert held.sign({**BUYER, "buyerName": EVIL}).status_code == 200
    page = sales.see(unit_page(stored))
    assert "<img src=x" not in page
    assert "The hold of <bdi>&lt;img src=x onerror=alert(1)&gt;</bdi> ends now." in page
