"""Which person an operation is about."""

from __future__ import annotations

from typing import Any

from holdfast.web.openapi.forms import UUID, parameter

PEOPLE_PARAMETERS: dict[str, dict[str, Any]] = {
    "staffId": parameter("path", "id", UUID, "The id of the person.", "9e0b7a3c-54d2-4c1e-8f6a-1b2c3d4e5f60"),
}
