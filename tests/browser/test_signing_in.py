"""The way in: by password, by a second factor, by a set-up link; and the way out."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.journeys import press
from tests.browser.office import Office
from tests.browser.staff import PASSWORD
from tests.support.client import Project
from tests.support.second_factor import code_now, offered_secret


def sign_in(page: Page, email: str, password: str = PASSWORD) -> None:
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(password)
    press(page, "Sign in")


def test_whoever_signs_in_comes_to_the_page_they_wanted(open_window: Open, office: Office) -> None:
    page, person = open_window().page, office.people.add("sales")
    page.goto("/backoffice/bookings")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    sign_in(page, person.email)
    expect(page.get_by_role("heading", level=1)).to_have_text("Bookings")


@pytest.mark.slow
def test_an_unknown_account_and_a_wrong_password_are_told_the_same(open_window: Open, office: Office) -> None:
    page, person = open_window().page, office.people.add("sales")
    told = []
    for email in (person.email, "nobody@example.com"):
        page.goto("/backoffice/sign-in")
        sign_in(page, email, "not the password at all")
        expect(page.get_by_role("alert")).to_be_visible()
        told.append(page.get_by_role("alert").inner_text())
        expect(page.get_by_label("E-mail address")).to_have_value(email)
        expect(page.get_by_label("Password")).to_have_value("")
    assert told[0] == told[1]


def test_a_second_factor_is_asked_for_after_the_password(open_window: Open, office: Office) -> None:
    page, person = open_window().page, office.people.add(has_factor=True)
    page.goto("/backoffice/sign-in")
    sign_in(page, person.email)
    page.get_by_label("Six-digit code").fill("000000" if person.code != "000000" else "111111")
    press(page, "Sign in")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Six-digit code").fill(person.code)
    press(page, "Sign in")
    expect(page.get_by_role("heading", level=1)).to_have_text("Projects")


@pytest.mark.slow
def test_whoever_needs_a_second_factor_sets_it_up_after_the_password(
    open_window: Open, office: Office
) -> None:
    page, person = open_window().page, office.people.add("integrator", has_factor=False)
    page.goto("/backoffice/projects")
    sign_in(page, person.email)
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up a second factor")
    page.get_by_label("Current password").fill(PASSWORD)
    press(page, "Set up a second factor")
    page.wait_for_load_state()
    page.get_by_label("Code from the app").fill(code_now(offered_secret(page.content())))
    press(page, "Turn on")
    expect(page.get_by_role("status")).to_contain_text("You now sign in with your password and a code.")
    page.get_by_role("link", name="Projects").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Projects")


@pytest.mark.slow
def test_it_works_without_a_script(open_window: Open, office: Office) -> None:
    page, person = open_window(scripts=False).page, office.people.add("viewer")
    page.goto("/backoffice")
    sign_in(page, person.email)
    expect(page.get_by_role("heading", level=1)).to_have_text("Projects")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.slow
def test_a_set_up_link_is_good_for_one_password(open_window: Open, office: Office) -> None:
    page, link = open_window().page, office.people.invite("Omar Haddad")
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Welcome, Omar Haddad")
    page.get_by_label("Password", exact=True).fill("seven lanterns by the wadi")
    page.get_by_label("Confirm password").fill("seven lanterns by the wadi")
    press(page, "Set up and sign in")
    expect(page.get_by_role("heading", level=1)).to_have_text("Projects")
    stranger = open_window().page
    stranger.goto(link)
    expect(stranger.get_by_label("Password", exact=True)).to_have_count(0)


@pytest.mark.slow
def test_signing_out_elsewhere_ends_other_sessions_and_not_this_one(
    open_window: Open, office: Office
) -> None:
    person = office.people.add("sales")
    here, elsewhere = open_window(person).page, open_window().page
    elsewhere.goto("/backoffice/sign-in")
    sign_in(elsewhere, person.email)
    expect(elsewhere.get_by_role("heading", level=1)).to_have_text("Projects")
    here.goto("/backoffice/account")
    here.locator("summary", has_text="Sign out everywhere else").click()
    press(here, "Sign out everywhere else")
    expect(here.get_by_role("status")).to_be_visible()
    elsewhere.goto("/backoffice/projects")
    expect(elsewhere.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.slow
def test_a_page_whose_session_ends_while_it_is_open_goes_to_the_sign_in_and_back(
    open_window: Open, office: Office, tower: Project
) -> None:
    person = office.people.add("sales")
    page = open_window(person).page
    address = f"/backoffice/projects/{tower.slug}/units/A-101"
    page.goto(address)
    page.context.clear_cookies()
    page.wait_for_url("**/backoffice/sign-in?next=*")
    sign_in(page, person.email)
    page.wait_for_url(f"**{address}")


@pytest.mark.slow
def test_a_stranger_chooses_the_language(open_window: Open) -> None:
    page = open_window(locale="en-GB").page
    page.goto("/backoffice/sign-in")
    press(page, "العربية")
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    expect(page.get_by_role("heading", level=1)).to_have_text("تسجيل الدخول")
