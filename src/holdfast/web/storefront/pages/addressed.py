"""Which unit or booking the address of a page names."""

from __future__ import annotations

from holdfast.domain.errors import Fault
from holdfast.domain.project import slug_fault
from holdfast.domain.unit import code_fault
from holdfast.web.refusals import UnknownRoute
from holdfast.web.storefront.pages.visits import Visit


def project_in_path(visit: Visit) -> str:
    """What can be no slug is nobody's fault but the address's: there is nothing there."""
    slug = _part(visit, "slug")
    if slug_fault(slug) is not None:
        raise UnknownRoute
    return slug


def unit_in_path(visit: Visit) -> tuple[str, str]:
    slug, code = project_in_path(visit), _part(visit, "code")
    if code_fault(code) is not None:
        raise UnknownRoute
    return slug, code


def booking_in_path(visit: Visit) -> tuple[str, str]:
    """Slug and reference, as it was typed."""
    return project_in_path(visit), _part(visit, "reference")


def token_in_path(visit: Visit) -> str:
    return _part(visit, "token")


def _part(visit: Visit, name: str) -> str:
    part = visit.request.path_parameter(name)
    if isinstance(part, Fault):
        raise UnknownRoute
    return part
