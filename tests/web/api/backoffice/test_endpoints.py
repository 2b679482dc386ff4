"""Endpoints: registered, read, changed, given a new secret, pinged, removed; also with a limited key."""

import hashlib
import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from holdfast.domain.event import EventName
from holdfast.web.api.backoffice.deliveries import Recovery
from holdfast.web.api.backoffice.endpoints import EndpointChange, NewEndpoint
from holdfast.web.api.bodies import validated
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, pages_of, with_body
from tests.support.problems import invalid, problem
from tests.support.sql import Sql
from tests.support.webhooks import DELIVERIES, ENDPOINTS, NOBODY_LISTENS, Inbox, Post, Registrar

ALL = list(EventName)
PRIVATE = "https://10.0.0.1/hook"
SINCE = {"since": "2026-01-01T00:00:00Z"}
ACTIONS: list[tuple[str, str, object]] = [
    ("GET", "", None),
    ("PATCH", "", {}),
    ("DELETE", "", None),
    ("POST", "/rotate-secret", None),
    ("POST", "/ping", None),
    ("POST", "/recover", SINCE),
    ("POST", "/recover", SINCE | {"dryRun": True}),
    ("GET", "/reconciliation", None),
]
FAIL = """
    with gone as (delete from pending_delivery where endpoint_id = $1 and event <> 'ping' returning *)
    insert into ended_delivery (
        id, endpoint_id, event, project_id, unit_code, created_at, body, attempts, status, ended_at
    )
    select id, endpoint_id, event, project_id, unit_code, created_at, body, 8, 'failed', now() from gone
"""


def is_signed_with(secret: str, post: Post) -> bool:
    signed = post.headers["X-Service-Timestamp"].encode() + b"." + post.body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return post.headers["X-Service-Signature"] == f"sha256={digest}"


def listed(registrar: Registrar, **query: str | int) -> list[str]:
    return [one["id"] for page in pages_of(registrar.http, ENDPOINTS, "endpoints", **query) for one in page]


def test_an_endpoint_receives_everything_unless_it_is_told_otherwise(
    registrar: Registrar, project: Project
) -> None:
    made = registrar.add()
    assert (made["events"], made["projects"], made["description"]) == (ALL, None, "")
    assert (made["paused"], made["ordered"], made["maxInFlight"]) == (False, False, 32)
    assert (made["state"], made["failing"]) == ("active", None)
    assert made["createdAt"] == made["secretRotatedAt"]
    wanted: dict[str, Any] = {
        "description": "أبراج: the ERP", "projects": [project.slug], "paused": True, "ordered": True,
        "maxInFlight": 7,
    }  # fmt: skip
    chosen = registrar.add(**wanted, events=["unit.sold", "unit.held"])
    assert {name: chosen[name] for name in wanted} == wanted
    assert (chosen["events"], chosen["state"]) == (["unit.held", "unit.sold"], "paused")


def test_the_secret_is_displayed_once_and_kept_by_no_cache(registrar: Registrar, sql: Sql) -> None:
    answer = registrar.ask_to_add({"url": NOBODY_LISTENS})
    made = answer.json()
    registrar.added.append(made["id"])
    assert answer.headers["cache-control"] == "no-store"
    assert made["secret"].startswith("hfs_")
    assert made["secret"] not in registrar.http.get(ENDPOINTS).text
    assert registrar.read(made["id"]) == {name: value for name, value in made.items() if name != "secret"}
    sealed = sql.value("select secret_sealed from endpoint where id = $1", made["id"])
    assert made["secret"].encode() not in sealed
    other = registrar.add()
    assert (other["secret"] != made["secret"], other["secretId"] != made["secretId"]) == (True, True)


