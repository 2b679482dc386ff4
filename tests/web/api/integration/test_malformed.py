"""Bodies that are not JSON, or too much of it, and addresses that name nothing."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support import exact_json, raw_http
from tests.support.bodies import minimal
from tests.support.client import JSON, Project, Unit
from tests.support.problems import invalid, problem
from tests.support.projects import add_project
from tests.support.server import RunningServer
from tests.support.sql import Sql

GOOD = exact_json.write(minimal())
MEBIBYTE = 1024 * 1024


def chunks(length: int) -> Iterator[bytes]:
    yield from (GOOD.ljust(length)[start : start + 65_536].encode() for start in range(0, length, 65_536))


def test_a_body_that_is_not_json_changes_nothing(stored: Unit) -> None:
    """All that is not strict JSON is in test_unit_bodies.py."""
    etag, new = stored.etag, Unit(stored.http, stored.project, "A-102")
    for content in ("", GOOD[:-1], GOOD + " x", GOOD[:-1] + ', "type": "a"}', "\ufeff" + GOOD, "[" * 100_000):
        for response in (new.put(content), stored.put(content), stored.patch(content)):
            problem(response, 400)
    invalid(stored.put("[]"), "")
    invalid(stored.patch("null"), "")
    assert (stored.etag, new.exists) == (etag, False)
    assert new.put(f" \r\n\t{GOOD}\n ").status_code == 201


def test_one_byte_more_than_1_mib_is_too_much(unit: Unit) -> None:
    headers = {"Content-Type": JSON}
    problem(unit.put(GOOD.ljust(MEBIBYTE + 1)), 413)
    problem(unit.patch("{}".ljust(MEBIBYTE + 1)), 413)
    problem(unit.http.put(unit.url, content=chunks(MEBIBYTE + 1), headers=headers), 413)
    assert not unit.exists
    assert unit.put(GOOD.ljust(MEBIBYTE)).status_code == 201
    assert unit.http.put(unit.url, content=chunks(MEBIBYTE), headers=headers).status_code == 200


def test_the_answer_to_a_lone_surrogate_is_valid_json(unit: Unit) -> None:
    response = unit.put(GOOD[:-1] + r', "\ud800\u0000": "\udfff"}')
    problem(response, 422)
    json.loads(response.content.decode("utf-8", errors="strict"))


GOOD_CODES = ["😀" * 50, "A/101", "/", "A 101", "شقة-١٠١", "a?b#c&d=e", "100%", "%2F", "A+101", ".", ".."]
GOOD_CODES += ["../A", "A;b,c:d@e", '"quoted"', "\\", "units"]


def test_any_printable_code_has_an_address(http: httpx.Client, project: Project) -> None:
    for code in GOOD_CODES:
        unit = Unit(http, project, code)
        assert unit.create(minimal())["code"] == unit.read()["code"] == code
        assert unit.patch({"bedrooms": 1, "code": code}).status_code == 200
    units = http.get(project.units_url).json()["units"]
    assert {item["code"] for item in units} == set(GOOD_CODES)


def refused_everywhere(http: httpx.Client, url: str, *pointers: str) -> None:
    sent: dict[str, Any] = {"headers": {"Content-Type": JSON}}
    invalid(http.put(url, content=GOOD, **sent), *pointers)
    invalid(http.patch(url, content="{}", **sent), *pointers)
    invalid(http.get(url), *pointers)


def test_a_code_that_is_none_is_refused(http: httpx.Client, project: Project) -> None:
    """All that is no code is in test_parameters.py."""
    for code in ("x" * 51, " A", "A%00", "%FF", "A%C0%AF", "%ED%A0%80", "%E2%82"):
        refused_everywhere(http, f"{project.units_url}/{code}", "/path/code")
    assert http.get(project.units_url).json()["units"] == []


@pytest.mark.parametrize("slug", ["A-tower", "tower%00", "t%C3%B6wer", "to%2Fwer", "..%2Fab", "%FF%FE"])
def test_a_slug_that_is_none_is_refused(http: httpx.Client, slug: str) -> None:
    url = f"/v1/integration/projects/{slug}/units"
    refused_everywhere(http, f"{url}/A", "/path/slug")
    invalid(http.get(url), "/path/slug")


def test_two_spellings_of_one_address_are_one_unit(http: httpx.Client, stored: Unit, sql: Sql) -> None:
    slug, code = (
        "".join(f"%{ord(character):02X}" for character in text) for text in (stored.project.slug, stored.code)
    )
    url = f"/v1/integration/projects/{slug}/units/{code}"
    assert http.get(url).json()["id"] == stored.read()["id"]
    longest = add_project(sql, "a" + "-b" * 49 + "c")
    assert Unit(http, longest, "A").put(minimal()).status_code == 201


def send(real_server: RunningServer, key: str, target: str) -> int:
    headers = [("Authorization", f"Bearer {key}"), ("Content-Type", JSON), ("Content-Length", str(len(GOOD)))]
    request = raw_http.request_head("PUT", target, headers) + GOOD.encode()
    return raw_http.exchange(real_server.address, request).status


def test_odd_paths_are_no_server_fault_and_dots_are_no_way_up(
    real_server: RunningServer, api_key: str, http: httpx.Client, project: Project
) -> None:
    for tail in ("/A/B", "/../units/A", "//A"):
        assert send(real_server, api_key, project.units_url + tail) in (404, 405, 422)
    assert 400 <= send(real_server, api_key, f"{project.units_url}/{'x' * 20_000}") < 500
    assert http.get(project.units_url).json()["units"] == []
    assert send(real_server, api_key, f"{project.units_url}/..") == 201
    assert [unit["code"] for unit in http.get(project.units_url).json()["units"]] == [".."]
    for tail in ("A/", "", "A%ZZ", "A%", "%u0041", "A?x=1#y", "A;x", "A\\B", "A\xff\x80", "é"):
        assert send(real_server, api_key, f"{project.units_url}/{tail}") < 500
