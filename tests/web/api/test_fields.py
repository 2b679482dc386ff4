"""The field table: bounds, types and names."""

import json
from typing import Any

import pytest

from tests.support.bodies import full, minimal, without
from tests.support.client import Unit, exact
from tests.support.problems import invalid

URL = "https://media.example/a.jpg"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "x"),
        ("type", "x" * 100),
        ("type", "😀" * 100),
        ("type", "شقة"),
        ("type", ' "quoted" \\ and spaced '),
        ("description", ""),
        ("description", "x" * 10_000),
        ("description", "😀" * 10_000),
        ("description", "line\nbreak\ttab\r\n"),
        ("vatIncluded", True),
        ("vatIncluded", False),
        ("images", []),
        ("images", [URL] * 100),
        ("files", [{"url": URL, "name": "Plan"}] * 100),
        ("files", [URL, {"url": URL}, {"url": "http://media.example", "name": "مخطط"}]),
    ],
)
def test_a_value_within_bounds_comes_back_as_sent(unit: Unit, name: str, value: object) -> None:
    assert unit.create(minimal(**{name: value}))[name] == value
    assert unit.read()[name] == value


@pytest.mark.parametrize(
    ("name", "value", "pointer"),
    [
        ("type", "", "/type"),
        ("type", "x" * 101, "/type"),
        ("type", 5, "/type"),
        ("type", ["x"], "/type"),
        ("description", "x" * 10_001, "/description"),
        ("description", 5, "/description"),
        ("vatIncluded", 1, "/vatIncluded"),
        ("vatIncluded", 0, "/vatIncluded"),
        ("vatIncluded", "true", "/vatIncluded"),
        ("images", URL, "/images"),
        ("images", {"url": URL}, "/images"),
        ("images", [URL] * 101, "/images"),
        ("files", [URL] * 101, "/files"),
        ("images", [None], "/images/0"),
        ("images", [5], "/images/0"),
        ("images", [URL, [URL]], "/images/1"),
        ("images", [""], "/images/0"),
        ("images", ["media.example/a.jpg"], "/images/0"),
        ("images", ["//media.example/a.jpg"], "/images/0"),
        ("images", ["ftp://media.example/a.jpg"], "/images/0"),
        ("images", ["javascript:alert(1)"], "/images/0"),
        ("images", ["data:text/html,x"], "/images/0"),
        ("images", ["https://"], "/images/0"),
        ("images", ["https:///a.jpg"], "/images/0"),
        ("files", [{"url": "ftp://media.example/a"}], "/files/0/url"),
        ("files", [{"name": "Plan"}], "/files/0/url"),
        ("files", [{"url": URL}, {"url": 5}], "/files/1/url"),
        ("files", [{"url": URL, "name": 5}], "/files/0/name"),
        ("files", [{"url": URL, "size": 5}], "/files/0/size"),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_its_place(
    unit: Unit, name: str, value: object, pointer: str
) -> None:
    invalid(unit.put(minimal(**{name: value})), pointer)
    assert not unit.exists


@pytest.mark.parametrize("name", ["type", "description"])
@pytest.mark.parametrize("text", [r'"a\u0000b"', r'"\ud800"', r'"\udc00\ud800"', r'"a\udfffb"'])
def test_nul_and_lone_surrogates_are_refused(unit: Unit, name: str, text: str) -> None:
    body = json.dumps(without(_floats(minimal()), name))[:-1] + f', "{name}": {text}}}'
    invalid(unit.put(body), f"/{name}")
    assert not unit.exists


@pytest.mark.parametrize("text", [r'"https://media.example/\u0000"', r'"https://media.example/\ud800"'])
def test_nul_and_lone_surrogates_are_refused_in_media(unit: Unit, text: str) -> None:
    body = json.dumps(_floats(minimal()))[:-1] + f', "images": [{text}]}}'
    invalid(unit.put(body), "/images/0")


def test_a_surrogate_pair_is_one_character(unit: Unit) -> None:
    body = json.dumps(_floats(minimal()))[:-1] + r', "description": "\ud83d\ude00"}'
    assert exact(unit.put(body))["description"] == "😀"


@pytest.mark.parametrize(
    "name", ["price", "Type", "pricesar", "price_sar", "version", "archived", "", "a.b", "reservedUntil"]
)
def test_any_other_name_is_refused(unit: Unit, name: str) -> None:
    invalid(unit.put(minimal(**{name: 1})), f"/{name}")
    assert not unit.exists


def test_a_pointer_is_escaped(unit: Unit) -> None:
    invalid(unit.put(minimal(**{"a/b~c": 1})), "/a~1b~0c")


def test_an_unknown_name_with_a_lone_surrogate_is_refused(unit: Unit) -> None:
    response = unit.put(json.dumps(_floats(minimal()))[:-1] + r', "\ud800": 1}')
    assert response.status_code == 422


def test_every_fault_is_reported_at_once(unit: Unit) -> None:
    body = {
        "areaSqm": 0,
        "priceSar": "100",
        "bedrooms": 3.5,
        "vatIncluded": "no",
        "images": [URL, "nowhere"],
        "files": [{"name": 7}],
        "colour": "red",
        "status": None,
    }
    pointers = ["/type", "/areaSqm", "/priceSar", "/bedrooms", "/vatIncluded", "/images/1"]
    pointers += ["/files/0/url", "/files/0/name", "/colour", "/status"]
    invalid(unit.put(body), *pointers)
    assert not unit.exists


def test_faults_of_the_path_and_of_the_body_come_together(unit: Unit) -> None:
    url = f"/v1/integration/projects/Not_A_Slug/units/{'x' * 51}"
    response = unit.http.put(url, json={"type": "flat", "areaSqm": 1, "priceSar": -1})
    invalid(response, "/path/slug", "/path/code", "/priceSar")


@pytest.mark.parametrize("text", ["[]", "null", "5", '"text"', "true", "[{}]"])
def test_a_body_that_is_no_object_is_refused(stored: Unit, text: str) -> None:
    etag = stored.etag
    invalid(stored.put(text), "")
    invalid(stored.patch(text), "")
    assert stored.etag == etag


@pytest.mark.parametrize("name", ["id", "code", "projectId", "projectSlug"])
def test_the_own_identity_may_be_sent_back(stored: Unit, name: str) -> None:
    value = stored.read()[name]
    assert stored.put(full(**{name: value})).status_code == 200
    assert stored.patch({name: value}).status_code == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "7d9f3c1e-0000-4000-8000-000000000000"),
        ("id", "nonsense"),
        ("id", 5),
        ("code", "A-102"),
        ("code", "a-101"),
        ("code", 101),
        ("projectId", "7d9f3c1e-0000-4000-8000-000000000000"),
        ("projectSlug", "another-tower"),
    ],
)
def test_another_identity_is_refused(stored: Unit, name: str, value: object) -> None:
    etag = stored.etag
    invalid(stored.put(full(type="villa", **{name: value})), f"/{name}")
    invalid(stored.patch({"type": "villa", name: value}), f"/{name}")
    assert stored.etag == etag


