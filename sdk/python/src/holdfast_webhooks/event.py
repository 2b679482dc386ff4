"""What a delivery says, read from its body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

from holdfast_webhooks.refused import Reason, SignatureRefused

_WITH_FRACTION, _WHOLE = "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Unit:
    id: UUID
    code: str
    project_slug: str
    status: str
    previous_status: str


@dataclass(frozen=True)
class Event:
    """`type` may be one that this release does not know: let such events pass."""

    id: UUID
    type: str
    created_at: datetime
    unit: Unit | None
    booking_reference: str | None
    data: Mapping[str, Any] = field(repr=False, compare=False)


def read_event(body: bytes) -> Event:
    try:
        return _event(json.loads(body.decode("utf-8")))
    except (KeyError, TypeError, ValueError, RecursionError) as fault:
        raise SignatureRefused(Reason.BODY_NOT_AN_EVENT) from fault


def _event(document: Mapping[str, Any]) -> Event:
    data = document["data"]
    return Event(
        id=UUID(_text(document["id"])),
        type=_text(document["type"]),
        created_at=_moment(_text(document["createdAt"])),
        unit=None if data["unit"] is None else _unit(data["unit"]),
        booking_reference=None if data["booking"] is None else _text(data["booking"]["reference"]),
        data=data,
    )


def _unit(document: Mapping[str, Any]) -> Unit:
    return Unit(
        id=UUID(_text(document["id"])),
        code=_text(document["code"]),
        project_slug=_text(document["projectSlug"]),
        status=_text(document["status"]),
        previous_status=_text(document["previousStatus"]),
    )


def _moment(text: str) -> datetime:
    return datetime.strptime(text, _WITH_FRACTION if "." in text else _WHOLE).replace(tzinfo=timezone.utc)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