def test_a_repeated_request_makes_one_endpoint_and_tells_its_secret_for_a_minute(
    registrar: Registrar, sql: Sql, project: Project
) -> None:
    body, headers = {"url": NOBODY_LISTENS, "projects": [project.slug]}, {"Idempotency-Key": uuid4().hex}

    def ask(**changes: object) -> httpx.Response:
        return registrar.http.post(ENDPOINTS, json={**body, **changes}, headers=headers)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: ask(), range(6)))
    assert {answer.status_code for answer in answers} == {201}
    made = answers[0].json()
    assert [answer.json() for answer in answers] == [made] * 6
    registrar.added.append(made["id"])
    assert sql.value("select count(*) from audit_entry where subject_id = $1", made["id"]) == 1
    other_body = ask(description="another")
    sql.execute("update endpoint set created_at = created_at - interval '61 s' where id = $1", made["id"])
    for answer in (other_body, ask()):
        used = problem(answer, 409)
        assert (used["type"], used["reason"]) == ("/problems/idempotency-key-used", "idempotency-key-used")
        assert used["id"] == made["id"]
        assert made["secret"] not in answer.text
    assert listed(registrar).count(made["id"]) == 1
    too_short = registrar.http.post(ENDPOINTS, json=body, headers={"Idempotency-Key": "k" * 15})
    invalid(too_short, "/header/Idempotency-Key")


def test_a_secret_that_is_replaced_at_once_is_not_repeated(registrar: Registrar) -> None:
    body, headers = {"url": NOBODY_LISTENS}, {"Idempotency-Key": uuid4().hex}
    made = registrar.http.post(ENDPOINTS, json=body, headers=headers).json()
    registrar.added.append(made["id"])
    rotated = registrar.rotate(made["id"])
    answer = registrar.http.post(ENDPOINTS, json=body, headers=headers)
    assert problem(answer, 409)["reason"] == "idempotency-key-used"
    assert rotated["secret"] not in answer.text


def test_what_is_changed_changes_and_nothing_else_does(registrar: Registrar, project: Project) -> None:
    made = registrar.add(description="before", projects=[project.slug])
    changed = registrar.change(made["id"], description="after", paused=True)
    differing = {name for name in changed if changed[name] != made[name]}
    assert differing == {"description", "paused", "state", "updatedAt"}
    assert registrar.read(made["id"]) == changed
    for same in ({}, {"events": ALL[::-1]}, {"paused": True, "projects": [project.slug]}):
        assert registrar.change(made["id"], **same)["updatedAt"] == changed["updatedAt"]
    assert registrar.change(made["id"], projects=None)["projects"] is None
    assert registrar.change(made["id"], projects=[project.slug])["projects"] == [project.slug]


def test_a_new_secret_is_displayed_once_and_signs_from_then_on(registrar: Registrar, inbox: Inbox) -> None:
    made = registrar.add(inbox.url)
    answer = registrar.post(made["id"], "rotate-secret")
    assert answer.headers["cache-control"] == "no-store"
    rotated = answer.json()
    assert rotated["secret"] != made["secret"]
    assert rotated["secretId"] != made["secretId"]
    assert rotated["secretRotatedAt"] > made["secretRotatedAt"]
    registrar.ping(made["id"])
    post = inbox.next()
    assert is_signed_with(rotated["secret"], post)
    assert not is_signed_with(made["secret"], post)


def test_a_ping_goes_the_way_of_every_event(registrar: Registrar, inbox: Inbox) -> None:
    made = registrar.add(inbox.url, events=["unit.sold"])
    delivery = registrar.ping(made["id"])
    assert (delivery["event"], delivery["unitCode"], delivery["attempts"]) == ("ping", None, [])
    post = inbox.next()
    assert post.headers["X-Service-Event"] == "ping"
    assert post.headers["X-Service-Delivery"] == delivery["id"] == post.event["id"]
    assert post.event["data"] == {"unit": None, "booking": None}
    assert post.body.decode() == delivery["body"]
    assert is_signed_with(made["secret"], post)
    ended = registrar.ended(delivery["id"])
    assert (ended["status"], ended["lastStatusCode"], ended["nextAttemptAt"]) == ("delivered", 200, None)
    (attempt,) = ended["attempts"]
    assert attempt["secretId"] == made["secretId"]


