"""The description of the storefront and the back office: answers, problems, credentials, members."""

from typing import Any

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.domain.status import Action
from holdfast.web.openapi.example_unit import NOW, PROJECT, REFERENCE, UNIT
from holdfast.web.openapi.selling_examples import TOKEN, booking, hold, staff_unit, unit_on_sale
from tests.web.reading import named, operations, parameters_of, resolved, schema, told, validator

Document = dict[str, Any]

PUBLIC = {"400", "405", "422", "429", "503"}
OWN = PUBLIC | {"401", "404"}
STAFF = PUBLIC | {"401", "403"}
BODY = {"413", "415"}
CHANGE = STAFF | BODY | {"200", "404", "409"}
ACTIONS = {
    "openUnit", "extendUnit", "cancelHold", "confirmDepositOfUnit", "cancelReservation", "closeSale",
    "putOnSale", "takeOffSale", "archiveUnit",
}  # fmt: skip
BOOKING_ACTIONS = {"cancelBooking", "closeSaleOfBooking", "extendBooking", "markRefunded", "eraseBuyer"}

ANSWERS = {
    "listUnitsOnSale": PUBLIC | {"200", "404"},
    "getUnitOnSale": PUBLIC | {"200", "404"},
    "holdUnit": PUBLIC | BODY | {"200", "201", "403", "404", "409"},
    "getOwnBooking": OWN | {"200"},
    "signBooking": OWN | BODY | {"200", "409"},
    "cancelOwnBooking": OWN | {"204", "409"},
    "listBookings": STAFF | {"200", "404"},
    "getBooking": STAFF | {"200", "404"},
    "confirmDeposit": CHANGE,
    "reissueLink": CHANGE - {"409"},
    **dict.fromkeys(BOOKING_ACTIONS, CHANGE),
    **dict.fromkeys(ACTIONS | {"revokeSale"}, CHANGE | {"412"}),
    "listStaffUnits": STAFF | {"200", "404"},
    "getStaffUnit": STAFF | {"200", "304", "404"},
    "getUnitHistory": STAFF | {"200", "404"},
    "listStaffProjects": STAFF | {"200"},
    "addProject": STAFF | BODY | {"201", "404", "409"},
    "getProject": STAFF | {"200", "404"},
    "changeProject": CHANGE - {"409"},
    "getLayout": STAFF | {"200", "404"},
    "putLayout": CHANGE - {"409"},
}

NOT_ALLOWED = "transition-not-allowed"
CONFLICTS = {
    "holdUnit": {"not-available", "hold-lapsed", NOT_ALLOWED},
    "signBooking": {"hold-lapsed", NOT_ALLOWED},
    "cancelOwnBooking": {"hold-lapsed", NOT_ALLOWED},
    "confirmDeposit": {"not-signed"},
    **{name: {NOT_ALLOWED} for name in ACTIONS | BOOKING_ACTIONS | {"revokeSale"}},
    "confirmDepositOfUnit": {"not-signed", NOT_ALLOWED},
    "addProject": {"project-exists"},
}
SECURITY: dict[str, list[dict[str, list[str]]]] = {
    "listUnitsOnSale": [],
    "getUnitOnSale": [],
    "holdUnit": [{}, {"bookingToken": []}],
    **{name: [{"bookingToken": []}] for name in ("getOwnBooking", "signBooking", "cancelOwnBooking")},
    "confirmDeposit": [{"apiKey": ["payments"]}, {"apiKey": ["backoffice"]}],
    "revokeSale": [{"apiKey": ["admin"]}],
}
REASONS = {
    "status-locked", "terms-locked", "not-available", "not-signed", "hold-lapsed", "transition-not-allowed",
}  # fmt: skip
BOOKING = [
    "reference", "status", "unitCode", "projectSlug", "holdExpiresAt", "reservedUntil", "terms", "buyer",
    "signedAt", "depositConfirmedAt", "closedAt", "buyerErasedAt",
]  # fmt: skip
TERMS = ["priceSar", "vatIncluded", "vatRate", "totalSar", "depositPercent", "depositSar"]


def test_every_operation_of_selling_is_in_the_table(document: Document) -> None:
    """A new one must say what it answers."""
    found = {
        operation.body["operationId"]
        for operation in operations(document)
        if operation.path.startswith(("/v1/storefront", "/v1/backoffice"))
        and not {"Webhooks", "Administration"} & {*operation.body["tags"]}
    }
    assert found == set(ANSWERS)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_possible_answer_is_described(document: Document, name: str) -> None:
    assert set(named(document, name)["responses"]) == ANSWERS[name]


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_every_operation_names_its_credentials(document: Document, name: str) -> None:
    assert named(document, name)["security"] == SECURITY.get(name, [{"apiKey": ["backoffice"]}])


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_conditions_are_described_where_they_count(document: Document, name: str) -> None:
    parameters = [resolved(document, found) for found in named(document, name).get("parameters", ())]
    conditions = {found["name"] for found in parameters if found["in"] == "header"} - {"Idempotency-Key"}
    if name == "getStaffUnit":
        assert conditions == {"If-None-Match"}
    else:
        counts = name in ACTIONS | {"revokeSale"}
        assert conditions == ({"If-Match", "If-None-Match"} if counts else set())


@pytest.mark.parametrize("name", sorted(CONFLICTS))
def test_every_conflict_of_an_operation_is_described(document: Document, name: str) -> None:
    assert set(told(document, named(document, name), "409")) == CONFLICTS[name]


def test_a_conflict_explains_itself_by_reason_and_status(document: Document) -> None:
    for name in CONFLICTS.keys() - {"addProject"}:
        for reason, problem in told(document, named(document, name), "409").items():
            assert problem["reason"] == reason
            assert problem["currentStatus"]


