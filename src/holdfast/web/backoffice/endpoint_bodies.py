"""The bodies of endpoints: what a registrant chooses, and which failed deliveries are meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, WithJsonSchema, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from holdfast.domain.endpoint import IN_FLIGHT, LONGEST_DESCRIPTION, LONGEST_URL, PING
from holdfast.domain.event import EventName
from holdfast.domain.message import Message
from holdfast.domain.unit import CODE_LENGTH, code_fault
from holdfast.web.backoffice.bodies import Moment, Slug
from holdfast.web.checking import names_of
from holdfast.web.fields import NO_NUL, STRICT, Bounds, field_error, not_one_of, number_schema, whole, within

PROJECTS_AT_MOST = 1000
SENT = (*EventName, PING)
"""What a delivery may be of."""

_CAPS = Bounds(Decimal(IN_FLIGHT[0]), Decimal(IN_FLIGHT[1]), 0)


def _chosen_event(value: str) -> str:
    if value == PING:
        raise PydanticCustomError("ping", "A ping cannot be chosen: it goes to its endpoint in any case.")
    if value not in tuple(EventName):
        raise not_one_of(EventName)
    return value


def _sent_event(value: str) -> str:
    if value not in SENT:
        raise not_one_of(SENT)
    return value


def _code(value: str) -> str:
    fault = code_fault(value)
    if fault is not None:
        raise field_error(fault.message)
    return value


def each_once(values: list[str]) -> list[str]:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise field_error(Message("%(value)s stands twice in this list.", {"value": twice}))
    return values


def _in_order(values: Sequence[str]) -> tuple[EventName, ...]:
    """One order for one choice, so that the same again is the same."""
    return tuple(name for name in EventName if name in values)


def _sorted(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(values))


def _of_names(names: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": [*names]}


def _list(least: int, most: int) -> Any:
    return Field(min_length=least, max_length=most, json_schema_extra={"uniqueItems": True})


ChosenEvent = Annotated[str, AfterValidator(_chosen_event), WithJsonSchema(_of_names(EventName))]
Events = Annotated[
    list[ChosenEvent], _list(1, len(EventName)), AfterValidator(each_once), AfterValidator(_in_order)
]
SentEvent = Annotated[str, AfterValidator(_sent_event), WithJsonSchema(_of_names(SENT))]
SentEvents = Annotated[
    list[SentEvent], _list(1, len(SENT)), AfterValidator(each_once), AfterValidator(_sorted)
]
UnitCode = Annotated[
    str, StringConstraints(min_length=CODE_LENGTH[0], max_length=CODE_LENGTH[1]), AfterValidator(_code)
]
Projects = Annotated[
    list[Slug], _list(1, PROJECTS_AT_MOST), AfterValidator(each_once), AfterValidator(_sorted)
]
Url = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL, pattern=NO_NUL)]
Description = Annotated[str, StringConstraints(max_length=LONGEST_DESCRIPTION, pattern=NO_NUL)]
Cap = Annotated[Decimal, within(_CAPS), AfterValidator(whole), number_schema(_CAPS)]


@with_config(STRICT)
class NewEndpointBody(TypedDict):
    url: Url
    description: NotRequired[Description]
    events: NotRequired[Events]
    projects: NotRequired[Projects | None]
    paused: NotRequired[bool]
    ordered: NotRequired[bool]
    max_in_flight: NotRequired[Cap]


@with_config(STRICT)
class EndpointBody(TypedDict, total=False):
    url: Url
    description: Description
    events: Events
    projects: Projects | None
    paused: bool
    ordered: bool
    max_in_flight: Cap


@with_config(STRICT)
class RecoveryBody(TypedDict):
    since: Moment
    until: NotRequired[Moment | None]
    events: NotRequired[SentEvents | None]
    unit_code: NotRequired[UnitCode | None]
    dry_run: NotRequired[bool]


NEW_ENDPOINT: TypeAdapter[Any] = TypeAdapter(NewEndpointBody)
ENDPOINT: TypeAdapter[Any] = TypeAdapter(EndpointBody)
RECOVERY: TypeAdapter[Any] = TypeAdapter(RecoveryBody)

NEW_ENDPOINT_NAMES = names_of(NewEndpointBody)
ENDPOINT_NAMES = names_of(EndpointBody)
RECOVERY_NAMES = names_of(RecoveryBody)
