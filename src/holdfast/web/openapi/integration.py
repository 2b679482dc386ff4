"""The operations of the integration API."""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.access import Scope
from holdfast.domain.event import EventName
from holdfast.web.integration.bulk import NDJSON
from holdfast.web.integration.routes import PREFIX
from holdfast.web.openapi import examples as examples
from holdfast.web.openapi import texts as texts
from holdfast.web.openapi.answers import (
    OF_A_CHANGE,
    OF_A_PROJECT,
    OF_A_UNIT,
    WITH_BODY,
    WITH_KEY,
    answer,
    json_answer,
    problems,
)
from holdfast.web.openapi.forms import TEXT, reference
from holdfast.web.openapi.operations import Operation, Paths, json_body, key_with, operation


def integration_paths() -> Paths:
    units = f"{PREFIX}/projects/{{slug}}/units"
    return {
        f"{units}/{{code}}": {"get": _get_unit(), "put": _put_unit(), "patch": _patch_unit()},
        units: {"get": _list_units(), "put": _put_units()},
        f"{PREFIX}/projects": {"get": _list_projects()},
        f"{PREFIX}/events": {"get": _list_events()},
    }


def _with_key(name: str, tag: str, summary: str, *parameters: str, **members: Any) -> Operation:
    return operation(name, tag, summary, *parameters, security=key_with(Scope.INTEGRATION), **members)


def _unit_answer(description: str) -> dict[str, Any]:
    return json_answer(description, "Unit", examples.unit(), "ETag")


def _get_unit() -> Operation:
    answers = {
        "200": _unit_answer("The unit."),
        "304": answer("The unit still has the ETag of `If-None-Match`.", "ETag"),
        **problems(*OF_A_UNIT),
    }
    return _with_key("getUnit", "Units", "Read a unit", "slug", "code", "ifChanged", responses=answers)


def _put_unit() -> Operation:
    body = json_body(
        reference("UnitReplacement"),
        least=("The least that a unit needs", examples.least_body()),
        full=("Every field", examples.full_body()),
    )
    answers = {
        "200": _unit_answer("Replaced, or as it was already."),
        "201": _unit_answer("Created."),
        **problems(*OF_A_PROJECT, *OF_A_CHANGE),
    }
    return _with_key(
        "putUnit", "Units", "Create or replace a unit", "slug", "code", "ifMatch", "ifNoneMatch",
        description=texts.PUT_UNIT, requestBody=body, responses=answers,
    )  # fmt: skip


def _patch_unit() -> Operation:
    body = json_body(
        reference("UnitPatch"),
        price=("A new price", {"priceSar": 1495000.5}),
        offSale=("Take the unit off sale", {"status": "unavailable"}),
        clear=("Clear fields", {"description": None, "images": []}),
    )
    answers = {"200": _unit_answer("The whole unit after the change."), **problems(*OF_A_UNIT, *OF_A_CHANGE)}
    return _with_key(
        "patchUnit", "Units", "Change some fields of a unit", "slug", "code", "ifMatch", "ifNoneMatch",
        description=texts.PATCH_UNIT, requestBody=body, responses=answers,
    )  # fmt: skip


def _list_units() -> Operation:
    page = {"units": [examples.unit()], "nextCursor": examples.CURSOR}
    answers = {"200": json_answer("A page of units.", "UnitList", page), **problems(*OF_A_PROJECT)}
    return _with_key(
        "listUnits", "Units", "List the units of a project",
        "slug", "status", "updatedSince", "cursor", "limit",
        description=texts.LIST_UNITS, responses=answers,
    )  # fmt: skip


def _put_units() -> Operation:
    body = json_body(
        {"type": "array", "items": reference("BulkUnit")}, units=("Two units", examples.bulk_bodies())
    )
    lines = "".join(json.dumps(unit) + "\n" for unit in examples.bulk_bodies())
    line_schema = TEXT | {"description": "On each line one `BulkUnit` in JSON; empty lines are passed over."}
    body["content"][NDJSON] = {"schema": line_schema, "example": lines}
    answers = {
        "200": json_answer("What became of each unit.", "BulkResult", examples.bulk_result()),
        **problems(*OF_A_PROJECT, *WITH_BODY),
    }
    return _with_key(
        "putUnits", "Units", "Create or replace many units", "slug", "dryRun", "reconcile",
        description=texts.PUT_UNITS, requestBody=body, responses=answers,
    )  # fmt: skip


def _list_projects() -> Operation:
    page = {"projects": [examples.project()], "nextCursor": None}
    answers = {"200": json_answer("A page of projects.", "ProjectList", page), **problems(*WITH_KEY)}
    return _with_key(
        "listProjects",
        "Projects",
        "List the projects that the key may use",
        "cursor",
        "limit",
        responses=answers,
    )


def _list_events() -> Operation:
    page = {"events": [examples.event(EventName.UNAVAILABLE)], "nextCursor": examples.POSITION}
    answers = {
        "200": json_answer("A page of events.", "EventList", page),
        **problems(*WITH_KEY, "UnknownEndpoint", "CursorExpired"),
    }
    return _with_key(
        "listEvents", "Events", "Read the event feed", "after", "limit", "feedOf",
        description=texts.LIST_EVENTS, responses=answers,
    )  # fmt: skip
