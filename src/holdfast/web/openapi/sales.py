"""The operations on units in the back office: reading them, and one for each action of the status table."""

from __future__ import annotations

from typing import Any

from holdfast.domain.access import Scope
from holdfast.domain.status import TRANSITIONS, Action, Caller
from holdfast.web.backoffice.routes import PREFIX
from holdfast.web.openapi import selling_examples as examples
from holdfast.web.openapi import selling_texts as texts
from holdfast.web.openapi.answers import OF_STAFF, WITH_BODY, answer, json_answer, problems
from holdfast.web.openapi.operations import Operation, Paths, body_of, key_with, operation

_TAG = "Sales"
_UNITS = f"{PREFIX}/projects/{{slug}}/units"
_UNIT = f"{_UNITS}/{{code}}"


def sale_paths() -> Paths:
    actions = {f"{_UNIT}/{action}": {"post": _act(action)} for action in texts.ACTIONS}
    return {
        _UNITS: {"get": _list()},
        _UNIT: {"get": _get()},
        **actions,
        f"{_UNIT}/history": {"get": _history()},
    }


def _list() -> Operation:
    page = {"units": [examples.staff_unit(Action.OPEN)], "nextCursor": None}
    answers = {
        "200": json_answer("A page of units.", "StaffUnitList", page),
        **problems(*OF_STAFF, "UnknownProject"),
    }
    return operation(
        "listStaffUnits", _TAG, "List the units of a project", "slug", "status", "cursor", "limit",
        description=texts.LIST_STAFF_UNITS, security=key_with(Scope.BACKOFFICE), responses=answers,
    )  # fmt: skip


def _get() -> Operation:
    answers = {
        "200": json_answer("The unit.", "StaffUnit", examples.staff_unit(Action.OPEN), "ETag"),
        "304": answer("The unit still has the ETag of `If-None-Match`.", "ETag"),
        **problems(*OF_STAFF, "UnknownUnit"),
    }
    return operation(
        "getStaffUnit", _TAG, "Read a unit", "slug", "code", "ifChanged",
        security=key_with(Scope.BACKOFFICE), responses=answers,
    )  # fmt: skip


def _act(action: Action) -> Operation:
    name, summary = texts.ACTIONS[action]
    answers = {
        "200": json_answer("The unit as it is now.", "StaffUnit", examples.staff_unit(action), "ETag"),
        **problems(*OF_STAFF, *WITH_BODY, "UnknownUnit", "PreconditionFailed", *_refused(action)),
    }
    description = f"{texts.ABOUT_ACTIONS[action]}\n\n{_rule(action)}"
    return operation(
        name, _TAG, summary, "slug", "code", "ifMatch", "unlessMatch",
        description=description, security=key_with(_scope(action)), **_body(action), responses=answers,
    )  # fmt: skip


def _scope(action: Action) -> Scope:
    return Scope.ADMIN if action is Action.REVOKE_SALE else Scope.BACKOFFICE


def _refused(action: Action) -> tuple[str, ...]:
    if action is Action.REVOKE_SALE:
        return "ActionRefused", "ForbiddenToStaff"
    return ("DepositRefused" if action is Action.CONFIRM_DEPOSIT else "ActionRefused",)


def _rule(action: Action) -> str:
    """What the status table says of it."""
    rows = [row for row in TRANSITIONS if row.action is action and Caller.ADMIN in row.callers]
    sources = ", ".join(dict.fromkeys(f"`{row.source}`" for row in rows))
    event = rows[0].event
    told = f"Event: `{event}`." if event else "No event."
    return f"From {sources}; from any other status it is 409 `transition-not-allowed`. {told}"


def _body(action: Action) -> dict[str, Any]:
    if action is Action.EXTEND:
        body = body_of("Extension", required=False, until=("To a time", examples.extension()))
    elif action is Action.CLOSE_SALE:
        shown = ("A buyer who walked in", examples.buyer_details())
        body = body_of("BuyerDetails", required=False, buyer=shown)
    else:
        return {}
    return {"requestBody": body}


def _history() -> Operation:
    page = {"entries": examples.history(), "nextCursor": None}
    answers = {
        "200": json_answer("A page of entries.", "History", page),
        **problems(*OF_STAFF, "UnknownUnit"),
    }
    return operation(
        "getUnitHistory", _TAG, "Read the history of a unit", "slug", "code", "cursor", "limit",
        description=texts.HISTORY, security=key_with(Scope.BACKOFFICE), responses=answers,
    )  # fmt: skip