def test_a_hold_can_be_too_many_or_too_soon(document: Document) -> None:
    limits = told(document, named(document, "holdUnit"), "429")
    assert set(limits) == {"too-many-holds", "held-too-recently", "too-many-requests"}


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("listUnits", "integration"),
        ("openUnit", "backoffice"),
        ("confirmDeposit", "payments"),
        ("revokeSale", "admin"),
    ],
)
def test_a_refused_key_learns_which_scope_it_lacks(document: Document, name: str, scope: str) -> None:
    (problem,) = told(document, named(document, name), "403").values()
    assert f"`{scope}`" in problem["detail"]


def test_the_scopes_of_keys_are_told_in_words(document: Document) -> None:
    text = document["components"]["securitySchemes"]["apiKey"]["description"]
    assert all(f"`{scope}`" in text for scope in ("integration", "payments", "backoffice", "admin"))


@pytest.mark.parametrize("name", ["Booking", "Terms", "Buyer"])
def test_nothing_of_a_booking_is_ever_left_out(document: Document, name: str) -> None:
    assert schema(document, name)["required"] == list(schema(document, name)["properties"])


def test_a_booking_has_the_members_of_the_contract_and_no_others(document: Document) -> None:
    assert list(schema(document, "Booking")["properties"]) == BOOKING == list(booking("held"))
    assert list(schema(document, "Terms")["properties"]) == TERMS == list(booking("held")["terms"])


def test_a_conflict_has_one_of_six_reasons(document: Document) -> None:
    reason = schema(document, "Conflict")["properties"]["reason"]
    assert set(resolved(document, reason)["enum"]) == REASONS


def test_a_booking_has_one_of_eight_statuses(document: Document) -> None:
    assert schema(document, "BookingStatus")["enum"] == [*BookingStatus]


def test_buyers_never_see_a_unit_that_is_not_on_sale(document: Document) -> None:
    assert schema(document, "StatusOnSale")["enum"] == ["available", "held", "reserved", "sold"]


def test_buyers_ask_only_for_statuses_that_they_see(document: Document) -> None:
    status = parameters_of(document, "listUnitsOnSale")["query", "status"]
    assert status["schema"] == {"$ref": "#/components/schemas/StatusOnSale"}


def test_a_hold_counts_for_the_visitor_of_the_cookie(document: Document) -> None:
    assert ("cookie", "holdfast_visitor") in parameters_of(document, "holdUnit")


@pytest.mark.parametrize("name", sorted(ACTIONS | {"revokeSale"}))
def test_an_action_on_a_unit_can_be_bound_to_its_state(document: Document, name: str) -> None:
    assert ("header", "If-Match") in parameters_of(document, name)
    assert "ETag" in named(document, name)["responses"]["200"]["headers"]


def test_what_was_done_to_a_unit_includes_what_other_systems_do(document: Document) -> None:
    text = schema(document, "HistoryEntry")["properties"]["action"]["description"]
    others = ("create", "change", "sign", "mark-refunded", "reissue-link", "erase-buyer")
    assert all(f"`{name}`" in text for name in others)


def test_buyers_see_nothing_of_the_back_office(document: Document) -> None:
    inner = {"id", "projectId", "ref", "createdAt", "updatedAt", "archived", "reservedUntil"}
    assert inner.isdisjoint(schema(document, "UnitOnSale")["properties"])


def test_the_example_hold_is_of_the_example_unit() -> None:
    example = hold()
    assert (example["reference"], example["token"]) == (REFERENCE, TOKEN)
    assert example["unit"] == unit_on_sale() | {"status": "held", "holdExpiresAt": example["holdExpiresAt"]}
    assert example["holdExpiresAt"].startswith(f"{NOW:%Y-%m-%dT%H:}")


@pytest.mark.parametrize(
    ("after", "status"),
    [
        ("held", "open"),
        ("signed", "signed"),
        ("reserved", "reserved"),
        ("sold", "sold"),
        ("refund-due", "refund-due"),
        ("refunded", "refunded"),
        ("erased", "sold"),
    ],
)
def test_the_example_booking_goes_from_hold_to_sale(document: Document, after: str, status: str) -> None:
    example = booking(after)
    validator(document, {"$ref": "#/components/schemas/Booking"}).validate(example)
    assert example["status"] == status
    assert (example["buyer"] is None) == (after in ("held", "erased"))
    assert (example["buyerErasedAt"] is None) == (after != "erased")
    assert example["terms"]["totalSar"] == 1493850
    assert (example["unitCode"], example["projectSlug"]) == (UNIT.code, PROJECT.slug)


@pytest.mark.parametrize(
    ("action", "status"),
    [
        (Action.OPEN, "held"),
        (Action.EXTEND, "held"),
        (Action.CANCEL_HOLD, "available"),
        (Action.CONFIRM_DEPOSIT, "reserved"),
        (Action.CANCEL_RESERVATION, "available"),
        (Action.CLOSE_SALE, "sold"),
        (Action.PUT_ON_SALE, "available"),
        (Action.TAKE_OFF_SALE, "unavailable"),
        (Action.ARCHIVE, "unavailable"),
        (Action.REVOKE_SALE, "unavailable"),
    ],
)
def test_the_example_unit_is_where_the_action_takes_it(action: Action, status: str) -> None:
    example = staff_unit(action)
    assert example["status"] == status
    assert (example["bookingReference"] is not None) == (status in ("held", "reserved", "sold"))
    assert example["archived"] is (action is Action.ARCHIVE)
