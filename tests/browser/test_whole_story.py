"""One unit, from the developer's ERP to the keys and back: whoever looks at it sees the same story."""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader

from holdfast.domain.event import EventName
from tests.browser.buyers import NO_MEDIA, OpenPhone, Phone, new_tower, outside
from tests.browser.journeys import panel, press, unfold, unit_page
from tests.browser.office import Office
from tests.browser.windows import window
from tests.support.bodies import full
from tests.support.client import Unit
from tests.support.feed import Feed

STORY = [
    "unit.available",
    "unit.held",
    "unit.released",
    "unit.held",
    "unit.reserved",
    "unit.sold",
    "unit.unavailable",
]
WITH_BOOKING = {"unit.reserved", "unit.sold"}


EventSummary = tuple[str, list[str]]
"""An event, and the reference that it names, if it does."""


def test_one_unit_is_the_same_story_to_everybody(
    open_phone: OpenPhone, browser: Browser, demo: Office
) -> None:
    tower = new_tower(demo)
    unit = demo.unit(tower, f"S-{tower.slug[-8:]}")
    unit.create(full(status="unavailable") | NO_MEDIA)
    assert unit.patch({"status": "available"}).status_code == 200
    reference = bought(open_phone(), unit)
    with window(browser, demo.address, demo.people.add("admin")) as desk:
        sold_and_revoked(desk.page, unit, reference)
    assert set(STORY) == set(EventName)
    story = [(event, [reference] if event in WITH_BOOKING else []) for event in STORY]
    assert in_feed(demo, unit) == story
    assert in_log(demo, unit) == story
    assert at_receiver(open_phone().page, demo, unit) == story


def bought(phone: Phone, unit: Unit) -> str:
    """A buyer lets the unit go once, comes back, and has the papers in the end."""
    phone.open(unit)
    phone.page.locator("summary", has_text="Release this unit").click()
    phone.press("Release this unit")
    phone.expect_status("cancelled")
    reference = phone.open(unit)
    phone.sign()
    phone.pay()
    for paper in ("agreement", "receipt"):
        answer = phone.own.context.request.get(f"{phone.page.url.partition('?')[0]}/{paper}.pdf")
        assert reference in PdfReader(BytesIO(answer.body())).pages[0].extract_text()
    return reference


def sold_and_revoked(page: Page, unit: Unit, reference: str) -> None:
    """Staff find the same booking, close its sale, and take it back as only an admin may."""
    unit_page(page, unit.project, unit.code)
    panel(page).get_by_role("link", name=reference).click()
    press(unfold(page, "Close the sale"), "Close the sale")
    expect(page.locator("ol.way")).to_contain_text("Sale closed")
    unit_page(page, unit.project, unit.code)
    press(unfold(panel(page), "Revoke the sale"), "Revoke the sale")
    expect(panel(page)).to_contain_text("Unavailable")


def in_feed(demo: Office, unit: Unit) -> list[EventSummary]:
    """What the ERP reads of it."""
    return [told(one["type"], one["data"]) for one in Feed(demo.http).of(unit)]


def in_log(demo: Office, unit: Unit) -> list[EventSummary]:
    """What was sent to the receiver, once all of it has arrived."""
    registrar = demo.registrar
    found = registrar.deliveries(unitCode=unit.code)["deliveries"]
    ended = [registrar.ended(one["id"]) for one in reversed(found)]
    assert {one["status"] for one in ended} == {"delivered"}
    bodies = [json.loads(one["body"]) for one in ended]
    return [told(body["type"], body["data"]) for body in bodies]


def at_receiver(page: Page, demo: Office, unit: Unit) -> list[EventSummary]:
    """What the page outside shows, the latest first; each with its signature verified."""
    page.goto(outside(demo))
    shown = page.locator("li.received").filter(has_text=unit.code)
    expect(shown).to_have_count(len(STORY))
    assert page.locator("li.received.refused").filter(has_text=unit.code).count() == 0
    rows = [row.locator("summary") for row in reversed(shown.all())]
    return [
        (str(row.locator("code").text_content()), row.locator(".reference bdi").all_text_contents())
        for row in rows
    ]


def told(event: str, data: Mapping[str, Any]) -> EventSummary:
    return event, [data["booking"]["reference"]] if data["booking"] else []
