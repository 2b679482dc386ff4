"""GET …/units: filters and keyset pages."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support.backoffice import Desk
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, pages_of, put_array
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

CODES = [f"{letter}-{number}" for letter in "ABC" for number in (101, 102, 1001, 9)]
SINCE = "2020-01-01T00:00:00Z"


def pages(http: httpx.Client, project: Project, **query: str | int) -> Iterator[list[dict[str, Any]]]:
    return pages_of(http, project.units_url, "units", **query)


def codes(http: httpx.Client, project: Project, **query: str | int) -> list[str]:
    return [unit["code"] for page in pages(http, project, **query) for unit in page]


@pytest.fixture
def filled(http: httpx.Client, project: Project) -> Project:
    answer = put_array(http, project, [minimal(code=code) for code in CODES])
    assert answer.json()["counts"]["created"] == len(CODES)
    return project


def test_a_project_lists_its_own_units_as_they_are(
    http: httpx.Client, stored: Unit, new_project: Callable[[], Project]
) -> None:
    empty = new_project()
    assert http.get(empty.units_url).json() == {"units": [], "nextCursor": None}
    assert list(pages(http, stored.project)) == [[stored.get().json()]]


def test_pages_of_any_size_give_every_unit_once(http: httpx.Client, filled: Project) -> None:
    for limit in (1, 5, 11, 12, 13, 1000):
        found = [[unit["code"] for unit in page] for page in pages(http, filled, limit=limit)]
        assert sorted(code for page in found for code in page) == sorted(CODES)
        # A full last page is the last.
        assert [len(page) for page in found[:-1]] == [limit] * ((len(CODES) - 1) // limit)


def test_a_page_keeps_its_place_while_units_come_and_change(http: httpx.Client, filled: Project) -> None:
    seen: list[str] = []
    for number, page in enumerate(pages(http, filled, limit=2)):
        seen += [unit["code"] for unit in page]
        Unit(http, filled, f"A-{number}").put(minimal())
        Unit(http, filled, f"Z-{number}").put(minimal(priceSar=number))
        for code in CODES[::3]:
            Unit(http, filled, code).patch({"priceSar": number})
        if number == 12:
            break
    assert len(seen) == len(set(seen))
    assert set(CODES) <= set(seen)


@pytest.mark.parametrize("query", [{"updatedSince": SINCE}, {"status": "available"}])
def test_filtered_pages_skip_nothing_while_units_change(
    http: httpx.Client, filled: Project, query: dict[str, str]
) -> None:
    seen: set[str] = set()
    for number, page in enumerate(pages(http, filled, limit=3, **query)):
        seen |= {unit["code"] for unit in page}
        for code in CODES[::2]:
            Unit(http, filled, code).patch({"priceSar": 10 + number})
        assert number < 20, "the pages never end"
    assert seen == set(CODES)


def test_the_status_filter_gives_that_status_only(http: httpx.Client, filled: Project, desk: Desk) -> None:
    for status, code in zip(("held", "reserved", "sold"), CODES, strict=False):
        desk.book(Unit(http, filled, code), status)
    Unit(http, filled, CODES[3]).patch({"status": "unavailable"})
    for status, code in zip(("held", "reserved", "sold", "unavailable"), CODES, strict=False):
        assert codes(http, filled, status=status, limit=2) == [code]
    assert sorted(codes(http, filled, status="available", limit=2)) == sorted(CODES[4:])


def test_expired_holds_take_their_place_among_the_available(
    http: httpx.Client, filled: Project, sql: Sql, desk: Desk
) -> None:
    desk.settle(filled, holdSeconds=3600)
    for code in CODES[::3]:
        desk.held(Unit(http, filled, code))
    for code in CODES[1::3]:
        desk.held(Unit(http, filled, code)).end_now(sql)
    for limit in (1, 3, 100):
        free = codes(http, filled, status="available", limit=limit)
        assert sorted(free) == sorted({*CODES} - {*CODES[::3]})
        assert sorted(codes(http, filled, status="held", limit=limit)) == sorted(CODES[::3])
        assert sorted(codes(http, filled, updatedSince=SINCE, limit=limit)) == sorted(CODES)


def test_the_floor_filter_gives_that_floor_only(http: httpx.Client, filled: Project) -> None:
    put_array(http, filled, [minimal(code="A-9", floor=-2), minimal(code="B-9", floor=0)])
    Unit(http, filled, "C-9").patch({"floor": 0, "status": "unavailable"})
    assert codes(http, filled, floor=0, limit=1) == ["B-9", "C-9"]
    assert codes(http, filled, floor=-2) == ["A-9"]
    assert codes(http, filled, floor=1) == []
    assert codes(http, filled, floor=0, status="unavailable") == ["C-9"]
    assert codes(http, filled, floor=0, status="available", updatedSince=SINCE) == ["B-9"]


def test_updated_since_includes_that_very_millisecond_in_any_offset(
    http: httpx.Client, filled: Project
) -> None:
    moment = Unit(http, filled, "B-9").patch({"priceSar": 7}).json()["updatedAt"]
    utc = datetime.fromisoformat(moment).astimezone(UTC)
    riyadh = (utc + timedelta(hours=3)).replace(tzinfo=None).isoformat(timespec="milliseconds") + "+03:00"
    assert codes(http, filled, updatedSince=moment) == codes(http, filled, updatedSince=riyadh) == ["B-9"]
    after = (utc + timedelta(milliseconds=1)).isoformat(timespec="milliseconds")
    assert codes(http, filled, updatedSince=after) == []
    Unit(http, filled, "A-102").patch({"status": "unavailable"})
    assert codes(http, filled, updatedSince=moment, status="unavailable", limit=1) == ["A-102"]
    assert codes(http, filled, updatedSince=moment, status="available", limit=1) == ["B-9"]


def test_every_fault_of_the_query_is_reported_at_once(http: httpx.Client, project: Project) -> None:
    query = {"limit": "0", "cursor": "!", "status": "x", "updatedSince": "x", "floor": "201", "colour": "1"}
    invalid(http.get(project.units_url, params=query), *(f"/query/{name}" for name in query))
    for name in ("cursor", "limit", "status", "updatedSince", "floor", "nonsense"):
        for text in ("%FF", "A%C0%AF", "%ED%A0%80", "ab%00%FF"):
            invalid(http.get(f"{project.units_url}?{name}={text}"), f"/query/{name}")
    for twice in ("%FF=1", "%FF=1&%FF=%FF"):
        invalid(http.get(f"{project.units_url}?{twice}"), "/query/\\udcff")


def test_a_damaged_cursor_is_never_a_server_fault(http: httpx.Client, filled: Project) -> None:
    good = http.get(filled.units_url, params={"limit": 2}).json()["nextCursor"]
    for place in range(len(good)):
        damaged = good[:place] + ("A" if good[place] != "A" else "B") + good[place + 1 :]
        assert http.get(filled.units_url, params={"cursor": damaged}).status_code in (200, 422)
        assert http.get(filled.units_url, params={"cursor": good[:place]}).status_code in (200, 422)


def test_an_unknown_project_has_no_list(http: httpx.Client) -> None:
    problem(http.get("/v1/integration/projects/no-such-tower/units"), 404)
    invalid(http.get("/v1/integration/projects/No_Such/units"), "/path/slug")


def test_a_thousand_units_fit_on_one_page(http: httpx.Client, project: Project) -> None:
    put_array(http, project, [minimal(code=f"U-{number:04}") for number in range(1001)])
    assert [len(page) for page in pages(http, project, limit=1000)] == [1000, 1]


def test_pages_hold_codes_of_every_script(http: httpx.Client, project: Project) -> None:
    odd = ["é", "z", "Z", "a b", "شقة", "😀", "ß", "10", "9", "%", "/", "'", '"', "\\", "中", "~", "-", "_"]
    put_array(http, project, [minimal(code=code) for code in odd])
    for limit in (1, 5):
        assert sorted(codes(http, project, limit=limit)) == sorted(odd)
