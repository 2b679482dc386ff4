"""Real answers are as described: a sale from the hold to the refund, and all that staff do."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp, transport_to
from tests.support.buying import BUYER
from tests.support.keys import Keys
from tests.support.projects import add_project
from tests.support.server import wait_until
from tests.support.sql import Sql
from tests.web.openapi_reading import Document, nodes, operations, resolved, validator

UNIT = {"type": "apartment", "areaSqm": 120.5, "priceSar": 950000, "vatIncluded": False, "vatRate": 15}


@dataclass
class Caller:
    """Calls operations by their names, and holds each answer against its description."""

    document: Document
    strict: Document
    """Without the members that the schemas let through for later releases."""
    http: httpx.Client
    key: str
    slug: str

    def __call__(
        self, name: str, status: int = 200, *, body: Any = None, token: str | None = None, **parts: str
    ) -> Any:
        operation = next(found for found in operations(self.document) if found.body["operationId"] == name)
        path = operation.path.format(**{"slug": self.slug, "code": "A-1203", **parts})
        credentials = token or self.key
        headers = {"Authorization": f"Bearer {credentials}"} if credentials else {}
        answer = self.http.request(operation.method.upper(), path, json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return self._as_described(operation.body["responses"][str(status)], answer)

    def _as_described(self, described: Document, answer: httpx.Response) -> Any:
        described = resolved(self.document, described)
        assert all(name in answer.headers for name in described["headers"] if name != "Retry-After")
        if "content" not in described:
            return None
        schema = described["content"][answer.headers["content-type"]]["schema"]
        found = answer.json()
        validator(self.strict if answer.is_success else self.document, schema).validate(found)
        if answer.is_success:
            is_kept = answer.headers.get("cache-control") != "no-store"
            assert is_kept == ("Cache-Control" not in described["headers"])
        return found


@pytest.fixture
def call(document: Document, server: InProcessApp, keys: Keys, sql: Sql) -> Iterator[Caller]:
    key = keys.issue(scopes=("integration", "admin")).text
    strict = deepcopy(document)
    for node in nodes(strict):
        if "properties" in node:
            node |= {"additionalProperties": False, "required": list(node["properties"])}
    with httpx.Client(base_url=server.address, transport=transport_to(server.address)) as http:
        caller = Caller(document, strict, http, key, add_project(sql).slug)
        caller("putUnit", 201, body=UNIT | {"depositPercent": 10})
        yield caller


def call_until(call: Caller, name: str, member: str, **parts: str) -> Any:
    """The document, as soon as this member of it is set."""
    wait_until(lambda: call(name, 200, **parts)[member])
    return call(name, 200, **parts)


def test_a_sale_from_the_hold_to_the_refund(call: Caller) -> None:
    found = call("holdUnit", 201)
    reference, token = found["reference"], found["token"]
    call("holdUnit", token=token)
    call("getUnitOnSale")
    call("listUnitsOnSale")
    call("getOwnBooking", reference=reference, token=token)
    call("confirmDeposit", 409, reference=reference)
    call("signBooking", reference=reference, token=token, body=BUYER)
    call("extendBooking", reference=reference)
    call("confirmDeposit", reference=reference)
    call("cancelOwnBooking", 409, reference=reference, token=token)
    call("closeSaleOfBooking", reference=reference)
    call("holdUnit", 409)
    assert call("revokeSale")["status"] == "unavailable"
    assert call("getBooking", reference=reference)["status"] == "refund-due"
    call("markRefunded", reference=reference)
    call("reissueLink", reference=reference)
    assert call("listBookings")["bookings"][0]["reference"] == reference
    assert len(call("getUnitHistory")["entries"]) == 9
    call_until(call, "listEvents", "events")


def test_a_hold_that_the_buyer_gives_up_and_one_that_staff_cancel(call: Caller) -> None:
    found = call("holdUnit", 201)
    reference, token = found["reference"], found["token"]
    call("cancelOwnBooking", 204, reference=reference, token=token)
    call("signBooking", 409, reference=reference, token=token, body=BUYER)
    call("extendBooking", 409, reference=reference)
    call("getOwnBooking", 404, reference=reference, token="hft_" + "x" * 32)
    reference = call("openUnit")["bookingReference"]
    assert call("cancelBooking", reference=reference)["status"] == "cancelled"
    call("cancelBooking", 409, reference=reference)


def test_everything_that_staff_do_to_a_unit(call: Caller) -> None:
    reference = call("openUnit")["bookingReference"]
    call("openUnit", 409)
    call("confirmDepositOfUnit", 409)
    call("extendUnit", body={"until": "2099-01-01T00:00:00.000Z"}, status=422)
    call("extendUnit")
    call("cancelHold")
    token = call("reissueLink", reference=call("openUnit")["bookingReference"])
    call("signBooking", reference=token["reference"], token=token["token"], body=BUYER)
    call("confirmDepositOfUnit")
    call("cancelReservation")
    call("takeOffSale")
    call("putOnSale")
    call("archiveUnit")
    call("getUnitOnSale", 404)
    call("putOnSale")
    assert call("closeSale", body=BUYER)["status"] == "sold"
    assert call("getBooking", reference=reference)["status"] == "cancelled"


def test_everything_that_staff_settle(call: Caller) -> None:
    slug = f"{call.slug}-b"
    call("addProject", 201, body={"slug": slug, "name": "Marina Heights"})
    call("addProject", 409, body={"slug": slug, "name": "Marina Heights"})
    call("changeProject", body={"holdSeconds": 0.5, "reservationDays": 7}, slug=slug)
    call("getProject", slug=slug)
    call("getProject", 404, slug="no-such-project")
    call("listStaffProjects")
    layout = call("getLayout")
    assert layout["units"] == [
        {"code": "A-1203", "building": "A", "floor": 12, "position": 3, "guessed": True}
    ]
    layout["units"][0] |= {"building": None, "floor": None, "position": None, "guessed": False}
    assert call("putLayout", body=layout) == layout
    call("putLayout", 422, body={"units": [layout["units"][0]] * 2})
    seller = call("changeProjectSeller", body={"legalName": "Marina Company", "vatNumber": "310123456700003"})
    assert call("getProjectSeller") == seller
    call("changeProjectSeller", 422, body={"iban": "SA00"})
    assert call("changeSeller", body={**seller, "legalName": None, "vatNumber": None}) == call("getSeller")


def test_an_endpoint_from_its_registration_to_its_removal(call: Caller) -> None:
    url = "http://127.0.0.1:9/hook"
    made = call("addEndpoint", 201, body={"url": url, "projects": [call.slug], "paused": True})
    own = {"id": made["id"]}
    call("addEndpoint", 422, body={"url": "https://10.0.0.1/"})
    call("addEndpoint", 404, body={"url": url, "projects": ["no-such-project"]})
    call("listEndpoints")
    call("getEndpoint", **own)
    call("changeEndpoint", **own, body={"description": "Our ERP"})
    call("changeEndpoint", 404, id=str(uuid4()), body={})
    call("rotateSecret", **own)
    call("takeOffSale")
    ping = call("pingEndpoint", 202, **own)
    assert len(call("listDeliveries")["deliveries"]) >= 2
    call("getDelivery", id=ping["id"])
    call("getDelivery", 404, id=str(uuid4()))
    call("resendDelivery", 202, id=ping["id"])
    call("recoverDeliveries", **own, body={"since": "2026-01-01T00:00:00Z", "dryRun": True})
    call("recoverDeliveries", 202, **own, body={"since": "2026-01-01T00:00:00Z"})
    assert call("getReconciliation", **own)["pending"] == 1
    call("removeEndpoint", 204, **own)
    call("resendDelivery", 409, id=ping["id"])


def test_a_delivery_that_was_tried(call: Caller) -> None:
    made = call("addEndpoint", 201, body={"url": "http://127.0.0.1:9/hook", "projects": [call.slug]})
    ping = call("pingEndpoint", 202, id=made["id"])
    found = call_until(call, "getDelivery", "attemptCount", id=ping["id"])
    assert found["lastCause"] == found["attempts"][0]["cause"] == "The connection was refused."
    # The endpoint is marked after the attempt is recorded.
    found = call_until(call, "getEndpoint", "failing", id=made["id"])
    assert found["failing"]["cause"] == "The connection was refused."
    call("removeEndpoint", 204, id=made["id"])


def test_missing_tokens_and_scopes_are_refused_as_described(call: Caller, keys: Keys) -> None:
    call.key = ""
    for name in ("getOwnBooking", "cancelOwnBooking", "signBooking"):
        call(name, 401, reference="Q39-4F6-4K6")
    call.key = keys.issue(scopes=("backoffice",)).text
    assert "`admin`" in call("revokeSale", 403)["detail"]
    call.key = keys.issue().text
    assert "`backoffice`" in call("openUnit", 403)["detail"]
    assert "`payments`" in call("confirmDeposit", 403, reference="Q39-4F6-4K6")["detail"]