def test_a_paused_endpoint_gets_nothing_until_it_is_resumed(
    registrar: Registrar, inbox: Inbox, off_sale: Unit, project: Project
) -> None:
    made = registrar.add(inbox.url, projects=[project.slug], paused=True)
    assert off_sale.patch({"status": "available"}).status_code == 200
    (kept,) = registrar.deliveries(endpoint=made["id"])["deliveries"]
    assert (kept["status"], kept["attemptCount"]) == ("pending", 0)
    registrar.change(made["id"], paused=False)
    assert inbox.next().event["id"] == kept["id"]


def test_what_is_queued_is_cancelled_with_its_event_or_its_endpoint_and_the_log_is_kept(
    registrar: Registrar, off_sale: Unit, project: Project
) -> None:
    made, removed = (registrar.add(projects=[project.slug], paused=True)["id"] for _ in range(2))
    off_sale.patch({"status": "available"})
    registrar.change(made, events=["unit.sold"])
    registrar.remove(removed)
    for endpoint_id, reason in (
        (made, "The endpoint no longer receives this event."),
        (removed, "The endpoint was removed."),
    ):
        (cancelled,) = registrar.deliveries(endpoint=endpoint_id)["deliveries"]
        assert (cancelled["status"], cancelled["reason"]) == ("cancelled", reason)
        assert cancelled["endedAt"] is not None
    problem(registrar.http.get(f"{ENDPOINTS}/{removed}"), 404)
    refused = problem(registrar.ask_to_resend(cancelled["id"]), 409)
    assert (refused["type"], refused["reason"]) == ("/problems/endpoint-removed", "endpoint-removed")


def test_endpoints_are_listed_page_by_page_the_oldest_first(registrar: Registrar) -> None:
    made = [registrar.add(description=str(number))["id"] for number in range(5)]
    found = listed(registrar, limit=2)
    assert [one for one in found if one in made] == made
    assert len(found) == len(set(found))


def test_what_is_done_to_an_endpoint_is_noted(registrar: Registrar, sql: Sql) -> None:
    made = registrar.add()
    registrar.change(made["id"], paused=True)
    registrar.rotate(made["id"])
    registrar.remove(made["id"])
    rows = sql.rows(
        "select action, actor_kind, before, after from audit_entry where subject_id = $1 order by id",
        made["id"],
    )
    assert [row["action"] for row in rows] == ["create", "change", "rotate-secret", "remove"]
    assert {row["actor_kind"] for row in rows} == {"key"}
    assert (rows[1]["before"], rows[1]["after"]) == ('{"paused":false}', '{"paused":true}')
    assert made["secret"] not in str(rows)


BAD_VALUES: dict[str, list[Any]] = {
    "url": [None, "", 5, "x" * 2001, "https://a.example/\x00"],
    "description": ["x" * 501, None, "\x00"],
    "events": [[], None, "unit.held", ["unit.held", "unit.held"]],
    "events/0": [["ping"], ["unit.gone", "unit.held"], [5]],
    "projects": [[], ["a-b", "a-b"], "a-b"],
    "projects/0": [["Not A Slug"]],
    "paused": ["true"],
    "ordered": [None],
    "maxInFlight": [0, 257, 1.5],
    "secret": ["mine"],
    "state": ["active"],
}
BAD_RECOVERIES: dict[str, list[Any]] = {
    "since": [None, "2026-01-01"],
    "until": [5],
    "events": [[]],
    "events/0": [["unit.gone"]],
    "unitCode": ["A\x00", ""],
    "dryRun": ["yes"],
    "endpoint": ["x"],
}


@pytest.mark.parametrize(
    ("model", "body", "bad"),
    [
        (NewEndpoint, {"url": NOBODY_LISTENS}, BAD_VALUES),
        (EndpointChange, {}, BAD_VALUES),
        (Recovery, SINCE, BAD_RECOVERIES),
    ],
)
def test_a_value_out_of_bounds_is_a_fault_at_its_place(
    model: Any, body: dict[str, Any], bad: dict[str, list[Any]]
) -> None:
    for place, values in bad.items():
        for value in values:
            faults = validated(model, {**body, place.split("/")[0]: value})
            assert isinstance(faults, list), (place, value)
            assert [fault.pointer for fault in faults] == [f"/{place}"]


