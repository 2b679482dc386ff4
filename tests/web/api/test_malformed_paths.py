"""Codes and slugs in the path, at and over every bound."""

import httpx
import pytest

from tests.support import raw_http
from tests.support.bodies import minimal
from tests.support.client import JSON, Project, Unit
from tests.support.problems import invalid
from tests.support.projects import add_project
from tests.support.raw_http import RawResponse
from tests.support.server import RunningServer
from tests.support.sql import Sql

BODY = b'{"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}'

GOOD_CODES = [
    "A",
    "x" * 50,
    "é" * 50,
    "😀" * 50,
    "A/101",
    "/",
    "A 101",
    "شقة-١٠١",
    "a?b#c&d=e",
    "100%",
    "%2F",
    "A+101",
    ".",
    "..",
    "../A",
    "A;b,c:d@e",
    '"quoted"',
    "\\",
    "units",
]


@pytest.mark.parametrize("code", GOOD_CODES)
def test_a_printable_code_is_fine(http: httpx.Client, project: Project, code: str) -> None:
    unit = Unit(http, project, code)
    assert unit.create(minimal())["code"] == code
    assert unit.read()["code"] == code
    assert unit.patch({"bedrooms": 1, "code": code}).status_code == 200
    (item,) = http.get(project.units_url).json()["units"]
    assert item["code"] == code


BAD_CODES = {
    "51 characters": "x" * 51,
    "51 wide characters": "😀" * 51,
    "space before": " A",
    "space after": "A ",
    "space alone": " ",
    "no-break space after": "A\u00a0",
    "nul": "A\x00",
    "line break": "A\n",
    "line break inside": "A\nB",
    "tab": "A\tB",
    "delete": "A\x7f",
    "c1 control": "A\x85B",
    "decomposed": "e\u0301",
    "angstrom sign": "\u212b",
    "zero-width space": "A\u200b",
    "zero-width joiner": "A\u200dB",
    "byte order mark": "\ufeffA",
    "right-to-left override": "A\u202eB",
    "line separator": "A\u2028B",
    "private use": "\ue000",
    "unassigned": "\U000e0080",
    "noncharacter": "\uffff",
}


@pytest.mark.parametrize("code", BAD_CODES.values(), ids=BAD_CODES.keys())
def test_any_other_code_is_refused(http: httpx.Client, project: Project, code: str) -> None:
    unit = Unit(http, project, code)
    invalid(unit.put(minimal()), "/path/code")
    invalid(unit.patch({}), "/path/code")
    invalid(unit.get(), "/path/code")
    assert http.get(project.units_url).json()["units"] == []


@pytest.mark.parametrize("code", ["%FF", "A%C0%AF", "%ED%A0%80", "%E2%82", "A%80"])
def test_a_code_that_is_not_utf8_is_refused(http: httpx.Client, project: Project, code: str) -> None:
    headers = {"Content-Type": JSON}
    invalid(http.put(f"{project.units_url}/{code}", content=BODY, headers=headers), "/path/code")
    assert http.get(project.units_url).json()["units"] == []


def test_two_spellings_of_one_address_are_one_unit(http: httpx.Client, stored: Unit) -> None:
    spelled_out = "".join(f"%{ord(character):02X}" for character in stored.code)
    assert http.get(f"{stored.project.units_url}/{spelled_out}").json()["id"] == stored.read()["id"]


GOOD_SLUGS = ["ab", "42", "a-b", "tower-1-of-2", "x" * 100, "a" + "-b" * 49 + "c"]
BAD_SLUGS = ["a", "x" * 101, "A-tower", "tower_1", "-tower", "tower-", "to--wer", "tower%0A", "tower%00"]
BAD_SLUGS += ["t%C3%B6wer", "%D9%A1%D9%A2", "to%20wer", "to%2Fwer", "%20ab", "..%2Fab", "%FF%FE"]


@pytest.mark.parametrize("slug", GOOD_SLUGS)
def test_a_slug_within_bounds_is_found(http: httpx.Client, sql: Sql, slug: str) -> None:
    project = add_project(sql, slug)
    assert Unit(http, project, "A").put(minimal()).status_code == 201


@pytest.mark.parametrize("slug", BAD_SLUGS)
def test_a_slug_out_of_bounds_is_refused(http: httpx.Client, slug: str) -> None:
    url = f"/v1/integration/projects/{slug}/units"
    headers = {"Content-Type": JSON}
    invalid(http.put(f"{url}/A", content=BODY, headers=headers), "/path/slug")
    invalid(http.patch(f"{url}/A", content=b"{}", headers=headers), "/path/slug")
    invalid(http.get(f"{url}/A"), "/path/slug")
    invalid(http.get(url), "/path/slug")


def send(real_server: RunningServer, key: str, target: str) -> RawResponse:
    headers = [("Authorization", f"Bearer {key}"), ("Content-Type", JSON), ("Content-Length", str(len(BODY)))]
    return raw_http.exchange(real_server.address, raw_http.request_head("PUT", target, headers) + BODY)


def test_dots_in_the_path_are_a_code_and_no_way_up(
    real_server: RunningServer, api_key: str, http: httpx.Client, project: Project
) -> None:
    response = send(real_server, api_key, f"{project.units_url}/..")
    assert response.status == 201
    assert [unit["code"] for unit in http.get(project.units_url).json()["units"]] == [".."]


@pytest.mark.parametrize(
    "tail", ["/A/B", "/../units/A", "//A", "/A/", "/", "/A%ZZ", "/A%", "/%u0041", "/A?x=1#y", "/A;x", "/A\\B"]
)
def test_odd_paths_are_no_server_fault(
    real_server: RunningServer, api_key: str, project: Project, tail: str
) -> None:
    assert send(real_server, api_key, project.units_url + tail).status < 500


@pytest.mark.parametrize("tail", ["/A/B", "/../units/A", "//A"])
def test_a_bare_slash_is_no_part_of_a_code(
    real_server: RunningServer, api_key: str, http: httpx.Client, project: Project, tail: str
) -> None:
    assert send(real_server, api_key, project.units_url + tail).status in (404, 405, 422)
    assert http.get(project.units_url).json()["units"] == []


def test_raw_bytes_in_the_path_are_no_server_fault(
    real_server: RunningServer, api_key: str, project: Project
) -> None:
    assert send(real_server, api_key, f"{project.units_url}/A\xff\x80").status < 500
    assert send(real_server, api_key, f"{project.units_url}/é").status < 500


def test_an_absurdly_long_path_is_no_server_fault(
    real_server: RunningServer, api_key: str, project: Project
) -> None:
    assert 400 <= send(real_server, api_key, f"{project.units_url}/{'x' * 20_000}").status < 500
