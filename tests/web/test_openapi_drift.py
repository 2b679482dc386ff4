"""The API description says what the code does: routes, problems, documents."""

import json
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import httpx
import pytest

from holdfast import demo
from holdfast.domain.event import EventName
from holdfast.domain.permissions import Permission
from holdfast.domain.status import TRANSITIONS, Action, Caller, Status
from holdfast.operations.auditing import Auditing
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.feed import EventFeed, event_document
from holdfast.operations.health import Health
from holdfast.operations.inventory import Inventory
from holdfast.operations.keys import Keys
from holdfast.operations.paying import Paying
from holdfast.operations.projects import Projects
from holdfast.operations.selling import Selling
from holdfast.operations.staffing import Staffing
from holdfast.operations.subscribing import Subscribing
from holdfast.storage.events import FeedItem
from holdfast.web.backoffice.audit import audit_places
from holdfast.web.backoffice.keys import key_places
from holdfast.web.backoffice.routes import PREFIX, backoffice_places, webhook_places
from holdfast.web.backoffice.staff import staff_places
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses
from holdfast.web.front import Front
from holdfast.web.integration.routes import integration_places
from holdfast.web.openapi.example_unit import PROJECT, UNIT, as_json
from holdfast.web.openapi.examples import first_put
from holdfast.web.payments.routes import payment_places
from holdfast.web.problem_types import PROBLEM_TYPES
from holdfast.web.problems import MEDIA_TYPE, PROBLEM_OF
from holdfast.web.routing import Guard, Place, Resource
from holdfast.web.status_routes import status_places
from holdfast.web.storefront.routes import storefront_places
from holdfast.web.wire import UnitDocument
from tests.support.http_serving import listening
from tests.web.reading import operations, resolved, validator

Document = dict[str, Any]

NOBODY = "OPTIONS"
"""A method that no route has, so that its answer lists those which the route has."""


async def let_pass(_: Call) -> None:
    """In place of the guard: this is not about keys."""


def open_doors(_: Permission) -> Guard:
    return let_pass


def described_places() -> list[Place]:
    inventory, selling, projects = cast(Inventory, None), cast(Selling, None), cast(Projects, None)
    subscribing, deliveries = cast(Subscribing, None), cast(Deliveries, None)
    return [
        *integration_places(inventory, cast(EventFeed, None), subscribing, open_doors),
        *storefront_places(inventory, selling, ClientAddresses(()), let_pass),
        *payment_places(cast(Paying, None), let_pass),
        *webhook_places(subscribing, deliveries, open_doors),
        *key_places(PREFIX, cast(Keys, None), open_doors),
        *audit_places(PREFIX, cast(Auditing, None), open_doors),
        *staff_places(PREFIX, cast(Staffing, None), "", open_doors),
        *backoffice_places(inventory, selling, projects, "", open_doors),
        *status_places(cast(Health, None)),
    ]


def paths_of_the_clock() -> set[str]:
    """The actions that the status table gives to nobody else: they are there, and always refused."""
    of_staff = {row.action for row in TRANSITIONS if row.callers & {Caller.STAFF, Caller.ADMIN}}
    return {f"{PREFIX}/projects/{{slug}}/units/{{code}}/{action}" for action in set(Action) - of_staff}


def served_paths() -> set[str]:
    paths = {place.path for place in described_places() if isinstance(place, Resource)}
    assert paths > paths_of_the_clock()
    return paths - paths_of_the_clock()


async def served_methods(path: str) -> set[str]:
    async with (
        listening(Front(described_places())) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False) as client,
    ):
        address = path.format(slug="marina-heights", code="A-1", reference="Q39-4F6-4K6", id=UUID(int=1))
        answer = await client.request(NOBODY, address, headers={"Authorization": "Bearer any"})
    assert answer.status_code == 405
    return set(answer.headers["allow"].split(", "))


def test_every_route_is_described_and_nothing_else(document: Document) -> None:
    assert set(document["paths"]) == served_paths()


@pytest.mark.parametrize("path", sorted(served_paths()))
async def test_every_method_is_described_and_nothing_else(document: Document, path: str) -> None:
    described = {method.upper() for method in document["paths"][path]}
    assert await served_methods(path) - {"HEAD"} == described


def test_examples_name_a_unit_of_the_demo_and_the_first_put_is_the_demo_s() -> None:
    assert UNIT.code in {unit.code for unit in demo.demo_units()}
    assert PROJECT.slug == demo.SLUG
    assert demo.EXAMPLE_PATH in first_put()
    assert first_put().endswith(f"-d '{json.dumps(demo.EXAMPLE_BODY)}'")


def described_problems(document: Document) -> set[tuple[int, str]]:
    """Status and name of every problem that some operation shows."""
    return {
        (int(status), name)
        for operation in operations(document)
        for status, answer in operation.body["responses"].items()
        for name in resolved(document, answer).get("content", {}).get(MEDIA_TYPE, {}).get("examples", ())
    }


def test_every_status_of_a_problem_is_described(document: Document) -> None:
    described = {status for status, _ in described_problems(document)}
    assert {kind.status for kind in PROBLEM_OF.values()} == described


def test_every_problem_is_described(document: Document) -> None:
    by_command_only = {"secrets-unreadable"}
    outside_of_every_operation = {"not-found", "internal-error", "not-permitted"}
    on_pages_only = {"sign-in-refused", "second-factor-needed", "setup-link-refused", "too-many-attempts"}
    names = {name for _, name in described_problems(document)}
    assert names == set(PROBLEM_TYPES) - by_command_only - outside_of_every_operation - on_pages_only


def test_every_problem_stands_under_its_own_status(document: Document) -> None:
    for status, name in described_problems(document):
        assert PROBLEM_TYPES[name].status == status


def test_a_unit_has_the_fields_of_the_wire(document: Document) -> None:
    schema = document["components"]["schemas"]["Unit"]
    assert list(schema["properties"]) == list(UnitDocument.__struct_encode_fields__) == schema["required"]


@pytest.mark.parametrize("reference", [None, "Q39-4F6-4K6"])
def test_events_of_the_feed_obey_their_schema(document: Document, reference: str | None) -> None:
    item = FeedItem(
        position=1,
        id=UUID(int=1),
        type=EventName.SOLD,
        created_at=datetime(2026, 11, 14, tzinfo=UTC),
        status=Status.SOLD,
        previous_status=Status.RESERVED,
        booking_reference=reference,
        unit_id=UUID(int=2),
        unit_code="A-1203",
        project_slug="marina-heights",
    )
    event = as_json(event_document(item))
    validator(document, {"$ref": "#/components/schemas/UnitEvent"}).validate(event)
    assert list(event) == list(document["components"]["schemas"]["UnitEvent"]["properties"])
    assert list(event["data"]["unit"]) == list(document["components"]["schemas"]["UnitChange"]["properties"])