def test_a_new_unit_cannot_take_the_id_of_another(stored: Unit) -> None:
    neighbour = Unit(stored.http, stored.project, "A-102")
    invalid(neighbour.put(minimal(id=stored.read()["id"])), "/id")
    assert not neighbour.exists


@pytest.mark.parametrize("name", ["holdExpiresAt", "createdAt", "updatedAt", "projectName", "ref"])
@pytest.mark.parametrize("value", ["2020-01-01T00:00:00.000Z", None, 5, ["x"]])
def test_what_the_service_alone_decides_is_ignored(stored: Unit, name: str, value: object) -> None:
    before = stored.get()
    assert stored.put(full(**{name: value})).text == before.text
    assert stored.patch({name: value}).text == before.text


def test_a_unit_read_changed_and_put_back_without_status_keeps_the_rest(stored: Unit) -> None:
    before = stored.read()
    sent = without(before, "status") | {"description": "Repainted."}
    after = exact(stored.put(sent))
    moved = {"description", "updatedAt"}
    assert without(after, *moved) == without(before, *moved)
    assert after["description"] == "Repainted."


def test_a_unit_read_and_put_back_without_status_changes_nothing(stored: Unit) -> None:
    before = stored.get()
    after = stored.put(without(exact(before), "status"))
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])


def _floats(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"areaSqm": float(body["areaSqm"])}
