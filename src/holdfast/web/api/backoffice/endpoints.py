"""Webhook endpoints: register, change, ping and remove them, and rotate their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from starlette.responses import Response

from holdfast.domain.api_key import Key
from holdfast.domain.endpoint import (
    DEFAULT_IN_FLIGHT,
    LONGEST_DESCRIPTION,
    MAX_IN_FLIGHT,
    MIN_IN_FLIGHT,
    EndpointConfig,
    IssuedSecret,
)
from holdfast.domain.endpoint_url import LONGEST_URL
from holdfast.domain.errors import Fault, UnknownEndpoint, UnknownProject
from holdfast.domain.event import PING, EventName
from holdfast.domain.permissions import Permission
from holdfast.operations.webhook_documents import (
    DeliveryWithAttemptsDocument,
    EndpointDocument,
    EndpointWithSecretDocument,
    delivery_with_attempts_document,
    endpoint_document,
    endpoint_with_secret_document,
)
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel, ModelBody
from holdfast.web.api.models import Cursor, Document, page_response
from holdfast.web.api.parameters import LIMIT, TIME_AND_ID
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.fields import (
    LEFT_OUT,
    NO_NUL,
    UNPRINTABLE,
    Bounds,
    FieldError,
    OneOf,
    ProjectSlugs,
    check_each_once,
)
from holdfast.web.json import NO_STORE, JsonResponse, read_json
from holdfast.web.pagination import creation_cursor
from holdfast.web.request import Request

ENDPOINT_URL_PATTERN = rf"^[Hh][Tt][Tt][Pp][Ss]?://[^ /?#@\\{UNPRINTABLE}]+([/?][^ #\\{UNPRINTABLE}]*)?$"
"""For the OpenAPI document. The server says more precisely what is wrong with a URL."""

_IN_FLIGHT = Bounds(Decimal(MIN_IN_FLIGHT), Decimal(MAX_IN_FLIGHT), 0)
_URL = "/url"

routes = ApiRoutes(PREFIX, "Webhooks")


def _reject_ping(value: str) -> str:
    if value == PING:
        raise FieldError("A ping cannot be chosen: it goes to its endpoint in any case.")
    return value


def _sorted_events(values: Sequence[str]) -> tuple[EventName, ...]:
    """One order for one choice, so that the same again is the same."""
    return tuple(name for name in EventName if name in values)


ChosenEvent = Annotated[str, OneOf(EventName), BeforeValidator(_reject_ping)]
Events = Annotated[
    list[ChosenEvent],
    Field(
        min_length=1,
        max_length=len(EventName),
        json_schema_extra={"uniqueItems": True},
        description="The events that it receives. A ping goes to its endpoint in any case.",
    ),
    AfterValidator(check_each_once),
    AfterValidator(_sorted_events),
]
Url = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_URL, pattern=NO_NUL),
    Field(
        json_schema_extra={"pattern": ENDPOINT_URL_PATTERN},
        description="Where events are sent: https, without a user name or password. Its addresses must be "
        "public unless the server's settings allow others; where they do, http is allowed as well.",
    ),
]
Description = Annotated[
    str,
    StringConstraints(max_length=LONGEST_DESCRIPTION, pattern=NO_NUL),
    Field(description="What the endpoint is for, in your words."),
]
Projects = Annotated[
    ProjectSlugs | None,
    Field(
        description="The slugs of the projects whose events it receives; null for every project, future ones "
        "included. For a key that is limited to projects, null stands for those."
    ),
]
Paused = Annotated[bool, Field(description="Keep events and send nothing until it is resumed.")]
Ordered = Annotated[
    bool,
    Field(
        description="A later event of a unit waits until the earlier one was delivered, has failed or was "
        "cancelled. Otherwise only first attempts keep the order of a unit's events."
    ),
]
MaxInFlight = Annotated[
    Decimal,
    _IN_FLIGHT,
    Field(description="How many attempts may run at the same time, over all workers."),
]


class NewEndpoint(BodyModel):
    example: ClassVar[Any] = {
        "url": "https://erp.example.com/hooks/holdfast",
        "description": "ERP",
        "events": ["unit.reserved", "unit.sold"],
    }

    url: Url
    description: Description = ""
    events: Events = Field([*EventName])
    projects: Projects = None
    paused: Paused = False
    ordered: Ordered = False
    max_in_flight: MaxInFlight = DEFAULT_IN_FLIGHT  # type: ignore[assignment]


class EndpointChange(BodyModel):
    example: ClassVar[Any] = {"paused": True}

    url: Url = LEFT_OUT
    description: Description = LEFT_OUT
    events: Events = LEFT_OUT
    projects: Projects = LEFT_OUT
    paused: Paused = LEFT_OUT
    ordered: Ordered = LEFT_OUT
    max_in_flight: MaxInFlight = LEFT_OUT


class EndpointBody(ModelBody):
    """Adds what is wrong with the URL to the other faults. Without others, saving the endpoint finds it."""

    async def read(self, request: Request, path: Sequence[Any], faults: list[Fault]) -> Any:
        parsed = await read_json(request, self.limit)
        body = self.check(parsed, faults)
        if faults or _other_projects(body, request.key):
            faults += await _url_faults(request, parsed, faults)
        return body


class EndpointListDocument(Document):
    endpoints: list[EndpointDocument]
    next_cursor: Cursor


@routes.get(
    "/endpoints",
    summary="List endpoints",
    permission=Permission.SEE_WEBHOOKS,
    query=(TIME_AND_ID, LIMIT),
    responses={200: EndpointListDocument},
)
async def list_endpoints(request: Request, *, cursor: tuple[datetime, UUID] | None, limit: int) -> Response:
    """The oldest first. A key that is limited to projects lists endpoints that are limited to some of
    them."""
    rows = await request.services.endpoints.page(cursor, request.key.project_slugs, limit)
    return page_response(EndpointListDocument, rows, limit, endpoint_document, creation_cursor)


@routes.post(
    "/endpoints",
    summary="Register an endpoint",
    permission=Permission.MANAGE_WEBHOOKS,
    body=EndpointBody(NewEndpoint),
    responses={201: Annotated[EndpointWithSecretDocument, NO_STORE]},
    errors=(UnknownProject,),
)
async def add_endpoint(request: Request, body: NewEndpoint) -> Response:
    """Returns the signing secret, this once: keep it as you keep a password. From the next change of a unit
    on, its events are sent there, signed, and retried when they fail."""
    choices = {"project_slugs": request.key.project_slugs, **_choices(body, request.key)}
    issued = await request.services.endpoints.add(EndpointConfig(**choices), request.author)
    return _secret_response(issued, 201)


@routes.get(
    "/endpoints/{id}",
    summary="Read an endpoint",
    permission=Permission.SEE_WEBHOOKS,
    responses={200: EndpointDocument},
    errors=(UnknownEndpoint,),
)
async def get_endpoint(request: Request, endpoint_id: UUID) -> Response:
    """The endpoint without its secret."""
    found = await request.services.endpoints.find(endpoint_id, request.key.project_slugs)
    return JsonResponse(endpoint_document(found))


@routes.patch(
    "/endpoints/{id}",
    summary="Change an endpoint",
    permission=Permission.MANAGE_WEBHOOKS,
    body=EndpointBody(EndpointChange),
    responses={200: EndpointDocument},
    errors=(UnknownEndpoint, UnknownProject),
)
async def change_endpoint(request: Request, endpoint_id: UUID, body: EndpointChange) -> Response:
    """Only fields that are sent change; sending the same again changes nothing. Queued deliveries of an event
    that is no longer chosen are cancelled, and the log says why. Queued deliveries go to the new URL, if it
    changes."""
    changed = await request.services.endpoints.change(
        endpoint_id, _choices(body, request.key), request.author, request.key.project_slugs
    )
    return JsonResponse(endpoint_document(changed))


@routes.delete(
    "/endpoints/{id}",
    summary="Remove an endpoint",
    permission=Permission.MANAGE_WEBHOOKS,
    responses={204: None},
    errors=(UnknownEndpoint,),
)
async def remove_endpoint(request: Request, endpoint_id: UUID) -> Response:
    """Nothing more is sent to it, and queued deliveries are cancelled. The log keeps what was sent."""
    await request.services.endpoints.remove(endpoint_id, request.author, request.key.project_slugs)
    return Response(status_code=204)


@routes.post(
    "/endpoints/{id}/rotate-secret",
    summary="Rotate the secret of an endpoint",
    permission=Permission.MANAGE_WEBHOOKS,
    responses={200: Annotated[EndpointWithSecretDocument, NO_STORE]},
    errors=(UnknownEndpoint,),
)
async def rotate_secret(request: Request, endpoint_id: UUID) -> Response:
    """Returns a new signing secret, this once. Every attempt from now on is signed with it, those of queued
    deliveries included. The old secret signs nothing more."""
    issued = await request.services.endpoints.rotate(endpoint_id, request.author, request.key.project_slugs)
    return _secret_response(issued, 200)


@routes.post(
    "/endpoints/{id}/ping",
    summary="Send a ping",
    permission=Permission.MANAGE_WEBHOOKS,
    responses={202: DeliveryWithAttemptsDocument},
    errors=(UnknownEndpoint,),
)
async def ping_endpoint(request: Request, endpoint_id: UUID) -> Response:
    """Sends a `ping` to the endpoint, whatever events it chose: signed, retried and logged as every other
    delivery. Read the delivery by its `id` to see what became of it."""
    made = await request.services.endpoints.ping(endpoint_id, request.author, request.key.project_slugs)
    return JsonResponse(delivery_with_attempts_document(made, ()), 202)


def _choices(body: NewEndpoint | EndpointChange, key: Key) -> dict[str, Any]:
    """The fields that were sent, by their names in the domain and within the key's projects."""
    others = _other_projects(body, key)
    if others:
        raise UnknownProject(others[0])
    choices = body.sent()
    if "projects" in choices:
        choices["project_slugs"] = choices.pop("projects") or key.project_slugs
    return choices


def _other_projects(body: NewEndpoint | EndpointChange, key: Key) -> list[str]:
    return [slug for slug in body.projects or () if not key.may_use(slug)]


async def _url_faults(request: Request, sent: Any, faults: Sequence[Fault]) -> list[Fault]:
    """Return the fault of a URL whose form is right."""
    url = sent.get("url") if isinstance(sent, dict) else None
    if not isinstance(url, str) or any(fault.pointer == _URL for fault in faults):
        return []
    message = await request.services.endpoints.find_url_error(url)
    return [] if message is None else [Fault(_URL, message)]


def _secret_response(issued: IssuedSecret, status: int) -> Response:
    return JsonResponse(endpoint_with_secret_document(issued), status, (NO_STORE,))
