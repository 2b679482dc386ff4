"""The operations of the API description."""

from __future__ import annotations

import json
from typing import Any

from holdfast.domain.event import EventName
from holdfast.web.call import JSON
from holdfast.web.integration.bulk import NDJSON
from holdfast.web.openapi import examples as examples
from holdfast.web.openapi import texts as texts
from holdfast.web.openapi.answers import (
    ANYWHERE,
    OF_A_CHANGE,
    OF_A_PROJECT,
    OF_A_UNIT,
    WITH_BODY,
    WITH_KEY,
    answer,
    json_answer,
    problems,
)
from holdfast.web.openapi.forms import CODE, SLUG, TEXT, TIME, reference
from holdfast.web.queries import DEFAULT_LIMIT, LARGEST_LIMIT

Operation = dict[str, Any]

_CURSOR_SCHEMA = TEXT | {"minLength": 1, "pattern": "^[A-Za-z0-9_-]+$"}
_FLAG = {"type": "boolean", "default": False}


def _parameter(place: str, name: str, schema: Any, description: str, example: Any = None) -> dict[str, Any]:
    parameter = {"name": name, "in": place, "description": description, "schema": schema}
    if place == "path":
        parameter["required"] = True
    return parameter if example is None else parameter | {"example": example}


PARAMETERS: dict[str, dict[str, Any]] = {
    "slug": _parameter("path", "slug", SLUG, texts.FIELDS["projectSlug"], examples.PROJECT.slug),
    "code": _parameter(
        "path",
        "code",
        CODE,
        f"{texts.FIELDS['code']} `A%2F101` in the path is the code `A/101`.",
        examples.UNIT.code,
    ),
    "limit": _parameter(
        "query",
        "limit",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT},
        "How many at most.",
    ),
    "cursor": _parameter("query", "cursor", _CURSOR_SCHEMA, "The `nextCursor` of the page before."),
    "after": _parameter("query", "after", _CURSOR_SCHEMA, "The `nextCursor` of the reading before."),
    "status": _parameter("query", "status", reference("Status"), "Only units of this status."),
    "updatedSince": _parameter(
        "query",
        "updatedSince",
        TIME,
        "Only units that have changed at this time or later. UTC without an offset.",
    ),
    "dryRun": _parameter("query", "dryRun", _FLAG, "Decide everything and store nothing."),
    "reconcile": _parameter(
        "query", "reconcile", _FLAG, "Answer with `missing` too: the codes that the body did not name."
    ),
    "ifMatch": _parameter(
        "header",
        "If-Match",
        TEXT,
        "Change the unit only if its ETag is one of these; `*`: only if it exists.",
    ),
    "ifNoneMatch": _parameter(
        "header",
        "If-None-Match",
        TEXT,
        "Change the unit only if its ETag is none of these; `*`: only create it.",
    ),
    "ifChanged": _parameter(
        "header", "If-None-Match", TEXT, "The ETag that you know: if it still holds, 304."
    ),
}


def paths(prefix: str) -> dict[str, dict[str, Operation]]:
    return {
        f"{prefix}/projects/{{slug}}/units/{{code}}": {
            "get": _get_unit(),
            "put": _put_unit(),
            "patch": _patch_unit(),
        },
        f"{prefix}/projects/{{slug}}/units": {"get": _list_units(), "put": _put_units()},
        f"{prefix}/projects": {"get": _list_projects()},
        f"{prefix}/events": {"get": _list_events()},
        "/healthz": {"get": _probe("getHealth", "Is the process alive?", "alive")},
        "/readyz": {"get": _readiness()},
        "/metrics": {"get": _metrics()},
    }


def _operation(name: str, tag: str, summary: str, *parameters: str, **members: Any) -> Operation:
    references = [{"$ref": f"#/components/parameters/{parameter}"} for parameter in parameters]
    operation = {"operationId": name, "tags": [tag], "summary": summary, **members}
    return operation | ({"parameters": references} if references else {})


def _with_key(name: str, tag: str, summary: str, *parameters: str, **members: Any) -> Operation:
    return _operation(name, tag, summary, *parameters, security=[{"apiKey": []}], **members)


def _json_body(schema: Any, **shown: tuple[str, Any]) -> dict[str, Any]:
    """``shown``: examples, each with its summary."""
    found = {name: {"summary": summary, "value": value} for name, (summary, value) in shown.items()}
    return {"required": True, "content": {JSON: {"schema": schema, "examples": found}}}


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
    body = _json_body(
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
    body = _json_body(
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
    body = _json_body(
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
        **problems(*WITH_KEY, "CursorExpired"),
    }
    return _with_key(
        "listEvents", "Events", "Read the event feed", "after", "limit",
        description=texts.LIST_EVENTS, responses=answers,
    )  # fmt: skip


def _probe(name: str, summary: str, status: str) -> Operation:
    answers = {"200": json_answer("Yes.", "Health", {"status": status}), **problems(*ANYWHERE)}
    return _operation(name, "Operation", summary, responses=answers)


def _readiness() -> Operation:
    probe = _probe("getReadiness", "Is the database reached, and its schema current?", "ready")
    return probe | {"responses": probe["responses"] | problems("NotReady")}


def _metrics() -> Operation:
    text = {"text/plain": {"schema": TEXT}}
    answers = {"200": answer("Metrics in the format of Prometheus.", content=text), **problems(*ANYWHERE)}
    return _operation("getMetrics", "Operation", "Metrics for Prometheus", responses=answers)
