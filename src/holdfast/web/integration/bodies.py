"""From a parsed body to the domain's values, or to every fault that it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from holdfast.domain.refusals import Fault
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.unit import STATUS_MESSAGE, UnitFields, unit_id
from holdfast.web.integration.schemas import AS_OBJECT, AS_URL, WEB_ADDRESS, PatchBody, ReplaceBody
from holdfast.web.wire import camel_case

REPLACE: TypeAdapter[Any] = TypeAdapter(ReplaceBody)
PATCH: TypeAdapter[Any] = TypeAdapter(PatchBody)

_MEDIA = ("images", "files")
_CLAIMS = frozenset({"id", "code", "projectId", "projectSlug"})
_NOT_WRITTEN = frozenset(ReplaceBody.__annotations__) - frozenset(UnitFields._fields)
_STATUS = {str(status): status for status in Status}

# A body with more members than there are fields is sifted first: pydantic takes ten times as long
# to say of a name that it is unknown.
_NAMES = frozenset(map(camel_case, ReplaceBody.__annotations__))
_NO_SUCH_FIELD = "There is no field of this name."

_MESSAGES = {
    "missing": "This field is required.",
    "extra_forbidden": _NO_SUCH_FIELD,
    "is_instance_of": "This must be a number.",
    "string_type": "This must be text.",
    "string_unicode": "This text holds a lone surrogate, which is not a character.",
    "string_pattern_mismatch": "This text holds the character U+0000, which cannot be stored.",
    "string_too_short": "This must have at least {min_length} character.",
    "string_too_long": "This must have at most {max_length} characters.",
    "bool_type": "This must be true or false.",
    "greater_than": "This must be greater than {gt}.",
    "greater_than_equal": "This must be at least {ge}.",
    "less_than_equal": "This must be at most {le}.",
    "decimal_max_places": "This must have at most {decimal_places} decimals.",
    "list_type": "This must be an array.",
    "too_long": "This must have at most {max_length} elements.",
}


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
            faults.append(Fault("/projectId", "This is not the id of the addressed project."))
        if self.claimed_id is not None and self.claimed_id != unit_id(project_id, code):
            faults.append(Fault("/id", "This is not the id of the addressed unit."))
        return faults


def check(adapter: TypeAdapter[Any], body: Any, slug: str, code: str) -> CheckedBody | list[Fault]:
    if type(body) is not dict:
        return [Fault("", "The body must be a JSON object.")]
    faults: list[Fault] = []
    if len(body) > len(_NAMES):
        faults = [Fault(_pointer([name]), _NO_SUCH_FIELD) for name in body if name not in _NAMES]
        body = {name: value for name, value in body.items() if name in _NAMES}
    try:
        valid = adapter.validate_python(body)
    except ValidationError as failure:
        faults += [_fault(error) for error in failure.errors(include_url=False)]
    if not _CLAIMS.isdisjoint(body):
        faults += _address_faults(body, slug, code)
    if faults:
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
    for name, owner in (("id", "unit"), ("projectId", "project")):
        if name in body and _claimed(body, name) is None:
            faults.append(Fault(f"/{name}", f"This is not the id of the addressed {owner}."))
    return faults


def _claimed(body: dict[str, Any], name: str) -> UUID | None:
    value = body.get(name)
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _fault(error: ErrorDetails) -> Fault:
    pointer = _pointer(error["loc"])
    if error["type"] == "string_pattern_mismatch" and error["ctx"]["pattern"] == WEB_ADDRESS:
        return Fault(pointer, "This must be an http or https URL.")
    if error["input"] is None and error["type"] != "status":
        return Fault(pointer, "This field cannot be null.")
    template = _MESSAGES.get(error["type"])
    if template is None:
        return Fault(pointer, error["msg"])
    return Fault(pointer, template.format(**error.get("ctx", {})))


def _pointer(location: Sequence[int | str]) -> str:
    """RFC 6901; a name that is not text as JSON knows it is shown with escapes."""
    shown = (part for part in location if part not in (AS_URL, AS_OBJECT))
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in shown)
    return "".join(f"/{part.encode(errors='backslashreplace').decode()}" for part in parts)
