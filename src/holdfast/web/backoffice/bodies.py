"""The bodies of the back office."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, NotRequired

from pydantic import (
    AfterValidator,
    PlainValidator,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
    with_config,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from holdfast.domain.layout import FLOORS, POSITIONS
from holdfast.domain.periods import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS
from holdfast.domain.project import NAME_LENGTH, SLUG_LENGTH, SLUG_PATTERN
from holdfast.domain.unit import CODE_LENGTH
from holdfast.web.checking import names_of
from holdfast.web.fields import STRICT, Bounds, number_schema, whole, within
from holdfast.web.times import TIME_MESSAGE, read_time


def _moment(value: Any) -> datetime:
    moment = read_time(value) if isinstance(value, str) and "T" in value else None
    if moment is None:
        raise PydanticCustomError("time", TIME_MESSAGE)
    return moment


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise PydanticCustomError("printable", "This must be printable text with no space at either end.")
    return text


_SECONDS = Bounds(Decimal("0.001"), Decimal(LONGEST_HOLD_SECONDS), 3)
_DAYS = Bounds(Decimal("0.00001"), Decimal(LONGEST_RESERVATION_DAYS), 6)
_FLOORS, _POSITIONS = (Bounds(Decimal(least), Decimal(most), 0) for least, most in (FLOORS, POSITIONS))

Moment = Annotated[
    datetime, PlainValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})
]
Seconds = Annotated[Decimal, within(_SECONDS), AfterValidator(float), number_schema(_SECONDS)]
Days = Annotated[Decimal, within(_DAYS), AfterValidator(float), number_schema(_DAYS)]
Floor = Annotated[Decimal, within(_FLOORS), AfterValidator(whole), number_schema(_FLOORS)]
Position = Annotated[Decimal, within(_POSITIONS), AfterValidator(whole), number_schema(_POSITIONS)]
Building = Annotated[str, StringConstraints(min_length=1, max_length=50), AfterValidator(_printable)]
ProjectName = Annotated[
    str,
    StringConstraints(min_length=NAME_LENGTH[0], max_length=NAME_LENGTH[1]),
    AfterValidator(_printable),
]
Slug = Annotated[
    str, StringConstraints(min_length=SLUG_LENGTH[0], max_length=SLUG_LENGTH[1], pattern=SLUG_PATTERN)
]
Code = Annotated[str, StringConstraints(min_length=CODE_LENGTH[0], max_length=CODE_LENGTH[1])]


@with_config(STRICT)
class ExtensionBody(TypedDict, total=False):
    until: Moment


@with_config(STRICT)
class NewProjectBody(TypedDict):
    slug: Slug
    name: ProjectName


@with_config(STRICT)
class ProjectBody(TypedDict, total=False):
    name: ProjectName
    hold_seconds: Seconds | None
    reservation_days: Days | None


@with_config(STRICT)
class PlaceBody(TypedDict):
    code: Code
    building: Building | None
    floor: Floor | None
    position: Position | None
    guessed: NotRequired[bool]


@with_config(STRICT)
class LayoutBody(TypedDict):
    """A layout as it is read can be sent back: guesses that are not changed stay guesses."""

    units: list[PlaceBody]
    project_slug: NotRequired[str]


EXTENSION: TypeAdapter[Any] = TypeAdapter(ExtensionBody)
NEW_PROJECT: TypeAdapter[Any] = TypeAdapter(NewProjectBody)
PROJECT: TypeAdapter[Any] = TypeAdapter(ProjectBody)
LAYOUT: TypeAdapter[Any] = TypeAdapter(LayoutBody)
PLACE: TypeAdapter[Any] = TypeAdapter(PlaceBody)

EXTENSION_NAMES = names_of(ExtensionBody)
NEW_PROJECT_NAMES = names_of(NewProjectBody)
PROJECT_NAMES = names_of(ProjectBody)
LAYOUT_NAMES = names_of(LayoutBody)
PLACE_NAMES = names_of(PlaceBody)
