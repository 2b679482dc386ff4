"""Agreement and receipt as buyers and staff get them, page and PDF."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import BUYER, Desk, Held
from tests.support.bodies import full
from tests.support.client import Project, Unit, integration_client
from tests.support.sql import Sql
from tests.support.staff_client import People, Person
from tests.web.documents.reading import text_of
from tests.web.pages.backoffice.sales import BOOKINGS, Market

PAPERS = ("agreement", "receipt", "agreement.pdf", "receipt.pdf")
PAGES, FILES = PAPERS[:2], PAPERS[2:]
STYLES = re.compile(r'<link rel="stylesheet" href="([^"]+)"')


class Case(NamedTuple):
    """A buyer who has opened the link of their booking."""

    buyer: Person
    held: Held
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
        return re.sub("[\u2066-\u2069]", "", self.get(paper, status).text)

    def pdf(self, paper: str) -> str:
        return text_of(self.get(paper).content)


Enter = Callable[[Held, Unit], Case]


@pytest.fixture(scope="module")
def market(server: InProcessApp, staff_http: httpx.Client) -> Iterator[Market]:
    with integration_client(server.address, None) as public:
        yield Market(public, Desk(staff_http))


@pytest.fixture
def enter(server: InProcessApp) -> Iterator[Enter]:
    opened: list[Person] = []

    def entered(held: Held, unit: Unit) -> Case:
        buyer = Person(server.address)
        opened.append(buyer)
        link = f"/p/{unit.project.slug}/bookings/{held.reference}/{held.token}"
        assert buyer.look(link).status_code == 303
        return Case(buyer, held, unit)

    yield entered
    for buyer in opened:
        buyer.close()


@pytest.fixture
def reserved(market: Market, stored: Unit, enter: Enter) -> Case:
    return enter(market.reserved(stored), stored)


# Access


@pytest.mark.parametrize("paper", PAPERS)
def test_whoever_has_no_key_to_the_booking_gets_no_paper(
    server: InProcessApp, reserved: Case, paper: str
) -> None:
    with Person(server.address) as stranger:
        answer = stranger.look(f"{reserved.home}/{paper}")
    assert answer.status_code == 404
    assert "Nora" not in answer.text


def test_a_booking_has_no_papers_in_another_project(
    reserved: Case, new_project: Callable[[], Project]
) -> None:
    elsewhere = reserved.home.replace(reserved.unit.project.slug, new_project().slug)
    for paper in PAPERS:
        assert reserved.buyer.look(f"{elsewhere}/{paper}").status_code == 404


@pytest.mark.parametrize("paper", PAPERS)
def test_papers_are_neither_kept_nor_found_by_search(reserved: Case, paper: str) -> None:
    headers = reserved.get(paper).headers
    assert headers["cache-control"] == "no-store"
    assert "noindex" in headers["x-robots-tag"]
    assert headers["x-content-type-options"] == "nosniff"


def test_a_paper_is_only_for_reading(reserved: Case) -> None:
    refused = reserved.buyer.post(f"{reserved.home}/agreement", headers=reserved.buyer.sent())
    assert refused.status_code == 405


# What they say


@pytest.mark.parametrize("paper", PAGES)
def test_a_page_and_its_file_say_the_same(reserved: Case, paper: str) -> None:
    page, pdf = reserved.page(paper).replace("\xa0", " "), reserved.pdf(f"{paper}.pdf")
    for part in (
        reserved.held.reference, "Nora Al-Harbi", "SAR 1,092,500.00", "SAR 27,312.50", "SAR 1,065,187.50",
        "A-101", "apartment", "reserved until",
    ):  # fmt: skip
        assert part in page
        assert part in pdf


@pytest.mark.parametrize("paper", FILES)
def test_a_file_has_a_name_to_find_it_by(reserved: Case, paper: str) -> None:
    headers = reserved.get(paper).headers
    assert headers["content-type"] == "application/pdf"
    name = f"holdfast-{paper.removesuffix('.pdf')}-{reserved.held.reference}.pdf"
    assert headers["content-disposition"] == f'attachment; filename="{name}"'


def test_the_same_paper_twice_is_the_same_file(reserved: Case) -> None:
    assert reserved.get("agreement.pdf").content == reserved.get("agreement.pdf").content


@pytest.mark.parametrize("paper", PAGES)
def test_a_page_is_made_to_be_printed(reserved: Case, paper: str) -> None:
    page = reserved.page(paper)
    styles = "".join(reserved.buyer.see(address) for address in STYLES.findall(page))
    printed = styles.split("@media print", 1)[1]
    assert "size: A4" in styles
    assert re.search(r"\.bar \{\s+display: none", printed)
    assert '<nav class="bar"' in page


def test_the_code_to_scan_opens_nothing_by_itself(reserved: Case) -> None:
    page = reserved.page("agreement")
    assert 'src="data:image/svg+xml' in page
    assert reserved.held.token not in page


@pytest.mark.parametrize(("code", "direction", "word"), [("en", "ltr", "Deposit"), ("ar", "rtl", "العربون")])
def test_each_paper_can_be_had_in_each_language(reserved: Case, code: str, direction: str, word: str) -> None:
    for paper in PAGES:
        page = reserved.page(f"{paper}?lang={code}")
        assert f'<html lang="{code}" dir="{direction}">' in page
        assert word in page
        assert f"{paper}.pdf?lang={code}" in page
        file = reserved.get(f"{paper}.pdf?lang={code}")
        assert file.headers["content-language"] == code
        assert word in text_of(file.content)


def test_a_language_that_we_do_not_speak_is_that_of_the_signature(reserved: Case) -> None:
    assert '<html lang="en"' in reserved.page("agreement?lang=tlh")


def test_what_was_signed_in_arabic_is_shown_in_arabic(market: Market, stored: Unit, enter: Enter) -> None:
    case = enter(market.held(stored), stored)
    page = case.buyer.see(f"{case.home}?lang=ar")
    known = re.search(r'name="read" value="([^"]+)"', page)
    assert known is not None
    fields = {**BUYER, "buyerName": "نورة الحربي", "consent": "yes", "read": known[1]}
    signed = case.buyer.submit(f"{case.home}/sign", fields, on=case.home)
    assert signed.status_code == 303, signed.text[:2000]
    case.buyer.look(f"{case.home}?lang=en")
    agreement = case.page("agreement")
    assert '<html lang="ar" dir="rtl">' in agreement
    assert "نورة الحربي" in agreement
    assert case.get("agreement.pdf").headers["content-language"] == "ar"


def test_the_text_that_is_signed_is_the_text_of_the_agreement(
    market: Market, stored: Unit, enter: Enter
) -> None:
    case = enter(market.held(stored), stored)
    before = re.findall(
        r"<h4>(.+?)</h4>|<p>(.+?)</p>", case.buyer.see(case.home).split('class="paper-terms"')[1]
    )
    assert case.held.sign().status_code == 200
    after = case.get("agreement").text
    clauses = [text for pair in before for text in pair if text][:12]
    assert len(clauses) == 12
    assert all(text in after for text in clauses)


def test_what_was_signed_stays_whatever_becomes_of_the_unit(
    market: Market, stored: Unit, enter: Enter
) -> None:
    case = enter(market.sold(stored), stored)
    before = case.pdf("agreement.pdf")
    later = full(type="penthouse", areaSqm=999, priceSar=1, bedrooms=9, deliveryYear=2099, vatRate=1)
    assert stored.put(later).status_code == 200
    market.desk.settle(stored.project, name="Another Name")
    assert case.pdf("agreement.pdf") == before
    for paper in PAGES:
        page = case.page(paper)
        assert stored.project.name in page
        assert "SAR\xa01,092,500.00" in page
        for changed in ("penthouse", "999\xa0m²", ">2099<", "Another Name"):
            assert changed not in page


def test_a_booking_of_a_time_before_agreements_were_kept_has_one_all_the_same(
    market: Market, stored: Unit, enter: Enter, sql: Sql
) -> None:
    case = enter(market.sold(stored), stored)
    # As a release from before has left it.
    sql.execute(
        "update booking set agreement = null from unit "
        "where unit.id = booking.unit_id and unit.code = $1 and unit.project_id = $2",
        stored.code,
        stored.project.id,
    )
    assert "the unit is described as it is now" in case.page("agreement")
    assert "the unit is described as it is now" in case.pdf("agreement.pdf")


def test_names_are_names_on_the_page_too(market: Market, stored: Unit, enter: Enter) -> None:
    held = market.held(stored)
    assert held.sign({**BUYER, "buyerName": "<b>#panic()</b> {project}"}).status_code == 200
    case = enter(held, stored)
    assert "&lt;b&gt;#panic()&lt;/b&gt; {project}" in case.page("agreement")
    assert "<b>#panic()</b> {project}" in case.pdf("agreement.pdf")


# Every state


def test_before_the_signature_there_is_nothing_yet(market: Market, stored: Unit, enter: Enter) -> None:
    case = enter(market.held(stored), stored)
    for paper in PAPERS:
        assert "The booking is not signed yet." in case.page(paper, 409)
    assert "لم يُوقَّع الحجز بعد." in case.page("agreement?lang=ar", 409)


def test_before_the_deposit_there_is_an_agreement_and_no_receipt(
    market: Market, stored: Unit, enter: Enter
) -> None:
    case = enter(market.signed(stored), stored)
    assert "the deposit is not confirmed yet" in case.page("agreement")
    for paper in ("receipt", "receipt.pdf"):
        assert "The deposit is not confirmed yet." in case.page(paper, 409)


def test_a_booking_that_ended_unsigned_has_no_papers(market: Market, stored: Unit, enter: Enter) -> None:
    case = enter(market.held(stored), stored)
    assert case.held.cancel().status_code == 204
    for paper in PAPERS:
        assert "The booking ended before" in case.page(paper, 404)


def test_a_cancelled_booking_says_so_on_its_agreement(market: Market, stored: Unit, enter: Enter) -> None:
    case = enter(market.signed(stored), stored)
    assert case.held.cancel().status_code == 204
    assert "The booking was cancelled on" in case.page("agreement")
    assert "The booking was cancelled on" in case.pdf("agreement.pdf")
    assert "The booking ended before a deposit was confirmed." in case.page("receipt", 404)


def test_a_deposit_that_is_due_back_or_paid_back_says_so(market: Market, stored: Unit, enter: Enter) -> None:
    case = enter(market.due(stored), stored)
    assert "SAR\xa027,312.50 is due back to the buyer" in case.page("receipt")
    assert "SAR 27,312.50 is due back to the buyer" in case.pdf("receipt.pdf")
    market.desk.did_to_booking(case.held.reference, "mark-refunded")
    assert "SAR\xa027,312.50 was paid back on" in case.page("receipt")
    assert "SAR 27,312.50 was paid back on" in case.pdf("receipt.pdf")


def test_of_an_erased_buyer_nothing_is_left_on_paper(market: Market, stored: Unit, enter: Enter) -> None:
    case = enter(market.sold(stored), stored)
    assert "Nora" in case.pdf("agreement.pdf")
    market.desk.did_to_booking(case.held.reference, "erase-buyer")
    for paper in PAGES:
        for text in (case.page(paper), case.pdf(f"{paper}.pdf")):
            assert "Personal data erased on" in text
            assert "Nora" not in text
            assert "nora@example.com" not in text


# Staff


def test_staff_open_the_same_papers(people: People, sales: Person, reserved: Case) -> None:
    home = f"{BOOKINGS}/{reserved.held.reference}"
    page = sales.see(home)
    for paper in PAPERS:
        assert f'href="{home}/{paper}"' in page
    assert sales.look(f"{home}/agreement.pdf").content == reserved.get("agreement.pdf").content
    assert "Nora Al-Harbi" in sales.see(f"{home}/receipt")


def test_figures_are_the_same_for_everybody(arab: Person, reserved: Case) -> None:
    """Also for whoever has chosen other digits for the pages of the back office."""
    page = arab.see(f"{BOOKINGS}/{reserved.held.reference}/agreement?lang=ar")
    assert "1,092,500.00" in page
    assert not re.search("[٠-٩]", page)


def test_a_sale_to_somebody_who_walked_in_has_no_papers(sales: Person, stored: Unit, market: Market) -> None:
    market.desk.did(stored, "close-sale", BUYER)
    reference = market.desk.last_entry(stored)["bookingReference"]
    for paper in PAPERS:
        assert "sold at the sales office" in sales.see(f"{BOOKINGS}/{reference}/{paper}", 404)
    assert "agreement.pdf" not in sales.see(f"{BOOKINGS}/{reference}")


@pytest.mark.parametrize("reference", ["Q39-4F6-4K7", "nonsense", "%FF", "%00"])
def test_a_reference_of_nothing_has_no_papers(sales: Person, project: Project, reference: str) -> None:
    with Person(str(sales.base_url)) as buyer:
        for paper in PAPERS:
            assert sales.look(f"{BOOKINGS}/{reference}/{paper}").status_code in (404, 422)
            assert buyer.look(f"/p/{project.slug}/bookings/{reference}/{paper}").status_code == 404
