"""A buyer's whole way, on a phone: from the building to the receipt, and every turn that it can take."""

import re
import time
from io import BytesIO

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from tests.browser.buyers import NAMES, NO_MEDIA, OpenPhone, Phone, let_lapse, new_tower
from tests.browser.office import Office
from tests.browser.windows import PATIENCE_MS
from tests.support.bodies import full

MOST_TAPS = 9
OVER_A_MINUTE = 62.0
"""Seconds of a hold whose page warns a moment after it was loaded."""


def reads_from(phone: Phone) -> str:
    return str(phone.page.evaluate("() => getComputedStyle(document.body).direction"))


def text_of_pdf(phone: Phone, path: str) -> str:
    answer = phone.own.context.request.get(path)
    assert answer.status == 200
    return "\n".join(page.extract_text() for page in PdfReader(BytesIO(answer.body())).pages)


def look_again_until(phone: Phone, status: str) -> None:
    """As somebody does whose page cannot change by itself."""
    give_up_at = time.monotonic() + PATIENCE_MS / 1000
    while (seen := phone.page.locator("[data-booking]").get_attribute("data-status")) != status:
        assert time.monotonic() < give_up_at, f"it is still {seen}"
        phone.page.reload()


def be_seen(phone: Phone, *, seen: bool) -> None:
    """As if another tab were in front, or no longer."""
    phone.page.evaluate(
        """(isHidden) => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        not seen,
    )


@pytest.mark.parametrize("language", ["en", pytest.param("ar", marks=pytest.mark.slow)])
def test_from_the_building_to_the_receipt(language: str, open_phone: OpenPhone, demo: Office) -> None:
    tower = new_tower(demo, "A-101", "A-102", "A-201")
    phone = open_phone(language)
    taps = phone.count_taps()
    phone.page.goto(f"/p/{tower.slug}")
    assert reads_from(phone) == {"en": "ltr", "ar": "rtl"}[language]
    phone.page.locator(".offer").filter(has_text="A-201").get_by_role("link").first.click()
    phone.press_hold()
    expect(phone.page.get_by_role("timer")).to_have_text(re.compile(r"^\d:\d\d$"))
    reference = phone.page.url.rpartition("/")[2]
    phone.sign()
    phone.pay()
    expect(phone.page.locator(".reference")).to_have_text(reference)
    assert demo.unit(tower, "A-201").read()["status"] == "reserved"
    phone.page.get_by_role("link", name=phone.say("Receipt"), exact=True).click()
    phone.page.wait_for_url("**/receipt")
    # The unit, hold, accept, sign, pay, pay now, receipt.
    assert 7 <= len(taps) <= MOST_TAPS, taps
    booking = f"/p/{tower.slug}/bookings/{reference}"
    for paper in ("agreement", "receipt"):
        phone.page.goto(f"{booking}/{paper}")
        expect(phone.page.locator("body")).to_contain_text(reference)
        expect(phone.page.locator("body")).to_contain_text(NAMES[language])
        assert reads_from(phone) == {"en": "ltr", "ar": "rtl"}[language]
        assert reference in text_of_pdf(phone, f"{booking}/{paper}.pdf")


@pytest.mark.slow
def test_without_scripts_a_buyer_gets_to_the_receipt_too(open_phone: OpenPhone, demo: Office) -> None:
    tower = new_tower(demo, "A-101")
    phone = open_phone(scripts=False)
    reference = phone.open(demo.unit(tower, "A-101"))
    phone.sign()
    phone.go_to_pay()
    phone.press("Pay now")
    phone.page.wait_for_url("**/bookings/*")
    look_again_until(phone, "reserved")
    phone.page.get_by_role("link", name="Receipt", exact=True).click()
    expect(phone.page.locator("body")).to_contain_text(reference)


@pytest.mark.slow
def test_a_hold_lapses_and_the_unit_is_offered_again(open_phone: OpenPhone, demo: Office) -> None:
    unit = demo.unit(new_tower(demo, "A-101", holdSeconds=OVER_A_MINUTE), "A-101")
    phone = open_phone()
    reference = phone.open(unit)
    expect(phone.page.locator(".warning")).to_have_text(
        phone.say("Less than a minute left. After that, other buyers can hold the unit.")
    )
    name = phone.page.get_by_label(phone.say("Full name"))
    name.fill(NAMES["en"])
    let_lapse(demo, reference)
    phone.expect_status("lapsed")
    phone.press("Hold this unit again")
    phone.expect_status("open")
    assert reference not in phone.page.url
    expect(name).to_have_value(NAMES["en"])
    phone.sign()
    phone.page.wait_for_load_state()
    assert phone.page.evaluate("sessionStorage.length") == 0


def test_whoever_comes_second_is_told_and_shown_three_others(open_phone: OpenPhone, demo: Office) -> None:
    tower = new_tower(demo, "A-101", "A-102", "A-103", "A-104", "A-105")
    unit = demo.unit(tower, "A-101")
    # Without a script the page does not learn that the unit is gone before its buyer presses.
    first, second = open_phone(), open_phone(scripts=False)
    second.look_at(unit)
    first.open(unit)
    second.press_hold()
    expect(second.heading).to_have_text(second.say("This unit has just been taken"))
    expect(second.page.locator(".offer")).to_have_count(3)
    second.page.locator(".offer a").first.click()
    second.press_hold()
    second.expect_status("open")
    first.expect_status("open")


def test_a_unit_taken_elsewhere_greys_out_by_itself(open_phone: OpenPhone, demo: Office) -> None:
    tower = new_tower(demo, "A-101", "A-102")
    watching, beside = open_phone(), open_phone()
    watching.page.goto(f"/p/{tower.slug}")
    beside.look_at(demo.unit(tower, "A-101"))
    open_phone().open(demo.unit(tower, "A-101"))
    taken = watching.page.locator('a.u[href$="/units/A-101"]')
    expect(taken).to_have_class(re.compile(r"\bis-held\b"))
    expect(watching.page.locator('.offer[data-code="A-101"]')).to_have_class(re.compile(r"\bis-held\b"))
    expect(beside.page.locator("#state")).to_have_attribute("data-look", "held")
    expect(beside.page.locator("#open-unit")).to_have_count(0)


@pytest.mark.slow
def test_the_button_of_a_unit_that_is_still_free_is_not_replaced(open_phone: OpenPhone, demo: Office) -> None:
    """Whoever was pressing it would have pressed nothing."""
    unit, phone = demo.unit(new_tower(demo, "A-101"), "A-101"), open_phone()
    phone.look_at(unit)
    button, similar = phone.page.locator("#open-unit"), phone.page.locator("#similar-place")
    button.evaluate("one => { one.mark = true; }")
    similar.evaluate("one => one.append('as it was')")
    unit.patch({"description": "With a view"})
    expect(similar).not_to_contain_text("as it was")
    assert button.evaluate("one => one.mark") is True


@pytest.mark.slow
def test_a_page_that_nobody_sees_gives_its_stream_back_and_catches_up_later(
    open_phone: OpenPhone, demo: Office
) -> None:
    tower = new_tower(demo, "A-101")
    watching = open_phone()
    with watching.page.expect_response("**/live?*"):
        watching.page.goto(f"/p/{tower.slug}")
    with watching.page.expect_event("requestfailed", lambda request: "/live?" in request.url):
        be_seen(watching, seen=False)
    open_phone().open(demo.unit(tower, "A-101"))
    be_seen(watching, seen=True)
    expect(watching.page.locator("a.u")).to_have_class(re.compile(r"\bis-held\b"))


@pytest.mark.slow
def test_a_new_unit_is_drawn_and_neither_pages_nor_focus_are_lost(
    open_phone: OpenPhone, demo: Office
) -> None:
    tower = new_tower(demo, *(f"A-1{number:02}" for number in range(1, 13)))
    phone = open_phone()
    phone.page.goto(f"/p/{tower.slug}")
    phone.page.locator("a[rel=next]").click()
    expect(phone.page.locator(".offer")).to_have_count(12)
    phone.page.locator('a.u[href$="/units/A-105"]').focus()
    demo.unit(tower, "A-201").create(full() | NO_MEDIA)
    expect(phone.page.locator('a.u[href$="/units/A-201"]')).to_have_count(1)
    expect(phone.page.locator(".offer")).to_have_count(12)
    expect(phone.page.locator('a.u[href$="/units/A-105"]')).to_be_focused()


@pytest.mark.slow
def test_a_stream_that_is_refused_once_is_asked_for_again(open_phone: OpenPhone, demo: Office) -> None:
    tower = new_tower(demo, "A-101")
    watching = open_phone()
    watching.own.watch.expect("503")
    watching.page.route("**/live?*", lambda route: route.fulfill(status=503), times=1)
    with watching.page.expect_response(lambda one: "/live?" in one.url and one.status == 200):
        watching.page.goto(f"/p/{tower.slug}")
    open_phone().open(demo.unit(tower, "A-101"))
    expect(watching.page.locator("a.u")).to_have_class(re.compile(r"\bis-held\b"))


@pytest.mark.slow
def test_a_late_payment_takes_the_unit_back_while_it_is_free(open_phone: OpenPhone, demo: Office) -> None:
    unit = demo.unit(new_tower(demo, "A-101"), "A-101")
    phone = open_phone()
    reference = phone.open(unit)
    phone.sign()
    phone.go_to_pay()
    let_lapse(demo, reference)
    phone.press("Pay now")
    phone.page.wait_for_url("**/bookings/*")
    phone.expect_status("reserved")
    assert unit.read()["status"] == "reserved"


@pytest.mark.slow
def test_a_late_payment_for_a_unit_that_is_gone_is_due_back(open_phone: OpenPhone, demo: Office) -> None:
    unit = demo.unit(new_tower(demo, "A-101", "A-102"), "A-101")
    late, faster = open_phone(), open_phone()
    reference = late.open(unit)
    late.sign()
    late.go_to_pay()
    faster.look_at(unit)
    let_lapse(demo, reference)
    # The page of the unit learns by itself that it is free again.
    faster.press_hold()
    faster.expect_status("open")
    late.press("Pay now")
    late.page.wait_for_url("**/bookings/*")
    late.expect_status("refund-due")
    expect(late.page.locator("main")).to_contain_text(reference)
    faster.expect_status("open")


@pytest.mark.slow
def test_a_double_click_a_second_tab_and_the_way_back_lead_to_one_booking(
    open_phone: OpenPhone, demo: Office
) -> None:
    tower = new_tower(demo, "A-101")
    unit, phone = demo.unit(tower, "A-101"), open_phone()
    phone.look_at(unit)
    second_tab = phone.own.another()
    second_tab.goto(phone.page.url)
    phone.page.locator("#open-unit").dblclick()
    phone.expect_status("open")
    booking = phone.page.url
    # The other tab has noticed by itself whose the unit is.
    second_tab.locator("#continue").click()
    second_tab.wait_for_url(booking)
    phone.page.go_back()
    expect(phone.page.locator("#continue")).to_be_visible()
    phone.page.goto(booking)
    phone.page.reload()
    phone.expect_status("open")
    made = demo.http.get("/v1/backoffice/bookings", params={"project": tower.slug}).json()["bookings"]
    assert [one["reference"] for one in made] == [booking.rpartition("/")[2]]


@pytest.mark.slow
def test_what_the_form_lacks_is_told_beside_its_field_and_nothing_is_signed(
    open_phone: OpenPhone, demo: Office
) -> None:
    unit, phone = demo.unit(new_tower(demo, "A-101"), "A-101"), open_phone()
    phone.open(unit)
    phone.page.get_by_label("Full name").fill("Nora Al-Harbi")
    phone.page.get_by_label("E-mail address").fill("nora at home")
    phone.press("Sign the agreement")
    expect(phone.page.get_by_label("E-mail address")).to_have_attribute("aria-invalid", "true")
    expect(phone.page.get_by_label("E-mail address")).to_have_value("nora at home")
    expect(phone.page.get_by_label("Full name")).to_have_value("Nora Al-Harbi")
    phone.expect_status("open")
