"""Which project, unit, booking, endpoint or delivery a path names."""

from __future__ import annotations

from uuid import UUID

from holdfast.domain.project import slug_fault
from holdfast.domain.refusals import Fault, UnknownProject
from holdfast.domain.unit import code_fault
from holdfast.web.call import Call
from holdfast.web.queries import ID_MESSAGE, read_id

_NOBODY = UUID(int=0)


def project_of(call: Call, faults: list[Fault]) -> str:
    slug = call.path_parameter("slug")
    fault = slug if isinstance(slug, Fault) else slug_fault(slug)
    if fault is not None:
        faults.append(fault)
    return str(slug)


def unit_of(call: Call, faults: list[Fault]) -> tuple[str, str]:
    slug = project_of(call, faults)
    code = call.path_parameter("code")
    fault = code if isinstance(code, Fault) else code_fault(code)
    if fault is not None:
        faults.append(fault)
    return slug, str(code)


def refuse_other_projects(call: Call, slug: str) -> None:
    """A key that is limited to projects learns nothing of the others."""
    if not call.key.may_use(slug):
        raise UnknownProject(slug)


def reference_of(call: Call, faults: list[Fault]) -> str:
    """As it was typed; whatever is no reference names no booking."""
    reference = call.path_parameter("reference")
    if isinstance(reference, Fault):
        faults.append(reference)
    return str(reference)


def id_of(call: Call, faults: list[Fault]) -> UUID:
    """Where there is a fault, it is no id of anything."""
    text = call.path_parameter("id")
    if isinstance(text, Fault):
        faults.append(text)
        return _NOBODY
    found = read_id(text)
    if found is None:
        faults.append(Fault("/path/id", ID_MESSAGE))
    return found or _NOBODY
