"""GET …/units: filters and keyset pages."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.support import states
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, put_array
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

ODD_TIMES = ["2026-11-14", "2026-11-14T09:30:00", "2026-11-14 09:30:00Z", "2026-11-14T09:30:60Z", ""]
ODD_TIMES += ["2026-W46-6", "2026-11-14T24:00:00Z", "2026-11-14T09:30:00.123456789Z", "20261114T093000Z"]
CODES = [f"{letter}-{number}" for letter in "ABC" for number in (101, 102, 1001, 9)]


def pages(http: httpx.Client, project: Project, **query: str | int) -> Iterator[list[dict[str, Any]]]:
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        response = http.get(project.units_url, params={**query, **more})
        assert response.status_code == 200, response.text
        body = response.json()
        assert set(body) == {"units", "nextCursor"}
        yield body["units"]
        assert cursor is None or cursor != body["nextCursor"], "the pages do not go on"
        cursor = body["nextCursor"]
        if cursor is None:
            return


def codes(http: httpx.Client, project: Project, **query: str | int) -> list[str]:
    return [unit["code"] for page in pages(http, project, **query) for unit in page]


@pytest.fixture
def filled(http: httpx.Client, project: Project) -> Project:
    answer = put_array(http, project, [minimal(code=code) for code in CODES])
    assert answer.json()["counts"]["created"] == len(CODES)
    return project


def test_a_project_without_units_has_one_empty_page(http: httpx.Client, project: Project) -> None:
    assert http.get(project.units_url).json() == {"units": [], "nextCursor": None}


def test_an_item_is_the_unit_itself(stored: Unit) -> None:
    (page,) = pages(stored.http, stored.project)
    assert page == [stored.get().json()]


@pytest.mark.parametrize("text", ["%FF", "A%C0%AF", "%ED%A0%80", "%E2%82", "A%80", "A%C3", "ab%00%FF"])
@pytest.mark.parametrize("name", ["cursor", "limit", "status", "updatedSince", "nonsense"])
def test_a_query_that_is_not_utf8_is_refused(
    http: httpx.Client, project: Project, name: str, text: str
) -> None:
    invalid(http.get(f"{project.units_url}?{name}={text}"), f"/query/{name}")


def test_a_name_that_is_not_utf8_is_refused_however_often_it_stands(
    http: httpx.Client, project: Project
) -> None:
    invalid(http.get(f"{project.units_url}?%FF=1"), "/query/\\udcff")
    invalid(http.get(f"{project.units_url}?%FF=1&%FF=%FF"), "/query/\\udcff")


def test_a_project_lists_its_own_units_only(
    http: httpx.Client, filled: Project, new_project: Callable[[], Project]
) -> None:
    Unit(http, new_project(), "Z-1").create(minimal())
    assert sorted(codes(http, filled)) == sorted(CODES)


@pytest.mark.parametrize("limit", [1, 2, 5, 11, 12, 13, 1000])
def test_pages_of_any_size_give_every_unit_once(http: httpx.Client, filled: Project, limit: int) -> None:
    found = [[unit["code"] for unit in page] for page in pages(http, filled, limit=limit)]
    assert sorted(code for page in found for code in page) == sorted(CODES)
    assert all(len(page) == limit for page in found[:-1])


def test_the_last_page_has_no_cursor_even_when_it_is_full(http: httpx.Client, filled: Project) -> None:
    assert http.get(filled.units_url, params={"limit": 12}).json()["nextCursor"] is None


def test_a_page_holds_its_place_while_units_come_and_change(http: httpx.Client, filled: Project) -> None:
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


@pytest.mark.parametrize("query", [{"updatedSince": "2020-01-01T00:00:00.000Z"}, {"status": "available"}])
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


def test_the_status_filter_gives_that_status_only(http: httpx.Client, filled: Project, sql: Sql) -> None:
    for status, code in zip(("held", "reserved", "sold"), CODES, strict=False):
        states.bring_to(sql, Unit(http, filled, code), status)
    Unit(http, filled, CODES[3]).patch({"status": "unavailable"})
    found = {status: codes(http, filled, status=status, limit=2) for status in ("held", "reserved", "sold")}
    assert found == {"held": [CODES[0]], "reserved": [CODES[1]], "sold": [CODES[2]]}
    assert codes(http, filled, status="unavailable") == [CODES[3]]
    assert sorted(codes(http, filled, status="available", limit=2)) == sorted(CODES[4:])


def test_the_floor_filter_gives_that_floor_only(http: httpx.Client, filled: Project) -> None:
    put_array(http, filled, [minimal(code="A-9", floor=-2), minimal(code="B-9", floor=0)])
    Unit(http, filled, "C-9").patch({"floor": 0, "status": "unavailable"})
    assert codes(http, filled, floor=0, limit=1) == ["B-9", "C-9"]
    assert codes(http, filled, floor=-2) == ["A-9"]
    assert codes(http, filled, floor=1) == []
    assert codes(http, filled, floor=0, status="unavailable") == ["C-9"]
    assert codes(http, filled, floor=0, status="available", updatedSince="2020-01-01T00:00:00Z") == ["B-9"]


@pytest.mark.parametrize("floor", ["-10", "201", "1.0", "", "null", "+1", "٣", "9" * 5000])
def test_a_floor_out_of_bounds_is_refused(http: httpx.Client, project: Project, floor: str) -> None:
    invalid(http.get(project.units_url, params={"floor": floor}), "/query/floor")


def test_updated_since_includes_that_very_millisecond(http: httpx.Client, filled: Project) -> None:
    changed = Unit(http, filled, "B-9").patch({"priceSar": 7}).json()
    moment = changed["updatedAt"]
    after = datetime.fromisoformat(moment) + timedelta(milliseconds=1)
    assert codes(http, filled, updatedSince=moment) == ["B-9"]
    assert codes(http, filled, updatedSince=after.isoformat(timespec="milliseconds")) == []


def test_updated_since_takes_any_offset(http: httpx.Client, filled: Project) -> None:
    moment = datetime.fromisoformat(Unit(http, filled, "B-9").patch({"priceSar": 7}).json()["updatedAt"])
    riyadh = moment.astimezone(UTC) + timedelta(hours=3)
    wire = riyadh.replace(tzinfo=None).isoformat(timespec="milliseconds") + "+03:00"
    assert codes(http, filled, updatedSince=wire) == ["B-9"]


def test_filters_join(http: httpx.Client, filled: Project) -> None:
    moment = Unit(http, filled, "A-101").patch({"priceSar": 7}).json()["updatedAt"]
    Unit(http, filled, "A-102").patch({"status": "unavailable"})
    assert codes(http, filled, updatedSince=moment, status="unavailable", limit=1) == ["A-102"]
    assert codes(http, filled, updatedSince=moment, status="available", limit=1) == ["A-101"]


@pytest.mark.parametrize(
    "limit", ["0", "-1", "1001", "1000000000", "abc", "1.5", "", "1e2", "+5", "1_0", "１", " 5"]
)
def test_a_limit_out_of_bounds_is_refused(http: httpx.Client, project: Project, limit: str) -> None:
    invalid(http.get(project.units_url, params={"limit": limit}), "/query/limit")


@pytest.mark.parametrize("limit", ["9" * 5000, "-" + "9" * 5000])
def test_a_limit_of_absurd_length_is_refused(http: httpx.Client, project: Project, limit: str) -> None:
    invalid(http.get(project.units_url, params={"limit": limit}), "/query/limit")


@pytest.mark.parametrize("cursor", ["nonsense", "!!!", "A", "\x00", "é", "x" * 4000, "AA AA", "==="])
def test_a_bad_cursor_is_refused(http: httpx.Client, filled: Project, cursor: str) -> None:
    invalid(http.get(filled.units_url, params={"cursor": cursor}), "/query/cursor")


def test_a_damaged_cursor_is_never_a_server_fault(http: httpx.Client, filled: Project) -> None:
    good = http.get(filled.units_url, params={"limit": 2}).json()["nextCursor"]
    for place in range(len(good)):
        damaged = good[:place] + ("A" if good[place] != "A" else "B") + good[place + 1 :]
        assert http.get(filled.units_url, params={"cursor": damaged}).status_code in (200, 422)
        assert http.get(filled.units_url, params={"cursor": good[:place]}).status_code in (200, 422)


@pytest.mark.parametrize("status", ["nonsense", "Available", "archived", "available,held"])
def test_an_unknown_status_is_refused(http: httpx.Client, project: Project, status: str) -> None:
    invalid(http.get(project.units_url, params={"status": status}), "/query/status")


@pytest.mark.parametrize(
    "moment", ["yesterday", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z", "\x00", "1e400"]
)
def test_a_time_that_is_none_is_refused(http: httpx.Client, project: Project, moment: str) -> None:
    invalid(http.get(project.units_url, params={"updatedSince": moment}), "/query/updatedSince")


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999-12:00"])
def test_a_time_at_the_edge_of_the_calendar_is_no_server_fault(
    http: httpx.Client, project: Project, moment: str
) -> None:
    assert http.get(project.units_url, params={"updatedSince": moment}).status_code in (200, 422)


def test_every_fault_of_the_query_is_reported_at_once(http: httpx.Client, project: Project) -> None:
    query = {"limit": "0", "cursor": "!", "status": "x", "updatedSince": "x"}
    response = http.get(project.units_url, params=query)
    invalid(response, "/query/limit", "/query/cursor", "/query/status", "/query/updatedSince")


def test_an_unknown_project_has_no_list(http: httpx.Client) -> None:
    problem(http.get("/v1/integration/projects/no-such-tower/units"), 404)


def test_a_bad_slug_has_no_list(http: httpx.Client) -> None:
    invalid(http.get("/v1/integration/projects/No_Such/units"), "/path/slug")


def test_a_thousand_units_fit_on_one_page(http: httpx.Client, project: Project) -> None:
    put_array(http, project, [full(code=f"U-{number:04}") for number in range(1001)])
    found = [len(page) for page in pages(http, project, limit=1000)]
    assert found == [1000, 1]


def test_pages_hold_codes_of_every_script(http: httpx.Client, project: Project) -> None:
    odd = ["é", "z", "Z", "a b", "شقة", "😀", "ß", "10", "9", "%", "/", "'", '"', "\\", "中", "~", "-", "_"]
    put_array(http, project, [minimal(code=code) for code in odd])
    for limit in (1, 5):
        found = codes(http, project, limit=limit)
        assert sorted(found) == sorted(odd)


def test_lapsed_holds_take_their_place_among_the_available(
    http: httpx.Client, filled: Project, sql: Sql
) -> None:
    for code in CODES[::3]:
        states.hold(sql, Unit(http, filled, code), expires_in=3600)
    for code in CODES[1::3]:
        states.hold_and_let_lapse(sql, Unit(http, filled, code))
    since = "2020-01-01T00:00:00Z"
    for limit in (1, 3, 100):
        free = codes(http, filled, status="available", limit=limit)
        assert sorted(free) == sorted({*CODES} - {*CODES[::3]})
        assert sorted(codes(http, filled, status="held", limit=limit)) == sorted(CODES[::3])
        assert sorted(codes(http, filled, updatedSince=since, limit=limit)) == sorted(CODES)


@pytest.mark.parametrize("moment", ODD_TIMES)
def test_an_odd_time_is_no_server_fault(http: httpx.Client, project: Project, moment: str) -> None:
    assert http.get(project.units_url, params={"updatedSince": moment}).status_code in (200, 422)
