"""Requests about endpoints and deliveries that are wrong: every fault at once, and the first check first."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.support.keys import Keys
from tests.support.problems import invalid, problem
from tests.support.webhooks import DELIVERIES, ENDPOINTS, NOBODY_LISTENS, Registrar

PRIVATE = "https://10.0.0.1/hook"
SOME_ID = UUID("5f0e6b1c-2f0a-4a57-9a53-0b7c1f4d2e88")
SINCE = {"since": "2026-01-01T00:00:00Z"}

WISHES: list[tuple[dict[str, Any], list[str]]] = [
    ({"url": None}, ["/url"]),
    ({"url": ""}, ["/url"]),
    ({"url": 5}, ["/url"]),
    ({"url": "x" * 2001}, ["/url"]),
    ({"url": "https://a.example/\x00"}, ["/url"]),
    ({"url": "ftp://a.example"}, ["/url"]),
    ({"url": "hook"}, ["/url"]),
    ({"url": "https://user:word@a.example/"}, ["/url"]),
    ({"url": PRIVATE}, ["/url"]),
    ({"url": "http://a.example/"}, ["/url"]),
    ({"url": "https://169.254.169.254/latest"}, ["/url"]),
    ({"url": "https://[::ffff:10.0.0.1]/"}, ["/url"]),
    ({"description": "x" * 501}, ["/description"]),
    ({"description": None}, ["/description"]),
    ({"description": "\x00"}, ["/description"]),
    ({"events": []}, ["/events"]),
    ({"events": None}, ["/events"]),
    ({"events": "unit.held"}, ["/events"]),
    ({"events": ["unit.held", "unit.held"]}, ["/events"]),
    ({"events": ["unit.held", "unit.gone", 5]}, ["/events/1", "/events/2"]),
    ({"events": ["ping"]}, ["/events/0"]),
    ({"projects": []}, ["/projects"]),
    ({"projects": ["a-b", "a-b"]}, ["/projects"]),
    ({"projects": ["Not A Slug"]}, ["/projects/0"]),
    ({"projects": "a-b"}, ["/projects"]),
    ({"paused": "true"}, ["/paused"]),
    ({"ordered": None}, ["/ordered"]),
    ({"maxInFlight": 0}, ["/maxInFlight"]),
    ({"maxInFlight": 257}, ["/maxInFlight"]),
    ({"maxInFlight": 1.5}, ["/maxInFlight"]),
    ({"secret": "mine"}, ["/secret"]),
    ({"id": "x", "state": "active"}, ["/id", "/state"]),
    ({"url": PRIVATE, "events": [], "paused": 1, "color": 1}, ["/url", "/events", "/paused", "/color"]),
]


@pytest.mark.parametrize(("config", "pointers"), WISHES)
def test_every_fault_of_a_new_endpoint_is_told(
    registrar: Registrar, config: dict[str, Any], pointers: list[str]
) -> None:
    invalid(registrar.ask_to_add({"url": NOBODY_LISTENS, **config}), *pointers)


@pytest.mark.parametrize(("config", "pointers"), WISHES)
def test_every_fault_of_a_change_is_told_and_nothing_changes(
    registrar: Registrar, config: dict[str, Any], pointers: list[str]
) -> None:
    made = registrar.add()
    invalid(registrar.ask_to_change(made["id"], {"description": "changed", **config}), *pointers)
    assert registrar.read(made["id"])["updatedAt"] == made["updatedAt"]


def test_an_endpoint_needs_a_url(registrar: Registrar) -> None:
    invalid(registrar.ask_to_add({}), "/url")
    invalid(registrar.ask_to_add([]), "")


def test_a_refused_url_is_explained(registrar: Registrar) -> None:
    (fault,) = problem(registrar.ask_to_add({"url": PRIVATE}), 422)["errors"]
    assert "private" in fault["message"]


def test_who_chooses_a_ping_learns_why_not(registrar: Registrar) -> None:
    (fault,) = problem(registrar.ask_to_add({"url": NOBODY_LISTENS, "events": ["ping"]}), 422)["errors"]
    assert "in any case" in fault["message"]


def test_an_unknown_project_is_found_after_every_fault(registrar: Registrar) -> None:
    unknown = {"url": NOBODY_LISTENS, "projects": ["no-such-project"]}
    assert problem(registrar.ask_to_add(unknown), 404)["type"] == "/problems/unknown-project"
    invalid(registrar.ask_to_add(unknown | {"url": PRIVATE}), "/url")
    made = registrar.add()
    problem(registrar.ask_to_change(made["id"], {"projects": ["no-such-project"]}), 404)
    invalid(registrar.ask_to_change(made["id"], {"projects": ["no-such-project"], "url": PRIVATE}), "/url")


@pytest.mark.parametrize("endpoint_id", ["x", "%FF", "1", "{a}", f"urn:uuid:{SOME_ID}", SOME_ID.hex, ""])
def test_what_is_no_id_is_told_together_with_the_rest(registrar: Registrar, endpoint_id: str) -> None:
    http = registrar.http
    for path in (f"{ENDPOINTS}/{endpoint_id}", f"{DELIVERIES}/{endpoint_id}"):
        invalid(http.get(path, params={"color": "blue"}), "/path/id", "/query/color")
    invalid(http.patch(f"{ENDPOINTS}/{endpoint_id}", json={"paused": 1}), "/path/id", "/paused")
    invalid(http.delete(f"{ENDPOINTS}/{endpoint_id}"), "/path/id")
    for path in ("rotate-secret", "ping"):
        invalid(http.post(f"{ENDPOINTS}/{endpoint_id}/{path}", json={"a": 1}), "/path/id", "/a")
    invalid(http.post(f"{ENDPOINTS}/{endpoint_id}/recover", json={}), "/path/id", "/since")
    invalid(http.get(f"{ENDPOINTS}/{endpoint_id}/reconciliation?after=x"), "/path/id", "/query/after")
    invalid(http.post(f"{DELIVERIES}/{endpoint_id}/resend", json={"a": 1}), "/path/id", "/a")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("endpoint=x", "endpoint"),
        ("event=unit.gone", "event"),
        ("event=unit.held&event=unit.sold", "event"),
        ("unitCode=%20A", "unitCode"),
        ("unitCode=", "unitCode"),
        ("status=lost", "status"),
        ("code=200", "code"),
        ("code=6xx", "code"),
        ("since=yesterday", "since"),
        ("until=2026-13-01T00:00:00Z", "until"),
        ("cursor=x", "cursor"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("color=blue", "color"),
    ],
)
def test_a_wrong_filter_is_refused(registrar: Registrar, query: str, name: str) -> None:
    invalid(registrar.http.get(f"{DELIVERIES}?{query}"), f"/query/{name}")


def test_a_cursor_of_another_list_is_none_of_this_one(registrar: Registrar, http: httpx.Client) -> None:
    cursor = http.get("/v1/integration/events").json()["nextCursor"]
    for path in (ENDPOINTS, DELIVERIES):
        invalid(registrar.http.get(path, params={"cursor": cursor}), "/query/cursor")


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/since"]),
        ({"since": None}, ["/since"]),
        ({"since": "2026-01-01"}, ["/since"]),
        (SINCE | {"until": 5}, ["/until"]),
        (SINCE | {"events": []}, ["/events"]),
        (SINCE | {"events": ["unit.gone"]}, ["/events/0"]),
        (SINCE | {"unitCode": "A\x00"}, ["/unitCode"]),
        (SINCE | {"unitCode": ""}, ["/unitCode"]),
        (SINCE | {"dryRun": "yes"}, ["/dryRun"]),
        (SINCE | {"endpoint": "x"}, ["/endpoint"]),
        ([], [""]),
    ],
)
def test_every_fault_of_a_recovery_is_told(registrar: Registrar, body: Any, pointers: list[str]) -> None:
    made = registrar.add()
    invalid(registrar.post(made["id"], "recover", body), *pointers)


def test_a_fault_in_the_query_of_a_recovery_is_told_with_those_of_the_body(registrar: Registrar) -> None:
    made = registrar.add()
    invalid(registrar.post(made["id"], "recover?dryRun=yes", {}), "/query/dryRun", "/since")


@pytest.mark.parametrize("scopes", [["integration"], ["payments"]])
def test_endpoints_and_deliveries_are_for_staff_only(
    registrar: Registrar, keys: Keys, scopes: list[str]
) -> None:
    headers = {"Authorization": f"Bearer {keys.issue(scopes=scopes).text}"}
    for path in (ENDPOINTS, f"{ENDPOINTS}/x", f"{ENDPOINTS}/x/ping", DELIVERIES, f"{DELIVERIES}/x/resend"):
        problem(registrar.http.get(path, headers=headers), 403)


def test_who_has_no_key_learns_nothing(anonymous: httpx.Client) -> None:
    for path in (ENDPOINTS, f"{ENDPOINTS}/x", DELIVERIES, f"{DELIVERIES}/x"):
        problem(anonymous.get(path), 401)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (ENDPOINTS, {"GET", "HEAD", "POST"}),
        (f"{ENDPOINTS}/x", {"GET", "HEAD", "PATCH", "DELETE"}),
        (f"{ENDPOINTS}/x/ping", {"POST"}),
        (f"{ENDPOINTS}/x/recover", {"POST"}),
        (f"{ENDPOINTS}/x/reconciliation", {"GET", "HEAD"}),
        (DELIVERIES, {"GET", "HEAD"}),
        (f"{DELIVERIES}/x", {"GET", "HEAD"}),
        (f"{DELIVERIES}/x/resend", {"POST"}),
    ],
)
def test_a_wrong_method_is_told_before_a_wrong_id(registrar: Registrar, path: str, allowed: set[str]) -> None:
    refused = registrar.http.put(path, json={})
    problem(refused, 405)
    assert set(refused.headers["allow"].split(", ")) == allowed


def test_a_body_that_is_not_json_is_told_before_a_wrong_id(registrar: Registrar) -> None:
    for path in (f"{ENDPOINTS}/x/ping", f"{ENDPOINTS}/x/recover", f"{DELIVERIES}/x/resend"):
        problem(registrar.http.post(path, content="{", headers={"Content-Type": "application/json"}), 400)
        problem(registrar.http.post(path, content="{}", headers={"Content-Type": "text/plain"}), 415)
