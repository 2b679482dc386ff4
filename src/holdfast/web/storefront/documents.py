"""Units as buyers see them: what is for sale, and nothing of the back office."""

from __future__ import annotations

from typing import Any

from holdfast.domain.booking import terms_of
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from holdfast.web.booking_wire import terms_document
from holdfast.web.wire import optional_time_text

STATUSES_ON_SALE = tuple(status for status in Status if status is not Status.UNAVAILABLE)
"""Those that buyers see."""


def offer_document(unit: Unit, project: Project) -> dict[str, Any]:
    fields = unit.fields
    return {
        "code": unit.code,
        "projectSlug": project.slug,
        "projectName": project.name,
        "type": fields.type,
        "areaSqm": fields.area_sqm,
        **terms_document(terms_of(fields)),
        "status": unit.status,
        "bedrooms": fields.bedrooms,
        "bathrooms": fields.bathrooms,
        "deliveryYear": fields.delivery_year,
        "description": fields.description,
        "images": fields.images,
        "files": fields.files,
        "holdExpiresAt": optional_time_text(unit.hold_expires_at),
    }
