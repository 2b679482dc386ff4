"""The page of a booking: where it stands and what comes next, for every status."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.backoffice import ANOTHER_BUYER, BUYER, Desk
from tests.support.client import Unit
from tests.support.payment_system import PAGE, Till
from tests.web.pages.storefront.buyers import Buyer, reference_in, unit_page

NewUnit = Callable[..., Unit]
NewBuyer = Callable[..., Buyer]

EVIL = "<img src=x onerror=alert(1)>"
DEPOSIT = "SAR\xa027,312.50"
TOTAL = "SAR\xa01,092,500"


def reserved(buyer: Buyer, unit: Unit, desk: Desk) -> str:
    path = buyer.signed(unit)
    desk.did_to_booking(reference_in(path), "confirm-deposit")
    return path


def lapsed(buyer: Buyer, unit: Unit, desk: Desk) -> str:
    desk.settle(unit.project, holdSeconds=0.05)
    path = buyer.hold(unit)
    buyer.wait_for(path, "lapsed")
    return path


# Held


def test_a_held_unit_counts_down_by_the_clock_of_the_server(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    state = buyer.state(path)
    assert set(state) == {"status", "endsAt", "now"}
    assert state["status"] == "open"
    assert 290_000 < state["endsAt"] - state["now"] <= 300_000
    page = buyer.see(path)
    assert f'data-ends="{state["endsAt"]}"' in page
    assert "data-now=" in page
    assert "4 minutes" in page
    assert "<noscript>" in page


def test_the_title_is_text_alone(buyer: Buyer, stored: Unit) -> None:
    page = buyer.see(buyer.hold(stored))
    assert f"<title>Unit {stored.code} is held for you · {stored.code}</title>" in page


def test_the_form_asks_for_what_a_browser_knows_already(buyer: Buyer, stored: Unit) -> None:
    page = buyer.see(buyer.hold(stored))
    for kind in ("name", "email", "tel"):
        assert f'autocomplete="{kind}"' in page
    for text in ('type="email"', 'type="tel"', DEPOSIT, TOTAL):
        assert text in page


def test_pages_of_bookings_are_kept_by_nobody(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    for shown in (path, f"{path}/state"):
        answer = buyer.look(shown)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
    assert "noindex" in buyer.look(path).headers["x-robots-tag"]
    assert '<meta name="robots" content="noindex' in buyer.see(path)


# Signing


def test_signing_leads_back_to_the_booking(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = buyer.signed(stored)
    booking = desk.booking(reference_in(path))
    assert booking["status"] == "signed"
    assert booking["buyer"]["name"] == BUYER["buyerName"]
    assert "Signed. Now the deposit" in buyer.see(path)


def test_everything_that_is_wrong_is_told_at_once_and_nothing_is_lost(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    answer = buyer.sign(path, buyerName=" ", buyerEmail="nora at home", buyerPhone="ask me", consent="")
    assert answer.status_code == 422
    for text in (
        "Enter your full name.", "This must be an e-mail address.", "This must be a phone number",
        "Tick the box", 'value="nora at home"', 'value="ask me"', 'href="#f-buyerEmail"', "Error:",
    ):  # fmt: skip
        assert text in answer.text
    assert answer.text.count('aria-invalid="true"') == 4
    assert buyer.state(path)["status"] == "open"


def test_nobody_signs_without_consent(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    answer = buyer.sign(path, consent="")
    assert answer.status_code == 422
    assert f'value="{BUYER["buyerName"]}"' in answer.text
    assert buyer.state(path)["status"] == "open"


def test_what_is_typed_is_just_text(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    assert "<img src=x" not in buyer.sign(path, buyerName=EVIL, consent="").text
    assert buyer.sign(path, buyerName=EVIL).status_code == 303
    answer = buyer.sign(path, **ANOTHER_BUYER)
    assert "<img src=x" not in answer.text
    assert "&lt;img src=x" in answer.text


def test_signing_twice_with_the_same_values_is_fine(buyer: Buyer, stored: Unit) -> None:
    path = buyer.signed(stored)
    again = buyer.sign(path)
    assert (again.status_code, again.headers["location"]) == (303, path)


def test_signing_twice_with_others_says_so_and_changes_nothing(
    buyer: Buyer, stored: Unit, desk: Desk
) -> None:
    path = buyer.signed(stored)
    answer = buyer.sign(path, **ANOTHER_BUYER)
    assert answer.status_code == 409
    assert f"You have signed already, as {BUYER['buyerName']}" in answer.text
    assert desk.booking(reference_in(path))["buyer"]["name"] == BUYER["buyerName"]


def test_two_signatures_at_the_same_time_are_one(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    with ThreadPoolExecutor(2) as clicks:
        answers = list(clicks.map(buyer.sign, [path] * 2))
    assert [answer.status_code for answer in answers] == [303, 303]


def test_nobody_signs_for_what_they_have_not_read(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    page = buyer.see(path)
    assert stored.patch({"areaSqm": 99}).status_code == 200
    read = page.split('name="read" value="')[1].split('"')[0]
    answer = buyer.sign(path, read=read)
    assert answer.status_code == 409
    assert "read it again, then sign" in answer.text
    assert f'value="{BUYER["buyerName"]}"' in answer.text
    assert buyer.state(path)["status"] == "open"
    assert buyer.sign(path).status_code == 303


def test_a_hold_that_ran_out_is_not_signed(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = lapsed(buyer, stored, desk)
    answer = buyer.sign(path)
    assert answer.status_code == 409
    assert "Nothing was signed." in answer.text
    assert "has run out" in answer.text


def test_the_agreement_is_kept_in_the_language_it_was_read_in(
    new_buyer: NewBuyer, stored: Unit, desk: Desk
) -> None:
    buyer = new_buyer(**{"accept-language": "ar"})
    path = buyer.hold(stored)
    page = buyer.see(path)
    assert '<html lang="ar" dir="rtl">' in page
    assert "توقيع الاتفاقية" in page
    assert buyer.sign(path).status_code == 303
    assert "تم التوقيع" in buyer.see(path)


@pytest.mark.parametrize("deed", ["sign", "pay", "cancel"])
def test_reloading_the_answer_to_a_form_shows_the_booking(buyer: Buyer, stored: Unit, deed: str) -> None:
    path = buyer.hold(stored)
    answer = buyer.look(f"{path}/{deed}?lang=ar")
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert '<html lang="ar"' in buyer.see(path)


@pytest.mark.parametrize("deed", ["sign", "pay", "cancel"])
def test_a_form_of_another_site_changes_nothing(buyer: Buyer, stored: Unit, deed: str) -> None:
    path = buyer.hold(stored)
    answer = buyer.post_form(f"{path}/{deed}", {**BUYER, "consent": "yes", "csrf": "0" * 64})
    assert answer.status_code == 403
    assert buyer.state(path)["status"] == "open"


# The deposit


def test_paying_leads_to_the_payment_page_however_often(buyer: Buyer, stored: Unit) -> None:
    path = buyer.signed(stored)
    assert f'action="{path}/pay"' in buyer.see(path)
    for _ in range(2):
        answer = buyer.post_form(f"{path}/pay")
        assert answer.status_code == 303
        address = urlsplit(answer.headers["location"])
        assert answer.headers["location"].startswith(PAGE + "?")
        asked = parse_qs(address.query)
        assert asked["reference"] == [reference_in(path)]
        assert asked["returnUrl"][0].endswith(f"{path}?paid=1")


def test_who_comes_back_from_the_payment_page_waits_for_the_confirmation(
    buyer: Buyer, stored: Unit, desk: Desk
) -> None:
    path = buyer.signed(stored)
    page = buyer.see(f"{path}?paid=1")
    assert "We are waiting for your payment" in page
    assert 'data-poll="2"' in page
    assert f'href="{path}?paid=1&amp;lang=ar"' in page
    payment = {
        "id": "pay_1",
        "reference": reference_in(path),
        "amountSar": desk.booking(reference_in(path))["terms"]["depositSar"],
    }
    assert Till(desk.http).send(payment).status_code == 200
    assert "is reserved for you" in buyer.see(f"{path}?paid=1")
    again = buyer.post_form(f"{path}/pay")
    assert (again.status_code, again.headers["location"]) == (303, path)


def test_without_a_payment_page_the_seller_confirms(limited_buyer: Buyer, stored: Unit) -> None:
    path = limited_buyer.signed(stored)
    page = limited_buyer.see(path)
    assert "The seller tells you how to pay" in page
    assert f'action="{path}/pay"' not in page
    answer = limited_buyer.post_form(f"{path}/pay")
    assert (answer.status_code, answer.headers["location"]) == (303, path)


def test_where_there_is_no_deposit_nothing_is_to_be_paid(buyer: Buyer, new_unit: NewUnit) -> None:
    path = buyer.signed(new_unit("A-1", depositPercent=None))
    assert "There is nothing to pay." in buyer.see(path)
    assert buyer.post_form(f"{path}/pay").headers["location"] == path


def test_nothing_is_paid_before_the_signature(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    assert buyer.post_form(f"{path}/pay").headers["location"] == path


# Afterwards


def test_a_reservation_shows_its_end_its_reference_and_its_papers(
    buyer: Buyer, stored: Unit, desk: Desk
) -> None:
    path = reserved(buyer, stored, desk)
    page = buyer.see(path)
    for text in (
        "is reserved for you", f"<bdi>{reference_in(path)}</bdi>", f'href="{path}/agreement"',
        f'href="{path}/agreement.pdf"', f'href="{path}/receipt"', f'href="{path}/receipt.pdf"', "What next?",
    ):  # fmt: skip
        assert text in page
    assert "/cancel" not in page


def test_a_reservation_is_not_let_go_by_the_buyer(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = reserved(buyer, stored, desk)
    answer = buyer.post_form(f"{path}/cancel")
    assert answer.status_code == 409
    assert "only the seller can cancel" in answer.text
    assert buyer.state(path)["status"] == "reserved"


def test_a_sale_is_told(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = reserved(buyer, stored, desk)
    desk.did_to_booking(reference_in(path), "close-sale")
    page = buyer.see(path)
    assert "is yours" in page
    assert 'data-poll="0"' in page
    desk.did_to_booking(reference_in(path), "erase-buyer")
    assert "is yours" in buyer.see(path)


def test_letting_go_frees_the_unit_however_often(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    for _ in range(2):
        answer = buyer.post_form(f"{path}/cancel")
        assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert stored.read()["status"] == "available"
    page = buyer.see(path)
    assert "This booking was cancelled" in page
    assert f'action="{unit_page(stored)}/hold"' in page


def test_letting_go_of_what_ran_out_is_fine(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = lapsed(buyer, stored, desk)
    assert buyer.post_form(f"{path}/cancel").headers["location"] == path
    assert buyer.state(path) | {"now": 0} == {"status": "lapsed", "endsAt": None, "now": 0}


def test_what_ran_out_is_offered_again_while_it_is_free(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = lapsed(buyer, stored, desk)
    page = buyer.see(path)
    assert "Your time for unit" in page
    assert "The agreement was not signed" in page
    assert f'action="{unit_page(stored)}/hold"' in page
    desk.settle(stored.project, holdSeconds=300)
    newer = buyer.hold(stored)
    assert newer != path
    assert f'href="{newer}"' in buyer.see(path)


def test_what_ran_out_and_is_taken_leads_to_others_like_it(
    buyer: Buyer, new_buyer: NewBuyer, new_unit: NewUnit, desk: Desk
) -> None:
    unit, alike = new_unit("A-1"), new_unit("A-2")
    path = lapsed(buyer, unit, desk)
    desk.settle(unit.project, holdSeconds=300)
    new_buyer().hold(unit)
    page = buyer.see(path)
    assert "Somebody else has taken the unit meanwhile." in page
    assert f'href="{unit_page(alike)}"' in page
    assert f'action="{unit_page(unit)}/hold"' not in page


def test_a_payment_that_comes_too_late_is_explained_until_it_is_paid_back(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, desk: Desk
) -> None:
    desk.settle(stored.project, holdSeconds=1)
    path = buyer.signed(stored)
    buyer.wait_for(path, "lapsed")
    page = buyer.see(path)
    assert "Have you paid already?" in page
    assert 'data-poll="15"' in page
    desk.settle(stored.project, holdSeconds=300)
    new_buyer().hold(stored)
    desk.did_to_booking(reference_in(path), "confirm-deposit")
    page = buyer.see(path)
    assert "Your payment arrived when this booking had ended" in page
    assert DEPOSIT in page
    desk.did_to_booking(reference_in(path), "mark-refunded")
    assert "Your deposit was paid back" in buyer.see(path)


def test_who_lets_go_after_signing_is_told_of_a_payment_on_its_way(
    buyer: Buyer, stored: Unit, desk: Desk
) -> None:
    path = buyer.signed(stored)
    buyer.post_form(f"{path}/cancel")
    page = buyer.see(path)
    assert "Have you paid already?" in page
    assert 'data-poll="15"' in page
    desk.did(stored, "take-off-sale")
    desk.did_to_booking(reference_in(path), "confirm-deposit")
    page = buyer.see(path)
    assert "Your payment arrived when this booking had ended" in page
    assert "taken" not in page.split("<main")[1]


def test_a_reservation_that_the_seller_ended_owes_its_deposit(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = reserved(buyer, stored, desk)
    desk.did_to_booking(reference_in(path), "cancel")
    page = buyer.see(path)
    assert "Your deposit is being paid back" in page
    assert "The reservation ended" in page


def test_a_unit_that_was_taken_off_sale_is_not_offered_again(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = buyer.hold(stored)
    desk.did(stored, "take-off-sale")
    page = buyer.see(path)
    assert "This booking was cancelled" in page
    assert "/hold" not in page


ENGLISH = re.compile(r"\b(the|you|your|and|is|it)\b", re.IGNORECASE)
STATUSES = ("open", "signed", "reserved", "sold", "lapsed", "cancelled", "refund-due")


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_told_in_arabic(new_buyer: NewBuyer, stored: Unit, desk: Desk, status: str) -> None:
    buyer = new_buyer(**{"accept-language": "ar-SA,ar;q=0.9"})
    page = buyer.see(brought(buyer, stored, desk, status))
    assert '<html lang="ar" dir="rtl">' in page
    main = re.sub(r"<[^>]*>", " ", page.split("<main")[1].split("</main>")[0])
    assert not ENGLISH.search(main.replace(f"The {stored.project.slug}", ""))


def brought(buyer: Buyer, unit: Unit, desk: Desk, status: str) -> str:
    if status == "lapsed":
        return lapsed(buyer, unit, desk)
    path = buyer.hold(unit) if status == "open" else buyer.signed(unit)
    ways = {
        "reserved": ["confirm-deposit"],
        "sold": ["confirm-deposit", "close-sale"],
        "cancelled": ["cancel"],
        "refund-due": ["confirm-deposit", "cancel"],
    }
    for action in ways.get(status, []):
        desk.did_to_booking(reference_in(path), action)
    return path
