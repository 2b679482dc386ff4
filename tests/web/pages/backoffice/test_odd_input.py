"""Whatever is in the address, in a form or in a unit, no page is a fault of ours."""

import pytest

from holdfast.web.pagination import TEXT_CURSOR
from tests.support.bodies import minimal
from tests.support.client import Unit
from tests.support.staff_client import People, Person
from tests.web.pages.backoffice.sales import unit_page

NO_ADDRESSES = ("http://[::::::]/x", "http://[1.2]/a", "http://ex℀mple.com/a", "http://a／b/")
TOO_LATE = TEXT_CURSOR.encode("999999999999999." + "0" * 32)
LAST = TEXT_CURSOR.encode("253402300799999." + "f" * 32)


@pytest.mark.parametrize("url", NO_ADDRESSES, ids=range(len(NO_ADDRESSES)))
def test_media_whose_address_is_odd_are_called_by_the_whole_of_it(
    sales: Person, unit: Unit, url: str
) -> None:
    unit.create(minimal(images=[url], files=[{"url": url}]))
    assert sales.see(unit_page(unit)).count(f"<bdi>{url}</bdi>") == 2


@pytest.mark.parametrize("cursor", [TOO_LATE, LAST], ids=["too-late", "last"])
@pytest.mark.parametrize(
    "path", ["staff", "deliveries", "endpoints", "settings/api/keys", "bookings", "audit"]
)
def test_a_cursor_out_of_all_time_is_no_fault_of_ours(admin: Person, path: str, cursor: str) -> None:
    assert admin.look(f"/backoffice/{path}?cursor={cursor}").status_code in (200, 404)


def test_the_last_moment_that_there_is_can_be_a_place_in_the_log(admin: Person) -> None:
    admin.see(f"/backoffice/deliveries?cursor={LAST}")


@pytest.mark.parametrize("up_to", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_news_seen_out_of_all_time_is_refused(admin: Person, up_to: str) -> None:
    assert admin.submit("/backoffice/announcements/seen", {"upTo": up_to}).status_code == 400


def test_a_form_whose_parts_end_in_too_long_a_line_is_refused(people: People) -> None:
    media_type = f"multipart/form-data; boundary={'x' * 257}"
    answer = people.stranger().post(
        "/backoffice/sign-in", content=b"--x", headers={"content-type": media_type}
    )
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "following", ["http://[", "//[::::", "/backoffice/\tx", "https://example.com/backoffice"]
)
def test_an_odd_way_back_leads_to_the_start(admin: Person, following: str) -> None:
    fields = {"upTo": "2026-01-01T00:00:00+00:00", "next": following}
    answer = admin.submit("/backoffice/announcements/seen", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/backoffice")
