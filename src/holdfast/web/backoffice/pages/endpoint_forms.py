"""The form of an endpoint: as it is filled in, and what it chooses."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from holdfast.domain.endpoint import DEFAULT_IN_FLIGHT, Endpoint
from holdfast.domain.errors import Fault, InvalidInput
from holdfast.domain.event import EventName
from holdfast.operations.endpoints import Endpoints
from holdfast.web.api.backoffice.endpoints import NewEndpoint
from holdfast.web.api.bodies import validated
from holdfast.web.backoffice.visits import Visit
from holdfast.web.html.forms import Form
from holdfast.web.html.translation import translate

LONGEST_NUMBER = 9


class Typed(NamedTuple):
    url: str = ""
    description: str = ""
    events: Sequence[str] = tuple(EventName)
    is_limited: bool = False
    projects: Sequence[str] = ()
    is_ordered: bool = False
    max_in_flight: str = str(DEFAULT_IN_FLIGHT)


def typed_in(form: Form) -> Typed:
    return Typed(
        form.text("url"),
        form.text("description"),
        form.all("event"),
        form.text("reach") == "some",
        form.all("project"),
        form.has("ordered"),
        form.text("maxInFlight"),
    )


def typed_of(endpoint: Endpoint) -> Typed:
    wishes = endpoint.wishes
    return Typed(
        wishes.url,
        wishes.description,
        [*wishes.events],
        wishes.project_slugs is not None,
        [*(wishes.project_slugs or ())],
        wishes.ordered,
        str(wishes.max_in_flight),
    )


async def chosen(typed: Typed, subscribing: Endpoints) -> dict[str, Any]:
    """Return the choices by their names in the domain, or raise every fault at once."""
    body = validated(NewEndpoint, _body(typed))
    if not isinstance(body, list):
        choices = body.sent()
        choices["project_slugs"] = choices.pop("projects")
        return choices
    if not any(fault.pointer == "/url" for fault in body):
        message = await subscribing.url_fault(typed.url)
        body += [] if message is None else [Fault("/url", message)]
    raise InvalidInput(body)


def told(visit: Visit, refusal: InvalidInput, typed: Typed) -> dict[str, str]:
    """What is wrong, by the field that it stands beside."""
    faults = {_field(fault): translate(fault.message, visit.language) for fault in reversed(refusal.faults)}
    if not typed.events:
        faults["events"] = visit._("Choose at least one event.")
    if typed.is_limited and not typed.projects:
        faults["projects"] = visit._("Choose at least one project.")
    if not typed.url:
        faults["url"] = visit._("An endpoint needs a URL.")
    return faults


def _body(typed: Typed) -> dict[str, Any]:
    number = typed.max_in_flight
    is_number = number.isascii() and number.isdigit() and len(number) <= LONGEST_NUMBER
    return {
        "url": typed.url,
        "description": typed.description,
        "events": [*typed.events],
        "projects": [*typed.projects] if typed.is_limited else None,
        "ordered": typed.is_ordered,
        "maxInFlight": Decimal(number) if is_number else number,
    }


def _field(fault: Fault) -> str:
    return fault.pointer.split("/")[1]
