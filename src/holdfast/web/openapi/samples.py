"""The unit that the examples of the API description are about. It is one of the demo project."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.domain.project import Project
from holdfast.domain.references import reference_of
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, UnitFields
from holdfast.web import strict_json
from holdfast.web.api.unit_bodies import UnitReplacement, UnitValues, check_unit
from holdfast.web.json import encode

REQUEST_ID = "5f0f6c3a1e7b4d0c9a52f1f7d8c4b6e3"

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
HOLD_ENDS = NOW + timedelta(minutes=5)

PROJECT = Project(UUID("0d9c1f5e-6f0b-4a53-9a35-4b1b0c5f7a10"), "narjis-heights", "Narjis Heights", 1, NOW)


def _fields() -> UnitFields:
    """The unit that the example of PUT creates."""
    body = strict_json.parse(json.dumps(UnitReplacement.example))
    values = check_unit(UnitReplacement, body, PROJECT.slug, "A-0304")
    assert isinstance(values, UnitValues)
    return values.replacement()


UNIT = Unit(
    id=UUID("7b1d3c52-2f4a-4f0e-8f0c-5d2c9e6a1b34"),
    project_id=PROJECT.id,
    code="A-0304",
    ref="U-100042",
    fields=_fields(),
    status=Status.AVAILABLE,
    archived=False,
    hold_expires_at=None,
    reserved_until=None,
    version=7,
    created_at=NOW - timedelta(days=30),
    updated_at=NOW,
)

REFERENCE = reference_of(1)
ENDPOINT_ID = UUID("c4a0f7de-1b1e-4d0c-8a77-2f6d3a9b5e21")
DELIVERY_ID = UUID("f26f5d0a-93a7-5b0e-9d3c-6a0c4b1f8e57")


def as_json(value: Any) -> Any:
    return json.loads(encode(value))
