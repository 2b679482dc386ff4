"""The schemas of problems (RFC 9457)."""

from __future__ import annotations

from holdfast.domain.refusals import Conflict, EndpointRemoved
from holdfast.web.openapi.forms import TEXT, TIME, Schema, record, reference
from holdfast.web.openapi.texts import FIELDS


def problem_schemas() -> dict[str, Schema]:
    base: dict[str, Schema] = {
        "type": TEXT
        | {"format": "uri-reference", "description": "The path of the page that explains the problem."},
        "title": TEXT | {"description": "The same for every problem of this type."},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": TEXT | {"description": "What it was this time."},
        "requestId": TEXT
        | {"description": "The `X-Request-Id` of the answer; name it when you ask for help."},
    }
    errors: Schema = {
        "type": "array",
        "minItems": 1,
        "items": reference("Fault"),
        "description": FIELDS["errors"],
    }
    conflict: dict[str, Schema] = {
        "reason": reference("ConflictReason"),
        "currentStatus": reference("Status"),
        "holdExpiresAt": TIME | {"description": "There where a hold is what blocks."},
        "fields": {"type": "array", "items": TEXT, "description": "The names of the offending fields."},
    }
    fault = {"pointer": TEXT | {"description": FIELDS["pointer"]}, "message": TEXT}
    rare = ("holdExpiresAt", "fields")
    removed: Schema = TEXT | {"const": EndpointRemoved.reason}
    return {
        "Problem": record({**base, "errors": errors, **conflict}, optional=("errors", *conflict)),
        "InvalidInput": record({**base, "errors": errors}),
        "Conflict": record({**base, **conflict}, optional=rare),
        "EndpointRemoved": record({**base, "reason": removed}),
        "ConflictReason": TEXT | {"enum": sorted(kind.reason for kind in Conflict.__subclasses__())},
        "Fault": record(fault),
    }
