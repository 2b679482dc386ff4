"""Agreement and receipt as buyers and staff get them, page and PDF."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import Desk
from tests.support.bodies import full
from tests.support.buying import BUYER, Hold
from tests.support.client import Project, Unit
from tests.support.sql import Sql
from tests.support.staff_client import Person, missing
from tests.web.documents.reading import text_of
from tests.web.pages.backoffice.unit_pages import BOOKINGS

PAPERS = ("agreement", "receipt", "agreement.pdf", "receipt.pdf")
PAGES = PAPERS[:2]
STYLES = re.compile(r'<link rel="stylesheet" href="([^"]+)"')
WITHOUT_AGREEMENT = """
    update booking set agreement = null from unit
    where unit.id = booking.unit_id and unit.code = $1 and unit.project_id = $2
"""


class Case(NamedTuple):
    """A buyer who has opened the link of their booking."""

    buyer: Person
    held: Hold
    unit: Unit

    @property
    def home(self) -> str:
        return f"/p/{self.unit.project.slug}/bookings/{self.held.reference}"

    def get(self, paper: str, status: int = 200) -> httpx.Response:
        answer = self.buyer.look(f"{self.home}/{paper}")
        assert answer.status_code == status, answer.text[:2000]
        return answer

    def page(self, paper: str, status: int = 200) -> str:
        """What is to be read on it, without what only steers the direction."""
        return re.sub("[\u2066-\u2069]", "", self.get(paper, status).text).replace("\xa0", " ")

    def pdf(self, paper: str) -> str:
        return text_of(self.get(f"{paper}.pdf").content)

    def both(self, paper: str) -> tuple[str, str]:
        return self.page(paper), self.pdf(paper)


Enter = Callable[[str], Case]


@pytest.fixture
def enter(server: InProcessApp, desk: Desk, stored: Unit) -> Iterator[Enter]:
    """The unit is brought to a condition, and its buyer opens the link."""
    with Person(server.address) as buyer:

        def entered(condition: str) -> Case:
            held: Hold = getattr(desk, condition)(stored)
            link = f"/p/{stored.project.slug}/bookings/{held.reference}/{held.token}"
            assert buyer.look(link).status_code == 303
            return Case(buyer, held, stored)

        yield entered


def test_a_paper_is_opened_by_the_key_to_its_booking_alone(
    server: InProcessApp, enter: Enter, new_project: Callable[[], Project]
) -> None:
    case = enter("reserved")
    elsewhere = case.home.replace(case.unit.project.slug, new_project().slug)
    with Person(server.address) as stranger:
        for paper in PAPERS:
            answer = stranger.look(f"{case.home}/{paper}")
            assert (answer.status_code, "Nora" in answer.text) == (404, False)
            assert case.buyer.look(f"{elsewhere}/{paper}").status_code == 404
            headers = case.get(paper).headers
            assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
            assert "noindex" in headers["x-robots-tag"]
    refused = case.buyer.post(f"{case.home}/agreement", headers=case.buyer.sent())
    assert refused.status_code == 405, "it is only for reading"


def test_a_reference_of_nothing_has_no_papers(sales: Person, project: Project) -> None:
    for reference in ("Q39-4F6-4K7", "nonsense", "%FF", "%00"):
        for paper in PAPERS:
            assert sales.look(f"{BOOKINGS}/{reference}/{paper}").status_code in (404, 422)
            assert sales.look(f"/p/{project.slug}/bookings/{reference}/{paper}").status_code == 404


def test_a_page_and_its_file_say_the_same_to_everybody(sales: Person, arab: Person, enter: Enter) -> None:
    case = enter("reserved")
    reference = case.held.reference
    told = (
        reference, "Nora Al-Harbi", "SAR 1,092,500.00", "SAR 27,312.50", "SAR 1,065,187.50", "A-101",
        "apartment", "reserved until",
    )  # fmt: skip
    home = f"{BOOKINGS}/{reference}"
    for paper in PAGES:
        assert missing(case.page(paper), *told) == missing(case.pdf(paper), *told) == []
        file = case.get(f"{paper}.pdf")
        assert file.headers["content-type"] == "application/pdf"
        name = f"holdfast-{paper}-{reference}.pdf"
        assert file.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert sales.look(f"{home}/{paper}.pdf").content == file.content
    assert missing(sales.see(home), *(f'href="{home}/{paper}"' for paper in PAPERS)) == []
    assert "Nora Al-Harbi" in sales.see(f"{home}/receipt")
    page = arab.see(f"{home}/agreement?lang=ar")
    assert "1,092,500.00" in page
    assert not re.search("[٠-٩]", page), "figures are the same for everybody"


def test_a_page_is_made_to_be_printed_with_a_code_that_opens_nothing_by_itself(enter: Enter) -> None:
    case = enter("reserved")
    for paper in PAGES:
        page = case.page(paper)
        styles = "".join(case.buyer.see(address) for address in STYLES.findall(page))
        assert "size: A4" in styles
        assert re.search(r":is\(\.bar, \.foot\) \{\s+display: none", styles.split("@media print", 1)[1])
        assert missing(page, '<nav class="bar"', 'src="data:image/svg+xml') == []
        assert case.held.token not in page


def test_each_paper_can_be_had_in_each_language(enter: Enter) -> None:
    case = enter("reserved")
    for code, direction, word in (("en", "ltr", "Deposit"), ("ar", "rtl", "الحجز")):
        for paper in PAGES:
            page = case.page(f"{paper}?lang={code}")
            html = f'<html lang="{code}" dir="{direction}">'
            assert missing(page, html, word, f"{paper}.pdf?lang={code}") == []
            file = case.get(f"{paper}.pdf?lang={code}")
            assert file.headers["content-language"] == code
            assert word in text_of(file.content)
    assert '<html lang="en"' in case.page("agreement?lang=tlh"), "that of the signature"


def test_what_was_signed_in_arabic_is_shown_in_arabic(enter: Enter) -> None:
    case = enter("held")
    page = case.buyer.see(f"{case.home}?lang=ar")
    read = page.split('name="read" value="')[1].split('"')[0]
    fields = {**BUYER, "buyerName": "نورة الحربي", "consent": "yes", "read": read}
    signed = case.buyer.submit(f"{case.home}/sign", fields, on=case.home)
    assert signed.status_code == 303, signed.text[:2000]
    case.buyer.look(f"{case.home}?lang=en")
    assert missing(case.page("agreement"), '<html lang="ar" dir="rtl">', "نورة الحربي") == []
    assert case.get("agreement.pdf").headers["content-language"] == "ar"


def test_the_text_that_is_signed_is_the_text_of_the_agreement_and_names_are_names(enter: Enter) -> None:
    case = enter("held")
    terms = case.buyer.see(case.home).split('class="paper-terms"')[1]
    found = re.findall(r"<h4>(.+?)</h4>|<p>(.+?)</p>", terms)
    clauses = [text for pair in found for text in pair if text][:12]
    assert len(clauses) == 12
    name = "<b>#panic()</b> {project}"
    case.held.sign(buyerName=name)
    page = case.get("agreement").text
    assert missing(page, *clauses, "&lt;b&gt;#panic()&lt;/b&gt; {project}") == []
    assert name in case.pdf("agreement")


def test_what_was_signed_stays_as_it_was(desk: Desk, stored: Unit, enter: Enter, sql: Sql) -> None:
    case = enter("sold")
    before = case.pdf("agreement")
    later = full(type="penthouse", areaSqm=999, priceSar=1, bedrooms=9, deliveryYear=2099, vatRate=1)
    assert stored.put(later).status_code == 200
    desk.settle(stored.project, name="Another Name")
    assert case.pdf("agreement") == before
    changed = ["penthouse", "999 m²", ">2099<", "Another Name"]
    for paper in PAGES:
        page = case.page(paper)
        assert missing(page, stored.project.name, "SAR 1,092,500.00") == []
        assert missing(page, *changed) == changed
    # As a release from before agreements were kept has left it.
    sql.execute(WITHOUT_AGREEMENT, stored.code, stored.project.id)
    assert all("The unit is described as it is now" in text for text in case.both("agreement"))


def test_before_the_signature_there_is_nothing_and_before_the_deposit_no_receipt(enter: Enter) -> None:
    case = enter("held")
    for paper in PAPERS:
        assert "The booking is not signed yet." in case.page(paper, 409)
    assert "لم يُوقَّع الحجز بعد." in case.page("agreement?lang=ar", 409)
    assert case.held.cancel().status_code == 204
    for paper in PAPERS:
        assert "The booking ended before" in case.page(f"{paper}?lang=en", 404)
    case = enter("held")
    case.held.sign()
    assert "The deposit is not confirmed yet" in case.page("agreement")
    for paper in ("receipt", "receipt.pdf"):
        assert "The deposit is not confirmed yet." in case.page(paper, 409)
    assert case.held.cancel().status_code == 204
    assert all("The booking was cancelled on" in text for text in case.both("agreement"))
    assert "The booking ended before a deposit was confirmed." in case.page("receipt", 404)


def test_a_deposit_that_is_due_back_or_paid_back_says_so(desk: Desk, enter: Enter) -> None:
    case = enter("refund_due")
    assert all("SAR 27,312.50 is to be refunded to the buyer" in text for text in case.both("receipt"))
    desk.did_to_booking(case.held.reference, "mark-refunded")
    assert all("SAR 27,312.50 was refunded on" in text for text in case.both("receipt"))


def test_of_an_erased_buyer_nothing_is_left_on_paper(desk: Desk, enter: Enter) -> None:
    case = enter("sold")
    assert "Nora" in case.pdf("agreement")
    desk.did_to_booking(case.held.reference, "erase-buyer")
    for text in (*case.both("agreement"), *case.both("receipt")):
        assert "Personal data erased on" in text
        assert missing(text, "Nora", "nora@example.com") == ["Nora", "nora@example.com"]


def test_a_sale_to_somebody_who_walked_in_has_no_papers(sales: Person, stored: Unit, desk: Desk) -> None:
    desk.did(stored, "close-sale", BUYER)
    booking = f"{BOOKINGS}/{desk.last_entry(stored)['bookingReference']}"
    for paper in PAPERS:
        assert "sold at the sales office" in sales.see(f"{booking}/{paper}", 404)
    assert "agreement.pdf" not in sales.see(booking)