def test_every_fault_is_told_at_once_and_nothing_is_made_or_changed(registrar: Registrar) -> None:
    made = registrar.add()
    wrong = {"url": PRIVATE, "events": ["ping"], "paused": 1, "color": 1}
    for answer in (registrar.ask_to_add(wrong), registrar.ask_to_change(made["id"], wrong)):
        errors = {error["pointer"]: error["message"] for error in problem(answer, 422)["errors"]}
        assert set(errors) == {"/url", "/events/0", "/paused", "/color"}
        assert "private" in errors["/url"]
        assert "always sent" in errors["/events/0"]
    invalid(registrar.ask_to_add({}), "/url")
    invalid(registrar.ask_to_add([]), "")
    invalid(registrar.post(made["id"], "recover?dryRun=yes", {}), "/query/dryRun", "/since")
    assert registrar.read(made["id"])["updatedAt"] == made["updatedAt"]


def test_an_unknown_project_is_found_after_every_fault(registrar: Registrar) -> None:
    made = registrar.add()["id"]
    unknown = {"url": NOBODY_LISTENS, "projects": ["no-such-project"]}
    for answer in (registrar.ask_to_add(unknown), registrar.ask_to_change(made, unknown)):
        assert problem(answer, 404)["type"] == "/problems/unknown-project"
    unknown["url"] = PRIVATE
    for answer in (registrar.ask_to_add(unknown), registrar.ask_to_change(made, unknown)):
        invalid(answer, "/url")


def test_what_is_no_id_is_told_together_with_the_rest(registrar: Registrar) -> None:
    """All that is no id is in test_parameters.py."""
    for path in (f"{ENDPOINTS}/x", f"{ENDPOINTS}/%FF", f"{DELIVERIES}/x"):
        invalid(registrar.http.get(path, params={"color": "blue"}), "/path/id", "/query/color")
    invalid(registrar.ask_to_change("x", {"paused": 1}), "/path/id", "/paused")
    invalid(registrar.http.delete(f"{ENDPOINTS}/x"), "/path/id")
    for path in (f"{ENDPOINTS}/x/rotate-secret", f"{ENDPOINTS}/x/ping", f"{DELIVERIES}/x/resend"):
        invalid(registrar.http.post(path, json={"a": 1}), "/path/id", "/a")
    invalid(registrar.post("x", "recover", {}), "/path/id", "/since")
    invalid(registrar.http.get(f"{ENDPOINTS}/x/reconciliation?after=x"), "/path/id", "/query/after")


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
def test_method_and_body_are_checked_before_the_id(
    registrar: Registrar, path: str, allowed: set[str]
) -> None:
    refused = registrar.http.put(path, json={})
    problem(refused, 405)
    assert set(refused.headers["allow"].split(", ")) == allowed
    if allowed == {"POST"}:
        problem(registrar.http.post(path, content="{", headers={"Content-Type": "application/json"}), 400)
        problem(registrar.http.post(path, content="{}", headers={"Content-Type": "text/plain"}), 415)


def test_nothing_is_done_to_an_endpoint_that_is_unknown_or_of_others(
    registrar: Registrar, limited_registrar: Registrar
) -> None:
    made = registrar.add()
    for http, endpoint_id in ((registrar.http, str(uuid4())), (limited_registrar.http, made["id"])):
        answers = [
            http.request(method, f"{ENDPOINTS}/{endpoint_id}{rest}", **with_body(body))
            for method, rest, body in ACTIONS
        ]
        answers.append(http.get(DELIVERIES, params={"endpoint": endpoint_id}))
        for answer in answers:
            assert problem(answer, 404)["type"] == "/problems/unknown-endpoint"
    shown = registrar.read(made["id"])
    assert (shown["updatedAt"], shown["secretId"]) == (made["updatedAt"], made["secretId"])


