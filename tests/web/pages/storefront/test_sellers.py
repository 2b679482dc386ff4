"""Whom buyers deal with, on every page and in what they sign; and the list of projects."""

import re
from collections.abc import Iterator

import pytest

from tests.support.app import running_app
from tests.support.backoffice import BACKOFFICE, Desk, project_url
from tests.support.client import Project, Unit, succeeded
from tests.support.staff_client import missing
from tests.web.api.storefront.limits import BEHIND_A_PROXY
from tests.web.pages.storefront.buyers import Buyer, project_page, unit_page

GENERAL = {
    "legalName": "Palm Court Company | شركة النخيل",
    "phone": "٠١١ 555 0100",
    "whatsapp": "+966501234567",
    "email": "sales@palm.example",
    "iban": "SA0380000000608010167519",
}
REACHED = ('href="tel:0115550100"', 'href="https://wa.me/966501234567"', 'href="mailto:sales@palm.example"')


@pytest.fixture(autouse=True)
def general(desk: Desk) -> Iterator[None]:
    """The profile of the installation is everybody's."""
    succeeded(desk.http.patch(f"{BACKOFFICE}/seller", json=GENERAL))
    yield
    succeeded(desk.http.patch(f"{BACKOFFICE}/seller", json=dict.fromkeys(GENERAL)))


def test_every_page_says_how_to_reach_the_seller(buyer: Buyer, desk: Desk, stored: Unit) -> None:
    booking = buyer.hold(stored)
    for path, status in (
        ("/p", 200), ("/p/no-such-project", 404), (project_page(stored.project), 200),
        (unit_page(stored), 200), (booking, 200), (f"{booking}/nothing", 404), ("/p/no/such/page", 404),
        (f"{booking}/receipt", 409), (f"{unit_page(stored)}?{'a=1&' * 201}", 413),
    ):  # fmt: skip
        page = buyer.look(path)
        assert page.status_code == status
        assert missing(page.text, *REACHED) == []
        assert ("Palm Court Company" in page.text) == ("/receipt" not in path)
        assert "شركة" not in page.text
    succeeded(desk.http.patch(f"{project_url(stored.project)}/seller", json={"email": "own@palm.example"}))
    own = buyer.see(unit_page(stored))
    assert missing(own, 'href="mailto:own@palm.example"', *REACHED[:2]) == []
    assert REACHED[2] not in own


def test_a_page_that_asks_the_database_nothing_names_the_seller_too(database_url: str, stored: Unit) -> None:
    settings = {
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_PUBLIC_RATE_LIMIT": "0.001",
        **BEHIND_A_PROXY,
    }
    with running_app(settings, background_work=False) as limited:
        page = Buyer(limited.address).look(project_page(stored.project))
    assert (page.status_code, missing(page.text, *REACHED, "Palm Court Company")) == (429, [])


def test_an_agreement_keeps_the_seller_of_the_day_it_was_signed(
    buyer: Buyer, desk: Desk, stored: Unit
) -> None:
    own = f"{project_url(stored.project)}/seller"
    succeeded(desk.http.patch(own, json={"terms": "No pets.", "bankName": "Palm Bank"}))
    booking = buyer.hold(stored)
    assert missing(buyer.see(booking), "Palm Court Company", "No pets.", "Palm Bank") == []
    assert buyer.sign(booking).status_code == 303
    succeeded(desk.http.patch(own, json={"legalName": "Another", "terms": "Lions.", "bankName": None}))
    succeeded(desk.http.patch(f"{BACKOFFICE}/seller", json={"iban": None, "phone": None}))
    signed = ("Palm Court Company", "No pets.", "Palm Bank", "SA03 8000 0000 6080 1016 7519", "٠١١ 555 0100")
    agreement = buyer.see(f"{booking}/agreement")
    assert missing(agreement, *signed) == []
    assert "Another" not in agreement
    assert missing(buyer.see(booking), "Palm Bank", "SA03 8000 0000 6080 1016 7519") == []
    desk.did_to_booking(booking.rpartition("/")[2], "confirm-deposit")
    assert missing(buyer.see(f"{booking}/agreement"), *signed) == []
    assert missing(buyer.see(f"{booking}/receipt"), "Palm Court Company", "٠١١ 555 0100", REACHED[2]) == []


def test_who_read_another_profile_reads_again_before_signing(buyer: Buyer, desk: Desk, stored: Unit) -> None:
    booking = buyer.hold(stored)
    read = re.search('name="read" value="([0-9a-f]+)"', buyer.see(booking))
    assert read is not None
    succeeded(desk.http.patch(f"{project_url(stored.project)}/seller", json={"terms": "Lions."}))
    assert buyer.sign(booking, read=read[1]).status_code == 409
    assert "Lions." in buyer.see(booking)


def test_only_listed_projects_are_listed(buyer: Buyer, desk: Desk, stored: Unit, project: Project) -> None:
    link = f'href="/p/{project.slug}"'
    start = f"/p?after={project.slug[:-1]}"
    assert link not in buyer.see(start)
    assert succeeded(desk.http.patch(project_url(project), json={"listed": True}))["listed"] is True
    page = buyer.see(start)
    assert missing(page, link, "1 of 1 units available", "SAR\xa01,092,500") == []
    desk.did(stored, "take-off-sale")
    assert missing(buyer.see(start), link, "No units on sale yet") == []
    desk.settle(project, listed=False)
    assert link not in buyer.see(start)
    assert buyer.look(project_page(project)).status_code == 200
    for odd in ("", "NO!", "%F0%9F%98%80", "a" * 1000):
        assert buyer.look(f"/p?after={odd}").status_code == 200
    assert "No projects are listed here yet" in buyer.see("/p?after=zzzzzz")


def test_a_unit_without_pictures_is_drawn(buyer: Buyer, stored: Unit) -> None:
    for path in (project_page(stored.project), unit_page(stored)):
        page = buyer.see(path)
        assert page.count('class="storey"') == (0 if "<img src" in page.partition("<main")[2] else 1)


def test_the_top_and_the_list_name_the_same_numbers(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    page = buyer.see(project_page(stored.project))
    assert re.findall('data-count="available">([^<]+)<', page) == ["1", "1"]
    desk.held(stored)
    page = buyer.see(f"{project_page(stored.project)}?free=1")
    assert "0 units" in page
    assert re.findall('data-count="available">([^<]+)<', page) == ["0"]
