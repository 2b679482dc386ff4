"""Staff as JSON tells them, alike in the back office and at the console."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.domain.spelling import moment_text
from holdfast.domain.staff import Staff


def staff_document(person: Staff) -> dict[str, Any]:
    return {
        "id": str(person.id),
        "email": person.email,
        "name": person.name,
        "role": str(person.role),
        "setUp": person.has_password,
        "secondFactor": person.has_second_factor,
        "createdAt": moment_text(person.created_at),
        "disabledAt": _optional_time(person.disabled_at),
        "lastSignedInAt": _optional_time(person.last_signed_in_at),
    }


def invited_document(person: Staff, setup_url: str) -> dict[str, Any]:
    """With the link, this once."""
    return {**staff_document(person), "setupUrl": setup_url}


def _optional_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment_text(moment)
