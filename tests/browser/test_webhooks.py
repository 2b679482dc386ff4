"""An endpoint is registered, tried, failing, brought back and rotated, with a real receiver behind it."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from holdfast_webhooks import SignatureRefused, verify
from tests.browser.journeys import load_until_seen, press, unfold
from tests.browser.office import Office
from tests.support.client import Project
from tests.support.webhooks import ATTEMPTS, Inbox, an_inbox

WEBHOOKS = "/backoffice/settings/api/webhooks"


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with an_inbox() as opened:
        yield opened


def registered(page: Page, inbox: Inbox, tower: Project) -> str:
    """The signing secret of an endpoint for this project."""
    page.goto(WEBHOOKS)
    page.get_by_role("link", name="New endpoint").first.click()
    page.get_by_label("URL").fill(inbox.url)
    page.get_by_label("Description").fill(f"ERP of {tower.slug}")
    page.get_by_label("Selected projects").check()
    page.get_by_label(tower.name).check()
    press(page, "Register endpoint")
    return page.locator(".once code").inner_text()


def to_endpoint(page: Page, tower: Project) -> None:
    page.goto(WEBHOOKS)
    page.get_by_role("link", name=f"ERP of {tower.slug}").first.click()


def test_a_new_endpoint_is_pinged_and_the_ping_arrives(page: Page, inbox: Inbox, tower: Project) -> None:
    secret = registered(page, inbox, tower)
    press(page, "Send a ping")
    post = inbox.next()
    assert verify(post.headers, post.body, secret).type == "ping"
    expect(page.locator("#ping")).to_contain_text("Delivered")
    expect(page.locator("#ping")).to_contain_text("The receiver answered 200.")
    assert secret not in page.content()


def test_a_failing_delivery_is_retried_given_up_and_resent(
    page: Page, office: Office, inbox: Inbox, tower: Project
) -> None:
    registered(page, inbox, tower)
    inbox.status = 500
    office.desk.did(office.unit(tower, "A-101"), "take-off-sale")
    first = inbox.next()
    page.goto("/backoffice/deliveries?unit=A-101&event=unit.unavailable")
    page.get_by_role("row").filter(has_text=tower.slug).get_by_role("link", name="unit.unavailable").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Failed")
    attempts = page.locator("details.attempt")
    expect(attempts).to_have_count(ATTEMPTS)
    expect(attempts.first).to_contain_text("The receiver answered 500.")
    assert inbox.next().body == first.body
    inbox.status = 200
    press(unfold(page, "Resend"), "Resend")
    again = inbox.next()
    assert (again.body, again.headers["X-Service-Delivery"]) == (
        first.body,
        first.headers["X-Service-Delivery"],
    )
    expect(page.get_by_role("heading", level=1)).to_contain_text("Delivered")
    expect(attempts).to_have_count(ATTEMPTS + 1)


@pytest.mark.slow
def test_a_failure_is_announced_on_every_page_until_it_is_seen(
    page: Page, office: Office, inbox: Inbox, tower: Project
) -> None:
    registered(page, inbox, tower)
    inbox.status = 500
    office.desk.did(office.unit(tower, "A-101"), "take-off-sale")
    (delivery,) = office.registrar.deliveries(unitCode="A-101", endpoint=endpoint_id(page, tower))[
        "deliveries"
    ]
    office.registrar.ended(delivery["id"], ATTEMPTS)
    page.goto("/backoffice/projects")
    news = page.get_by_role("complementary", name="Announcements")
    load_until_seen(page, news)
    expect(news).to_contain_text("failed since you last looked")
    press(news, "Mark as seen")
    expect(news).to_have_count(0)


def endpoint_id(page: Page, tower: Project) -> str:
    to_endpoint(page, tower)
    return page.url.rsplit("/", 1)[1]


@pytest.mark.slow
def test_a_rotated_secret_is_shown_once_and_signs_from_now_on(
    page: Page, inbox: Inbox, tower: Project
) -> None:
    old = registered(page, inbox, tower)
    to_endpoint(page, tower)
    press(unfold(page, "Rotate secret"), "Rotate secret")
    new = page.locator(".once code").inner_text()
    assert new != old
    press(page, "Send a ping")
    post = inbox.next()
    assert verify(post.headers, post.body, new).type == "ping"
    with pytest.raises(SignatureRefused):
        verify(post.headers, post.body, old)


@pytest.mark.slow
def test_what_failed_is_counted_before_it_is_sent_again(
    page: Page, office: Office, inbox: Inbox, tower: Project
) -> None:
    registered(page, inbox, tower)
    endpoint = endpoint_id(page, tower)
    inbox.status = 500
    for code in ("A-101", "A-102"):
        office.desk.did(office.unit(tower, code), "take-off-sale")
    for delivery in office.registrar.deliveries(endpoint=endpoint)["deliveries"]:
        office.registrar.ended(delivery["id"], ATTEMPTS)
    inbox.status = 200
    to_endpoint(page, tower)
    page.get_by_role("link", name="Resend failed deliveries…").click()
    press(page, "Count deliveries")
    press(page, "Resend 2 deliveries")
    for delivery in office.registrar.deliveries(endpoint=endpoint)["deliveries"]:
        assert office.registrar.ended(delivery["id"], ATTEMPTS + 1)["status"] == "delivered"


@pytest.mark.slow
def test_a_url_that_is_not_allowed_is_refused_beside_its_field(page: Page) -> None:
    page.goto(f"{WEBHOOKS}/new")
    page.get_by_label("URL").fill("https://10.0.0.1/hook")
    press(page, "Register endpoint")
    expect(page.get_by_label("URL")).to_have_value("https://10.0.0.1/hook")
    expect(page.get_by_label("URL")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#f-url-about")).to_contain_text("a private address")
