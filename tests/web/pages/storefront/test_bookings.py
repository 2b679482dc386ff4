"""The page of a booking: who gets at it, where it stands and what comes next, for every status."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.buying import ANOTHER_BUYER, BUYER
from tests.support.client import Project, Unit
from tests.support.payment_system import PAGE, Till
from tests.support.sql import Sql
from tests.support.staff_client import missing
from tests.support.unit_rows import end_now
from tests.web.pages.storefront.buyers import BOOKING_COOKIE, Buyer, link_on, reference_in, unit_page

NewUnit = Callable[..., Unit]
NewBuyer = Callable[..., Buyer]

EVIL = "<img src=x onerror=alert(1)>"
CLOSED = "This booking cannot be opened here"
DEPOSIT = "SAR\xa027,312.50"
TOTAL = "SAR\xa01,092,500"
DEEDS = ("sign", "pay", "cancel")


def booking_cookies(buyer: Buyer) -> dict[str, str]:
    return {name: value for name, value in buyer.cookies_kept.items() if name.startswith(BOOKING_COOKIE)}


def reserved(buyer: Buyer, unit: Unit, desk: Desk) -> str:
    path = buyer.signed(unit)
    desk.did_to_booking(reference_in(path), "confirm-deposit")
    return path


def test_the_link_opens_the_booking_on_another_device_however_it_is_spelled(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, server: InProcessApp
) -> None:
    path = buyer.hold(stored)
    phone, link = new_buyer(), link_on(buyer.see(path))
    assert CLOSED in phone.see(path, 404)
    answer = phone.look(link)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert answer.headers["cache-control"] == "no-store"
    project, reference = path.rsplit("/", 1)
    for spelled in (reference, reference.lower(), reference.replace("-", "")):
        assert "is on hold for you" in buyer.see(f"{project}/{spelled}")
        assert "is on hold for you" in phone.see(f"{project}/{spelled}")
    assert phone.sign(path).status_code == 303
    assert "Agreement signed. Next: the deposit" in buyer.see(path)
    token = link.rpartition("/")[2]
    for slip in (
        f"{link}x", f"{link}/", f"{path}%2F{token}", f"{project}%2F{reference}%2F{token}",
        f"{project}/{token}", f"/p/{stored.project.slug}/{token}", f"/p/{token}",
    ):  # fmt: skip
        assert new_buyer().look(slip).status_code in (308, 404), slip
    log = server.log.read_text()
    assert "/bookings/{reference}/{token}" in log
    assert token not in log


def test_strangers_see_and_change_nothing(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, new_project: Callable[[], Project]
) -> None:
    path = buyer.hold(stored)
    link = link_on(buyer.see(path))
    token = link.rpartition("/")[2]
    stranger = new_buyer()
    for wrong in (token[:-1], token + "x", "nonsense", "%FF", "hft_" + "0" * 40):
        assert "<html" in stranger.see(f"{path}/{wrong}", 404)
    for deed in DEEDS:
        answer = stranger.post_form(f"{path}/{deed}")
        assert (answer.status_code, CLOSED in answer.text) == (404, True)
        answer = buyer.post_form(f"{path}/{deed}", {**BUYER, "consent": "yes", "csrf": "0" * 64})
        assert answer.status_code == 403, "a form of another site"
    slug, other = stored.project.slug, new_project().slug
    for wrong in (path, link, f"{path}/state"):
        assert stranger.look(wrong.replace(slug, other)).status_code == 404
    for unknown in ("AAA-AAA-AAA", "nonsense", "%F0%9F%8F%A0", "%00", "2" * 500):
        assert CLOSED in stranger.see(f"/p/{slug}/bookings/{unknown}", 404)
    assert booking_cookies(stranger) == {}
    assert buyer.state(path)["status"] == "open"


def test_a_new_link_closes_the_old_ones(buyer: Buyer, new_buyer: NewBuyer, stored: Unit, desk: Desk) -> None:
    path = buyer.signed(stored)
    old = link_on(buyer.see(path))
    issued = desk.did_to_booking(reference_in(path), "reissue-link")
    assert CLOSED in buyer.see(path, 404)
    assert new_buyer().look(old).status_code == 404
    link = urlsplit(issued["url"]).path
    assert link == f"{path}/{issued['token']}"
    buyer.look(link)
    assert "Agreement signed. Next: the deposit" in buyer.see(path)


def test_the_oldest_of_many_links_is_forgotten(buyer: Buyer, new_unit: NewUnit, desk: Desk) -> None:
    paths = []
    for number in range(22):
        unit = new_unit(f"A-{number}")
        if number < 21:
            reference = desk.did(unit, "open")["bookingReference"]
        else:
            desk.did(unit, "close-sale", ANOTHER_BUYER)
            reference = desk.last_entry(unit)["bookingReference"]
        link = urlsplit(desk.did_to_booking(reference, "reissue-link")["url"]).path
        paths.append(buyer.look(link).headers["location"])
    assert len(booking_cookies(buyer)) == 20
    assert [buyer.look(path).status_code for path in paths[:3]] == [404, 404, 200]
    assert "You have bought unit" in buyer.see(paths[-1])


def test_a_held_unit_counts_down_and_asks_for_what_a_browser_knows(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    state = buyer.state(path)
    assert set(state) == {"status", "endsAt", "now"}
    assert state["status"] == "open"
    assert 0 < state["endsAt"] - state["now"] <= 300_000
    page = buyer.see(path)
    told = (
        f"<title>Unit {stored.code} is on hold for you · {stored.code}</title>",
        f'data-ends="{state["endsAt"]}"', "data-now=", "minutes", "<noscript>", DEPOSIT, TOTAL,
        'autocomplete="name"', 'autocomplete="email"', 'autocomplete="tel"', 'type="email"', 'type="tel"',
        '<meta name="robots" content="noindex',
    )  # fmt: skip
    assert missing(page, *told) == []
    for shown in (path, f"{path}/state"):
        headers = buyer.look(shown).headers
        assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "same-origin")
    assert "noindex" in buyer.look(path).headers["x-robots-tag"]
    for deed in DEEDS:
        assert buyer.look(f"{path}/{deed}?lang=ar").headers["location"] == path, "reloaded"
        assert '<html lang="ar"' in buyer.see(path)


def test_everything_that_is_wrong_is_told_at_once_and_nothing_is_lost(buyer: Buyer, stored: Unit) -> None:
    path = buyer.hold(stored)
    answer = buyer.sign(path, buyerName=" ", buyerEmail="nora at home", buyerPhone="ask me", consent="")
    assert answer.status_code == 422
    told = (
        "Enter your full name.", "This must be an e-mail address.",
        "A phone number has 7 to 15 digits",
        "Tick the box", 'value="nora at home"', 'value="ask me"', 'href="#f-buyerEmail"', "Error:",
    )  # fmt: skip
    assert missing(answer.text, *told) == []
    assert answer.text.count('aria-invalid="true"') == 4
    answer = buyer.sign(path, buyerName=EVIL, consent="")
    assert answer.status_code == 422
    assert "<img src=x" not in answer.text
    assert 'value="&lt;img src=x' in answer.text
    assert buyer.state(path)["status"] == "open"


def test_signing_leads_back_to_the_booking_and_is_done_once(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = buyer.hold(stored)
    assert "This will sign the agreement in your name." in buyer.see(path)
    for _ in range(2):
        answer = buyer.sign(path, buyerName=EVIL)
        assert (answer.status_code, answer.headers["location"]) == (303, path)
        assert "Agreement signed. Next: the deposit" in buyer.see(path)
    answer = buyer.sign(path, **ANOTHER_BUYER)
    assert answer.status_code == 409
    assert "You have already signed as &lt;img src=x" in answer.text
    assert desk.booking(reference_in(path))["buyer"]["name"] == EVIL


def test_nobody_signs_for_what_they_have_not_read(new_buyer: NewBuyer, stored: Unit) -> None:
    buyer = new_buyer(**{"accept-language": "ar"})
    path = buyer.hold(stored)
    page = buyer.see(path)
    assert missing(page, '<html lang="ar" dir="rtl">', "توقيع الاتفاقية") == []
    read = page.split('name="read" value="')[1].split('"')[0]
    assert stored.patch({"areaSqm": 99}).status_code == 200
    buyer.see(f"{path}?lang=en")
    answer = buyer.sign(path, read=read)
    assert answer.status_code == 409
    assert missing(answer.text, "read it again, then sign", f'value="{BUYER["buyerName"]}"') == []
    assert buyer.state(path)["status"] == "open"
    buyer.see(f"{path}?lang=ar")
    assert buyer.sign(path).status_code == 303
    assert "تم توقيع الاتفاقية" in buyer.see(path)


def test_a_deposit_is_paid_and_its_confirmation_waited_for(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = buyer.hold(stored)
    assert buyer.post_form(f"{path}/pay").headers["location"] == path, "nothing is to be paid yet"
    buyer.sign(path)
    assert f'action="{path}/pay"' in buyer.see(path)
    for _ in range(2):
        answer = buyer.post_form(f"{path}/pay")
        assert answer.status_code == 303
        assert answer.headers["location"].startswith(PAGE + "?")
        asked = parse_qs(urlsplit(answer.headers["location"]).query)
        assert asked["reference"] == [reference_in(path)]
        assert asked["returnUrl"][0].endswith(f"{path}?paid=1")
    page = buyer.see(f"{path}?paid=1")
    told = ("Waiting for your payment to be confirmed", 'data-poll="2"', f'href="{path}?paid=1&amp;lang=ar"')
    assert missing(page, *told) == []
    assert Till(desk.http).told("pay_1", desk.booking(reference_in(path))) == "reserved"
    assert "is reserved for you" in buyer.see(f"{path}?paid=1")
    again = buyer.post_form(f"{path}/pay")
    assert (again.status_code, again.headers["location"]) == (303, path)


def test_without_a_payment_page_or_a_deposit_nothing_is_paid_here(
    limited_buyer: Buyer, buyer: Buyer, stored: Unit, new_unit: NewUnit
) -> None:
    path = limited_buyer.signed(stored)
    page = limited_buyer.see(path)
    assert "The seller will tell you how to pay" in page
    assert f'action="{path}/pay"' not in page
    assert limited_buyer.post_form(f"{path}/pay").headers["location"] == path
    path = buyer.signed(new_unit("A-1", depositPercent=None))
    assert "There is nothing to pay." in buyer.see(path)
    assert buyer.post_form(f"{path}/pay").headers["location"] == path


def test_a_reservation_shows_its_papers_and_stays(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = reserved(buyer, stored, desk)
    page = buyer.see(path)
    papers = [f'href="{path}/{paper}"' for paper in ("agreement", "agreement.pdf", "receipt", "receipt.pdf")]
    reference = f"<bdi>{reference_in(path)}</bdi>"
    assert missing(page, "is reserved for you", reference, *papers, "Next steps") == []
    assert "/cancel" not in page
    answer = buyer.post_form(f"{path}/cancel")
    assert (answer.status_code, "only the seller can cancel" in answer.text) == (409, True)
    desk.did_to_booking(reference_in(path), "cancel")
    assert missing(buyer.see(path), "Your deposit will be refunded", "The reservation ended") == []


def test_a_sale_is_told_also_after_the_buyers_data_are_erased(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = reserved(buyer, stored, desk)
    desk.did_to_booking(reference_in(path), "close-sale")
    assert missing(buyer.see(path), "You have bought unit", 'data-poll="0"') == []
    desk.did_to_booking(reference_in(path), "erase-buyer")
    assert "You have bought unit" in buyer.see(path)


def test_letting_go_frees_the_unit_however_often(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    path = buyer.hold(stored)
    for _ in range(2):
        answer = buyer.post_form(f"{path}/cancel", {"then": "https://evil.example/p/x/units/y"})
        assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert stored.read()["status"] == "available"
    offer = f'action="{unit_page(stored)}/hold"'
    assert missing(buyer.see(path), "This booking was cancelled", offer) == []
    desk.did(stored, "take-off-sale")
    page = buyer.see(path)
    assert "This booking was cancelled" in page
    assert "/hold" not in page


def test_what_ran_out_is_offered_again_while_it_is_free(
    buyer: Buyer, new_buyer: NewBuyer, new_unit: NewUnit, sql: Sql
) -> None:
    unit, alike = new_unit("A-1"), new_unit("A-2")
    path = buyer.lapsed(unit, sql)
    assert buyer.state(path) | {"now": 0} == {"status": "lapsed", "endsAt": None, "now": 0}
    answer = buyer.sign(path)
    assert answer.status_code == 409
    assert missing(answer.text, "The agreement was not signed.", "has expired") == []
    assert buyer.post_form(f"{path}/cancel").headers["location"] == path
    offer = f'action="{unit_page(unit)}/hold"'
    assert missing(buyer.see(path), "Your hold on unit", "The agreement was not signed", offer) == []
    newer = buyer.hold(unit)
    assert newer != path
    assert f'href="{newer}"' in buyer.see(path)
    buyer.post_form(f"{newer}/cancel")
    new_buyer().hold(unit)
    page = buyer.see(path)
    taken = "Another buyer has this unit now."
    assert missing(page, taken, f'href="{unit_page(alike)}"') == []
    assert offer not in page


def test_what_was_typed_comes_along_when_a_lapsed_unit_is_held_again(
    buyer: Buyer, stored: Unit, sql: Sql
) -> None:
    """Without a script, and without the consent: that was for the agreement of the hold before."""
    typed = [f'value="{value}"' for value in BUYER.values()]
    answer = buyer.sign(buyer.lapsed(stored, sql))
    hidden = dict(
        re.findall(r'<input type="hidden" name="(buyer\w+)" value="([^"]+)" data-typed>', answer.text)
    )
    assert hidden == BUYER
    assert answer.text.count('value="' + BUYER["buyerName"]) == 1
    answer = buyer.post_form(f"{unit_page(stored)}/hold", hidden)
    assert (answer.status_code, answer.headers["location"].rpartition("/")[2]) == (307, "sign")
    path = answer.headers["location"].removesuffix("/sign")
    page = buyer.post_form(f"{path}/sign", hidden).text
    assert missing(page, *typed, "The agreement is not signed yet") == []
    assert " checked" not in page
    assert missing(buyer.see(path), *typed) == typed, "nothing of it is stored"
    assert buyer.state(path)["status"] == "open"


def test_a_payment_that_comes_too_late_is_explained_until_it_is_paid_back(
    buyer: Buyer, new_buyer: NewBuyer, stored: Unit, desk: Desk, sql: Sql
) -> None:
    path = buyer.signed(stored)
    end_now(sql, reference_in(path))
    assert missing(buyer.see(path), "Have you already paid?", 'data-poll="15"') == []
    new_buyer().hold(stored)
    desk.did_to_booking(reference_in(path), "confirm-deposit")
    told = ("Your payment arrived after this booking had ended", DEPOSIT)
    assert missing(buyer.see(path), *told) == []
    desk.did_to_booking(reference_in(path), "mark-refunded")
    assert "Your deposit has been refunded" in buyer.see(path)


def test_who_lets_go_after_signing_may_have_paid(new_buyer: NewBuyer, stored: Unit, desk: Desk) -> None:
    buyer = new_buyer(**{"accept-language": "en"})
    path = buyer.signed(stored)
    buyer.post_form(f"{path}/cancel")
    assert missing(buyer.see(path), "Have you already paid?", 'data-poll="15"') == []
    desk.did(stored, "take-off-sale")
    desk.did_to_booking(reference_in(path), "confirm-deposit")
    page = buyer.see(path)
    assert "Your payment arrived after this booking had ended" in page
    assert "taken" not in page.split("<main")[1]
    main = buyer.see(f"{path}?lang=ar").split("<main")[1].split("</main>")[0]
    text = re.sub(r"<[^>]*>", " ", main).replace(f"The {stored.project.slug}", "")
    assert not re.search(r"\b(the|you|your|and|is|it)\b", text, re.IGNORECASE)
