"""The project, unit, booking or id that the path of a page names."""

from __future__ import annotations

from uuid import UUID

from holdfast.domain.errors import Fault
from holdfast.web.api.parameters import PATH_PARAMETERS
from holdfast.web.request import Request


def project_of(request: Request, faults: list[Fault]) -> str:
    slug: str = PATH_PARAMETERS["slug"].read(request, faults)
    return slug


def unit_of(request: Request, faults: list[Fault]) -> tuple[str, str]:
    return project_of(request, faults), PATH_PARAMETERS["code"].read(request, faults)


def reference_of(request: Request, faults: list[Fault]) -> str:
    """As it was typed; whatever is no reference names no booking."""
    reference: str = PATH_PARAMETERS["reference"].read(request, faults)
    return reference


def id_of(request: Request, faults: list[Fault]) -> UUID:
    """Where there is a fault, it is no id of anything."""
    found: UUID = PATH_PARAMETERS["id"].read(request, faults)
    return found
