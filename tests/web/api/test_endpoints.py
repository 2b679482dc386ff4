"""Endpoints: registered, read, changed, given a new secret, pinged, removed."""

import hashlib
import hmac
from collections.abc import Callable
from uuid import uuid4

import pytest

from holdfast.domain.event import EventName
from tests.support.client import Project, Unit, integration_client
from tests.support.problems import problem
from tests.support.sql import Sql
from tests.support.webhooks import DELIVERIES, ENDPOINTS, Inbox, Post, Registrar

ALL = list(EventName)


def is_signed_with(secret: str, post: Post) -> bool:
    signed = post.headers["X-Service-Timestamp"].encode() + b"." + post.body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return post.headers["X-Service-Signature"] == f"sha256={digest}"


def test_an_endpoint_receives_everything_unless_it_is_told_otherwise(registrar: Registrar) -> None:
    made = registrar.add()
    assert made["events"] == ALL
    assert (made["projects"], made["description"]) == (None, "")
    assert (made["paused"], made["ordered"], made["maxInFlight"]) == (False, False, 32)
    assert (made["state"], made["failing"]) == ("active", None)
    assert made["createdAt"] == made["secretRotatedAt"]


def test_an_endpoint_is_as_it_was_asked_for(registrar: Registrar, project: Project) -> None:
    made = registrar.add(
        description="أبراج: the ERP",
        events=["unit.sold", "unit.held"],
        projects=[project.slug],
        paused=True,
        ordered=True,
        maxInFlight=7,
    )
    assert made["events"] == ["unit.held", "unit.sold"]
    assert (made["projects"], made["description"]) == ([project.slug], "أبراج: the ERP")
    assert (made["paused"], made["ordered"], made["maxInFlight"]) == (True, True, 7)
    assert made["state"] == "paused"


def test_the_secret_is_displayed_once_and_kept_by_no_cache(registrar: Registrar) -> None:
    answer = registrar.ask_to_add({"url": "http://127.0.0.1:9/hook"})
    registrar.added.append(answer.json()["id"])
    assert answer.headers["cache-control"] == "no-store"
    secret = answer.json()["secret"]
    assert secret.startswith("hfs_")
    assert secret not in registrar.http.get(ENDPOINTS).text
    assert registrar.read(answer.json()["id"]) == {
        name: value for name, value in answer.json().items() if name != "secret"
    }


def test_two_endpoints_never_share_a_secret(registrar: Registrar) -> None:
    first, second = registrar.add(), registrar.add()
    assert first["secret"] != second["secret"]
    assert first["secretId"] != second["secretId"]


def test_no_secret_stands_in_the_database_as_it_is(registrar: Registrar, sql: Sql) -> None:
    made = registrar.add()
    sealed = sql.value("select secret_sealed from endpoint where id = $1", made["id"])
    assert made["secret"].encode() not in sealed


def test_what_is_changed_changes_and_nothing_else_does(registrar: Registrar, project: Project) -> None:
    made = registrar.add(description="before", projects=[project.slug])
    changed = registrar.change(made["id"], description="after", paused=True)
    differing = {name for name in changed if changed[name] != made[name]}
    assert differing == {"description", "paused", "state", "updatedAt"}
    assert registrar.read(made["id"]) == changed


@pytest.mark.parametrize("changes", [{}, {"events": ALL[::-1]}, {"paused": False, "projects": None}])
def test_the_same_again_changes_nothing(registrar: Registrar, changes: dict[str, object]) -> None:
    made = registrar.add()
    assert registrar.change(made["id"], **changes)["updatedAt"] == made["updatedAt"]


def test_an_endpoint_goes_from_some_projects_to_all_and_back(registrar: Registrar, project: Project) -> None:
    made = registrar.add(projects=[project.slug])
    assert registrar.change(made["id"], projects=None)["projects"] is None
    assert registrar.change(made["id"], projects=[project.slug])["projects"] == [project.slug]


def test_a_new_secret_is_displayed_once_and_signs_from_then_on(registrar: Registrar, inbox: Inbox) -> None:
    made = registrar.add(inbox.url)
    registrar.ping(made["id"])
    assert is_signed_with(made["secret"], inbox.next())
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


def test_what_is_queued_of_an_event_that_is_no_longer_chosen_is_cancelled(
    registrar: Registrar, off_sale: Unit, project: Project
) -> None:
    made = registrar.add(projects=[project.slug], paused=True)
    off_sale.patch({"status": "available"})
    registrar.change(made["id"], events=["unit.sold"])
    (cancelled,) = registrar.deliveries(endpoint=made["id"])["deliveries"]
    assert cancelled["status"] == "cancelled"
    assert cancelled["reason"] == "The endpoint no longer chooses this event."


def test_a_removed_endpoint_is_gone_and_its_log_is_kept(
    registrar: Registrar, off_sale: Unit, project: Project
) -> None:
    made = registrar.add(projects=[project.slug], paused=True)
    off_sale.patch({"status": "available"})
    registrar.remove(made["id"])
    problem(registrar.http.get(f"{ENDPOINTS}/{made['id']}"), 404)
    (cancelled,) = registrar.deliveries(endpoint=made["id"])["deliveries"]
    assert (cancelled["status"], cancelled["reason"]) == ("cancelled", "The endpoint was removed.")
    assert cancelled["endedAt"] is not None
    refused = problem(registrar.ask_to_resend(cancelled["id"]), 409)
    assert (refused["type"], refused["reason"]) == ("/problems/endpoint-removed", "endpoint-removed")


def test_endpoints_are_listed_page_by_page_the_oldest_first(registrar: Registrar) -> None:
    made = [registrar.add(description=str(number))["id"] for number in range(5)]
    listed: list[str] = []
    query: dict[str, str | int] = {"limit": 2}
    while True:
        page = registrar.http.get(ENDPOINTS, params=query).json()
        listed += [one["id"] for one in page["endpoints"]]
        if page["nextCursor"] is None:
            break
        assert len(page["endpoints"]) == 2
        query["cursor"] = page["nextCursor"]
    assert [one for one in listed if one in made] == made
    assert len(listed) == len(set(listed))


def test_nothing_is_done_to_an_endpoint_that_does_not_exist(registrar: Registrar) -> None:
    nobody = f"{ENDPOINTS}/{uuid4()}"
    send = registrar.http.request
    answers = [
        send("GET", nobody),
        send("PATCH", nobody, json={}),
        send("DELETE", nobody),
        send("POST", f"{nobody}/rotate-secret"),
        send("POST", f"{nobody}/ping"),
        send("POST", f"{nobody}/recover", json={"since": "2026-01-01T00:00:00Z"}),
        send("GET", f"{nobody}/reconciliation"),
        send("GET", DELIVERIES, params={"endpoint": str(uuid4())}),
    ]
    for answer in answers:
        assert problem(answer, 404)["type"] == "/problems/unknown-endpoint"


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


def test_every_process_knows_an_endpoint_at_once(
    registrar: Registrar, new_project: Callable[[], Project], addresses: list[str]
) -> None:
    made = registrar.add(projects=[new_project().slug])
    key = registrar.http.headers["Authorization"].removeprefix("Bearer ")
    for address in addresses:
        with integration_client(address, key) as http:
            assert http.get(f"{ENDPOINTS}/{made['id']}").status_code == 200