def test_an_endpoint_never_gets_beyond_the_projects_of_a_limited_key(
    limited_registrar: Registrar, project: Project, new_project: Callable[[], Project]
) -> None:
    other = new_project()
    assert limited_registrar.add()["projects"] == [project.slug]
    assert limited_registrar.add(projects=None)["projects"] == [project.slug]
    made = limited_registrar.add(projects=[project.slug])["id"]
    assert limited_registrar.change(made, projects=None)["projects"] == [project.slug]
    beyond = {"url": NOBODY_LISTENS, "projects": [project.slug, other.slug]}
    for answer in (limited_registrar.ask_to_add(beyond), limited_registrar.ask_to_change(made, beyond)):
        assert problem(answer, 404)["type"] == "/problems/unknown-project"
    invalid(limited_registrar.ask_to_add(beyond | {"url": PRIVATE}), "/url")
    assert limited_registrar.read(made)["projects"] == [project.slug]


def test_a_limited_key_sees_only_endpoints_and_deliveries_within_its_projects(
    registrar: Registrar, limited_registrar: Registrar, project: Project, new_project: Callable[[], Project]
) -> None:
    other = new_project().slug
    own = registrar.add(projects=[project.slug], paused=True)["id"]
    seen = registrar.ping(own)
    beyond = (None, [other], [project.slug, other])
    hidden = [registrar.add(projects=slugs, paused=True)["id"] for slugs in beyond]
    assert listed(limited_registrar) == [own]
    assert set(listed(registrar)) >= {own, *hidden}
    for endpoint_id in hidden:
        problem(limited_registrar.http.get(f"{ENDPOINTS}/{endpoint_id}"), 404)
        delivery_id = registrar.ping(endpoint_id)["id"]
        problem(limited_registrar.http.get(f"{DELIVERIES}/{delivery_id}"), 404)
        problem(limited_registrar.ask_to_resend(delivery_id), 404)
    assert [one["id"] for one in limited_registrar.deliveries()["deliveries"]] == [seen["id"]]
    assert limited_registrar.delivery(seen["id"])["endpointId"] == own


def test_of_an_endpoint_that_was_for_more_a_limited_key_sees_and_sends_what_is_of_its_projects(
    registrar: Registrar,
    limited_registrar: Registrar,
    sql: Sql,
    stored: Unit,
    new_project: Callable[[], Project],
) -> None:
    project, foreign = stored.project, Unit(stored.http, new_project(), "foreign")
    foreign.create(minimal())
    made = registrar.add(projects=[project.slug, foreign.project.slug], paused=True)["id"]
    for unit in (stored, foreign):
        assert unit.patch({"status": "unavailable"}).status_code == 200
    registrar.ping(made)
    sql.execute(FAIL, made)
    registrar.change(made, projects=[project.slug])
    ids = {one["unitCode"]: one["id"] for one in registrar.deliveries(endpoint=made)["deliveries"]}
    assert set(ids) == {None, stored.code, "foreign"}
    seen = limited_registrar.deliveries(endpoint=made)["deliveries"]
    assert {one["unitCode"] for one in seen} == {None, stored.code}
    refused = problem(limited_registrar.http.get(f"{DELIVERIES}/{ids['foreign']}"), 404)
    assert refused["type"] == "/problems/unknown-delivery"
    problem(limited_registrar.ask_to_resend(ids["foreign"]), 404)
    found = limited_registrar.reconciliation(made)
    assert (found["events"], found["failed"], found["agrees"]) == (1, 1, True)
    assert registrar.reconciliation(made)["events"] == 2
    counted = limited_registrar.post(made, "recover", SINCE | {"dryRun": True}).json()
    assert (counted["count"], limited_registrar.post(made, "recover", SINCE).json()["count"]) == (1, 1)
    assert registrar.delivery(ids["foreign"])["status"] == "failed"
