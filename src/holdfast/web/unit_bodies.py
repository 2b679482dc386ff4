"""From the parsed body of a unit to the domain's values, or to every fault that it has."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from pydantic import TypeAdapter

from holdfast.domain.refusals import Fault
from holdfast.domain.replacing import STATUS_MESSAGE
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.unit import UnitFields, unit_id
from holdfast.web.checking import checked, names_of
from holdfast.web.unit_schemas import PatchBody, ReplaceBody

REPLACE: TypeAdapter[Any] = TypeAdapter(ReplaceBody)
PATCH: TypeAdapter[Any] = TypeAdapter(PatchBody)

_MEDIA = ("images", "files")
_CLAIMS = frozenset({"id", "code", "projectId", "projectSlug"})
_NOT_WRITTEN = frozenset(ReplaceBody.__annotations__) - frozenset(UnitFields._fields)
_STATUS = {str(status): status for status in Status}
_NAMES = names_of(ReplaceBody)
_OTHER_UNIT = "This is not the id of the addressed unit."
_OTHER_PROJECT = "This is not the id of the addressed project."


class CheckedBody(NamedTuple):
    """A body without faults. ``values`` has the domain's names; what is cleared is None or ()."""

    values: dict[str, Any]
    status: Status | None
    claimed_id: UUID | None
    claimed_project_id: UUID | None

    def fields(self) -> UnitFields:
        return UnitFields(**self.values)

    def claim_faults(self, project_id: UUID, code: str) -> list[Fault]:
        """What the body says of the ids must be so."""
        faults = []
        if self.claimed_project_id not in (None, project_id):
            faults.append(Fault("/projectId", _OTHER_PROJECT))
        if self.claimed_id is not None and self.claimed_id != unit_id(project_id, code):
            faults.append(Fault("/id", _OTHER_UNIT))
        return faults


def check(adapter: TypeAdapter[Any], body: Any, slug: str, code: str) -> CheckedBody | list[Fault]:
    valid = checked(adapter, body, _NAMES)
    faults = valid if isinstance(valid, list) else []
    if type(body) is dict and not _CLAIMS.isdisjoint(body):
        faults += _address_faults(body, slug, code)
    if isinstance(valid, list) or faults:
        return faults
    for name in _MEDIA:
        if name in valid and valid[name] is None:
            valid[name] = ()
    status = _STATUS[valid.pop("status")] if "status" in valid else None
    for name in _NOT_WRITTEN.intersection(valid):
        del valid[name]
    return CheckedBody(valid, status, _claimed(body, "id"), _claimed(body, "projectId"))


def sent_status(body: Any) -> Any:
    return body.get("status") if type(body) is dict else None


def with_status_fault(faults: list[Fault], status: Any) -> list[Fault]:
    """A status that only the service gives may be a conflict; beside other faults it is a fault as well."""
    return [*faults, Fault("/status", STATUS_MESSAGE)] if faults and status in tuple(LOCKED) else faults


def _address_faults(body: dict[str, Any], slug: str, code: str) -> list[Fault]:
    """What a body may say of the address must be the address."""
    faults = []
    if "code" in body and body["code"] != code:
        faults.append(Fault("/code", "This is not the code of the addressed unit."))
    if "projectSlug" in body and body["projectSlug"] != slug:
        faults.append(Fault("/projectSlug", "This is not the slug of the addressed project."))
    for name, message in (("id", _OTHER_UNIT), ("projectId", _OTHER_PROJECT)):
        if name in body and _claimed(body, name) is None:
            faults.append(Fault(f"/{name}", message))
    return faults


def _claimed(body: dict[str, Any], name: str) -> UUID | None:
    value = body.get(name)
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None
