"""The bodies of PUT and PATCH of a unit: the contract's table of fields.

``UnitReplacement`` is the one definition. Two readers follow from it: pydantic, which names every fault, and
a msgspec decoder for the bodies that have none, in a quarter of the time (docs/decisions/0011). The decoder
never refuses: what it does not take is read again by pydantic, so it may be narrower than the model and never
wider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import NoneType
from typing import Annotated, Any, ClassVar, NamedTuple, NotRequired, Required, get_args
from uuid import UUID

import msgspec
from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo
from typing_extensions import TypedDict

from holdfast.domain.decision import STATUS_MESSAGE
from holdfast.domain.errors import Fault, InvalidInput
from holdfast.domain.layout import FLOORS
from holdfast.domain.status import LOCKED, SettableStatus, Status
from holdfast.domain.unit import UnitFields, unit_id
from holdfast.web.api.bodies import Body, BodyModel, validated
from holdfast.web.fields import NO_NUL, STRICT, WEB_ADDRESS, Bounds, FieldError, canonical, check_text
from holdfast.web.json import LONGEST_NUMBER, camel_case, count_names, parse_json, read_json_text
from holdfast.web.request import Request

_OTHER_UNIT = "This is not the id of the addressed unit."
_OTHER_PROJECT = "This is not the id of the addressed project."
MAX_MEDIA = 100
LONGEST_URL = 2048
LONGEST_MEDIA_NAME = 500
PRICE = Bounds(Decimal(0), Decimal("999999999999.99"), 2)
AS_URL, AS_OBJECT = "<url>", "<object>"
"""The two forms of an element of images and files; pydantic names them in the place of a fault."""

Area = Annotated[Decimal, Bounds(Decimal(0), Decimal("9999999.9999"), 4, least_is_out=True)]
Price = Annotated[Decimal, PRICE]
Percentage = Annotated[Decimal, Bounds(Decimal(0), Decimal(100), 4)]
RoomCount = Annotated[Decimal, Bounds(Decimal(0), Decimal(999), 0)]
Year = Annotated[Decimal, Bounds(Decimal(1900), Decimal(2200), 0)]
Floor = Annotated[Decimal, Bounds(*map(Decimal, FLOORS), 0)]
TypeName = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NO_NUL)]
Description = Annotated[str, StringConstraints(max_length=10_000, pattern=NO_NUL)]
Url = Annotated[str, StringConstraints(max_length=LONGEST_URL, pattern=WEB_ADDRESS)]
MediaName = Annotated[str, StringConstraints(max_length=LONGEST_MEDIA_NAME, pattern=NO_NUL)]


class MediaObject(TypedDict):
    __pydantic_config__ = STRICT  # type: ignore[misc]

    url: Required[Url]
    name: NotRequired[MediaName | None]


MediaElement = Annotated[
    Annotated[Url, Tag(AS_URL)] | Annotated[MediaObject, Tag(AS_OBJECT)],
    Discriminator(lambda element: AS_OBJECT if isinstance(element, dict) else AS_URL),
    WithJsonSchema({"$ref": "#/components/schemas/Media"}),
]
MediaList = Annotated[list[MediaElement], Field(max_length=MAX_MEDIA), AfterValidator(tuple)]


def _check_status(value: Any) -> Any:
    """The names that only the service gives are told apart later, when the unit is known."""
    if value not in tuple(Status):
        raise FieldError(STATUS_MESSAGE)
    return value


StatusName = Annotated[
    Any,
    PlainValidator(_check_status),
    WithJsonSchema(
        {
            "allOf": [{"$ref": "#/components/schemas/SettableStatus"}],
            "description": "Whether the unit is on sale. It can be set only while no buyer has the unit.",
        }
    ),
]
SentBack = Annotated[
    Any, PlainValidator(check_text), WithJsonSchema({"description": "May be sent back; ignored."})
]
Identity = Annotated[
    Any, WithJsonSchema({"type": "string", "description": "May be sent back; must be the addressed unit's."})
]


class _UnitBody(BodyModel):
    """What PUT and PATCH have in common."""

    vat_included: bool | None = None
    vat_rate: Percentage | None = None
    deposit_percent: Percentage | None = None
    bedrooms: RoomCount | None = None
    bathrooms: RoomCount | None = None
    delivery_year: Year | None = None
    floor: Floor | None = None
    description: Description | None = None
    images: MediaList | None = Field(
        None, description="Pictures. When sent, they replace all that were there."
    )
    files: MediaList | None = Field(
        None, description="Floor plans and other files. When sent, they replace all that were there."
    )
    status: StatusName = None
    id: Identity = None
    code: Identity = None
    project_id: Identity = None
    project_slug: Identity = None
    hold_expires_at: SentBack = None
    created_at: SentBack = None
    updated_at: SentBack = None
    project_name: SentBack = None
    ref: SentBack = None


class UnitReplacement(_UnitBody):
    example: ClassVar[Any] = {
        "type": "3-bedroom apartment",
        "areaSqm": 148.6,
        "priceSar": 1299000,
        "vatIncluded": False,
        "vatRate": 15,
        "depositPercent": 10,
        "bedrooms": 3,
        "bathrooms": 3,
        "deliveryYear": 2027,
        "floor": 3,
        "description": "Corner apartment with a view of the garden",
        "images": ["https://media.example.com/a-0304/living-room.jpg"],
        "files": [{"url": "https://media.example.com/a-0304/plan.pdf", "name": "Floor plan"}],
    }

    type: TypeName
    area_sqm: Area
    price_sar: Price


class UnitPatch(_UnitBody):
    example: ClassVar[Any] = {"priceSar": 1275000, "description": None}

    type: TypeName = None  # type: ignore[assignment]
    area_sqm: Area = None  # type: ignore[assignment]
    price_sar: Price = None  # type: ignore[assignment]


_WRITTEN = frozenset(UnitFields._fields)
_MEDIA = ("images", "files")
_STATUS: dict[str | None, Status | None] = {None: None, **{str(status): status for status in Status}}


class UnitValues(NamedTuple):
    """A body without faults. ``fields`` has what was sent; what is cleared is None or ()."""

    fields: dict[str, Any]
    status: Status | None
    claimed_id: UUID | None
    claimed_project_id: UUID | None

    def replacement(self) -> UnitFields:
        return UnitFields(**self.fields)

    def check_claims(self, project_id: UUID, code: str) -> None:
        faults = self.false_claims(project_id, code)
        if faults:
            raise InvalidInput(with_status_fault(faults, self.status))

    def false_claims(self, project_id: UUID, code: str) -> list[Fault]:
        """What the body says of the ids must be so."""
        faults = []
        if self.claimed_project_id not in (None, project_id):
            faults.append(Fault("/projectId", _OTHER_PROJECT))
        if self.claimed_id is not None and self.claimed_id != unit_id(project_id, code):
            faults.append(Fault("/id", _OTHER_UNIT))
        return faults


class PlainUnit(NamedTuple):
    """What the decoder has read: a unit that leaves no doubt."""

    code: str | None
    fields: UnitFields
    status: Status | None

    def replacement(self) -> UnitFields:
        return self.fields

    def check_claims(self, project_id: UUID, code: str) -> None:
        """It makes none but its code."""


class UnitBody(Body):
    """The body of PUT or PATCH. That of a PUT is read by the decoder where it can be."""

    is_required = True

    def __init__(self, model: type[_UnitBody]) -> None:
        super().__init__()
        self.model: type[_UnitBody] = model

    async def read(
        self, request: Request, path: Sequence[Any], faults: list[Fault]
    ) -> UnitValues | PlainUnit | None:
        slug, code = path
        text = await read_json_text(request)
        if self.model is UnitReplacement:
            unit = read_plain_unit(text, count_names(text))
            if unit is not None and unit.code in (None, code):
                return unit
        parsed = parse_json(text)
        values = check_unit(self.model, parsed, slug, code)
        if isinstance(values, list):
            faults[:] = with_status_fault(faults + values, sent_status(parsed))
            return None
        faults[:] = with_status_fault(faults, values.status)
        return values


def check_unit(model: type[_UnitBody], parsed: Any, slug: str, code: str) -> UnitValues | list[Fault]:
    """Return the values of a parsed body, or every fault that it has."""
    body = validated(model, parsed)
    faults = body if isinstance(body, list) else []
    if type(parsed) is dict:
        faults += _address_faults(parsed, slug, code)
    if isinstance(body, list) or faults:
        return faults
    fields = {name: getattr(body, name) for name in body.model_fields_set & _WRITTEN}
    if model is UnitReplacement:
        fields = {name: getattr(body, name) for name in UnitFields._fields}
    for name in _MEDIA:
        if name in fields and fields[name] is None:
            fields[name] = ()
    status = _STATUS[body.status]
    return UnitValues(fields, status, _claimed(parsed, "id"), _claimed(parsed, "projectId"))


def sent_status(parsed: Any) -> Any:
    return parsed.get("status") if type(parsed) is dict else None


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


# The decoder for bodies without faults, made from the model.

_PLAIN_ADDRESS = r"^https?://[a-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9/._~%&=?+-]*)?\Z"
_PLAIN_LINKS = Annotated[
    list[Annotated[str, msgspec.Meta(max_length=LONGEST_URL, pattern=_PLAIN_ADDRESS)]],
    msgspec.Meta(max_length=MAX_MEDIA),
]


def _annotated(field: FieldInfo) -> tuple[Any, list[Any]]:
    """The type of a field where it is not null, and its metadata."""
    kind = next((one for one in get_args(field.annotation) if one is not NoneType), field.annotation)
    metadata = [*field.metadata, *getattr(kind, "__metadata__", ())]
    return getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind, metadata


def _bounds_of(field: FieldInfo) -> Bounds | None:
    return next((one for one in _annotated(field)[1] if isinstance(one, Bounds)), None)


def _plain_type(field: FieldInfo) -> Any:
    """The type by which msgspec reads a field; a decimal is checked by ``_decimal`` afterwards."""
    kind, metadata = _annotated(field)
    bounds = _bounds_of(field)
    if bounds is not None:
        whole = Annotated[int, msgspec.Meta(ge=int(bounds.least), le=int(bounds.most))]
        return Any if bounds.decimals else whole
    if kind is str:
        least = next((one.min_length for one in metadata if getattr(one, "min_length", None)), None)
        most = next((one.max_length for one in metadata if getattr(one, "max_length", None)), None)
        return Annotated[str, msgspec.Meta(min_length=least, max_length=most)]
    return bool if kind is bool else _PLAIN_LINKS


def _plain_unit_type() -> Any:
    fields: dict[str, Any] = {"code": NotRequired[str], "status": NotRequired[SettableStatus]}
    for name in UnitFields._fields:
        field = UnitReplacement.model_fields[name]
        kind = _plain_type(field)
        assert field.alias is not None
        fields[field.alias] = Required[kind] if field.is_required() else NotRequired[kind | None]
    return TypedDict("PlainUnit", fields)  # type: ignore[operator]


def _exact(text: str) -> Decimal:
    if len(text) > LONGEST_NUMBER:
        raise ValueError
    return Decimal(text)


_DECODE: Callable[[str], Mapping[str, Any]] = msgspec.json.Decoder(
    _plain_unit_type(), float_hook=_exact
).decode
_NAMES = [camel_case(name) for name in UnitFields._fields]
_DECIMALS = [
    (index, bounds, field.is_required())
    for index, field in enumerate(UnitReplacement.model_fields[name] for name in UnitFields._fields)
    if (bounds := _bounds_of(field)) and bounds.decimals
]
_MEDIA_INDEXES = [UnitFields._fields.index(name) for name in _MEDIA]


def read_plain_unit(text: str, names: int) -> PlainUnit | None:
    """Return the unit, if it leaves no doubt; ``names`` are ``count_names`` this text."""
    if names < 0:
        return None
    try:
        sent = _DECODE(text)
        if len(sent) != names:
            return None
        fields: list[Any] = list(map(sent.get, _NAMES))
        for index, bounds, is_required in _DECIMALS:
            if fields[index] is not None or is_required:
                fields[index] = _decimal(fields[index], bounds)
        for index in _MEDIA_INDEXES:
            fields[index] = tuple(fields[index] or ())
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return PlainUnit(sent.get("code"), UnitFields._make(fields), _STATUS[sent.get("status")])


def _decimal(value: Any, bounds: Bounds) -> Decimal:
    if type(value) is int:
        number = Decimal(value)
    elif type(value) is Decimal and value == round(value, bounds.decimals):
        number = canonical(value)
    else:
        raise ValueError
    if not bounds.least <= number <= bounds.most or (bounds.least_is_out and number == bounds.least):
        raise ValueError
    return number
