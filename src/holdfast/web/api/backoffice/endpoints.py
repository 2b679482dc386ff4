"""Webhook endpoints: register, change, ping and remove them, and rotate their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from holdfast.domain import endpoint
from holdfast.domain.api_key import Key
from holdfast.domain.endpoint_url import LONGEST_URL
from holdfast.domain.errors import Fault, IdempotencyKeyUsed, UnknownEndpoint, UnknownProject
from holdfast.domain.event import PING, EventName
from holdfast.domain.permissions import Permission
from holdfast.operations import delivery_documents as documents
from holdfast.web import fields
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel, ModelBody
from holdfast.web.api.models import Cursor, Document, page_document
from holdfast.web.api.parameters import Limit, TimeAndIdCursor
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.json import read_json
from holdfast.web.pagination import creation_cursor
from holdfast.web.request import Request
from holdfast.web.visitors import IDEMPOTENCY_KEY, idempotent_id

ENDPOINT_URL_PATTERN = (
    rf"^[Hh][Tt][Tt][Pp][Ss]?://[^ /?#@\\{fields.UNPRINTABLE}]+([/?][^ #\\{fields.UNPRINTABLE}]*)?$"
)
"""For the OpenAPI document. The server says more precisely what is wrong with a URL."""

routes = ApiRoutes(PREFIX, "Webhooks", key_guard(Permission.MANAGE_WEBHOOKS))


def _reject_ping(value: str) -> str:
    if value == PING:
        raise fields.FieldError("A ping cannot be selected: it is always sent to its endpoint.")
    return value


ChosenEvent = Annotated[str, fields.OneOf(EventName), BeforeValidator(_reject_ping)]
Events = Annotated[
    list[ChosenEvent],
    Field(
        min_length=1,
        max_length=len(EventName),
        json_schema_extra={"uniqueItems": True},
        description="The events that it receives. A ping goes to its endpoint in any case.",
    ),
    AfterValidator(fields.check_each_once),
    # One order for one choice, so that the same again is the same.
    AfterValidator(lambda values: tuple(name for name in EventName if name in values)),
]
Url = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_URL, pattern=fields.NO_NUL),
    Field(
        json_schema_extra={"pattern": ENDPOINT_URL_PATTERN},
        description="Where events are sent: https, without a user name or password. Its addresses must be "
        "public unless the server's settings allow others; where they do, http is allowed as well.",
    ),
]
Description = Annotated[
    str,
    StringConstraints(max_length=endpoint.LONGEST_DESCRIPTION, pattern=fields.NO_NUL),
    Field(description="What the endpoint is for, in your words."),
]
Projects = Annotated[
    fields.ProjectSlugs | None,
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
    fields.Bounds(Decimal(endpoint.MIN_IN_FLIGHT), Decimal(endpoint.MAX_IN_FLIGHT), 0),
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
    max_in_flight: MaxInFlight = endpoint.DEFAULT_IN_FLIGHT  # type: ignore[assignment]


class EndpointChange(BodyModel):
    example: ClassVar[Any] = {"paused": True}

    url: Url = fields.LEFT_OUT
    description: Description = fields.LEFT_OUT
    events: Events = fields.LEFT_OUT
    projects: Projects = fields.LEFT_OUT
    paused: Paused = fields.LEFT_OUT
    ordered: Ordered = fields.LEFT_OUT
    max_in_flight: MaxInFlight = fields.LEFT_OUT


class EndpointBody(ModelBody):
    """Adds what is wrong with the URL to the other faults. Without others, saving the endpoint finds it."""

    async def read(self, request: Request, path: Sequence[Any], faults: list[Fault]) -> Any:
        parsed = await read_json(request, self.limit)
        body = self.check(parsed, faults)
        url = parsed.get("url") if isinstance(parsed, dict) else None
        if not isinstance(url, str) or any(fault.pointer == "/url" for fault in faults):
            return body
        if faults or _other_projects(body, request.key):
            message = await request.services.endpoints.find_url_error(url)
            faults += [] if message is None else [Fault("/url", message)]
        return body


class EndpointListDocument(Document):
    endpoints: list[documents.EndpointDocument]
    next_cursor: Cursor


@routes.get("/endpoints", summary="List endpoints", permission=Permission.SEE_WEBHOOKS)
async def list_endpoints(request: Request, *, cursor: TimeAndIdCursor, limit: Limit) -> EndpointListDocument:
    """Oldest first. A key that is limited to projects lists only endpoints that are limited to some of the
    same projects."""
    rows = await request.services.endpoints.page(cursor, request.key.project_slugs, limit)
    return page_document(EndpointListDocument, rows, limit, documents.endpoint_document, creation_cursor)


@routes.post(
    "/endpoints",
    summary="Register an endpoint",
    body=EndpointBody(NewEndpoint),
    status=201,
    headers=(IDEMPOTENCY_KEY,),
    errors=(UnknownProject, IdempotencyKeyUsed),
)
async def add_endpoint(request: Request, body: NewEndpoint) -> documents.EndpointWithSecretDocument:
    """Returns the signing secret. This is the only time that it is shown. From then on, each event is sent to
    the endpoint, signed, and retried if it fails.

    With an `Idempotency-Key`, repeated requests register one endpoint. The response is repeated for 60
    seconds; later, or for another body, it is 409 `idempotency-key-used` with the `id` of the endpoint."""
    choices = {"project_slugs": request.key.project_slugs, **_choices(body, request.key)}
    issued = await request.services.endpoints.add(
        endpoint.EndpointConfig(**choices), request.author, idempotent_id(request)
    )
    return documents.endpoint_with_secret_document(issued)


@routes.get(
    "/endpoints/{id}",
    summary="Read an endpoint",
    permission=Permission.SEE_WEBHOOKS,
    errors=(UnknownEndpoint,),
)
async def get_endpoint(request: Request, endpoint_id: UUID) -> documents.EndpointDocument:
    """The endpoint without its secret."""
    slugs = request.key.project_slugs
    return documents.endpoint_document(await request.services.endpoints.find(endpoint_id, slugs))


@routes.patch(
    "/endpoints/{id}",
    summary="Change an endpoint",
    body=EndpointBody(EndpointChange),
    errors=(UnknownEndpoint, UnknownProject),
)
async def change_endpoint(
    request: Request, endpoint_id: UUID, body: EndpointChange
) -> documents.EndpointDocument:
    """Changes only the fields that are sent. If an event is no longer selected, its queued deliveries are
    cancelled, and the log says why. If the URL changes, queued deliveries go to the new one."""
    changed = await request.services.endpoints.change(
        endpoint_id, _choices(body, request.key), request.author, request.key.project_slugs
    )
    return documents.endpoint_document(changed)


@routes.delete("/endpoints/{id}", summary="Remove an endpoint", errors=(UnknownEndpoint,))
async def remove_endpoint(request: Request, endpoint_id: UUID) -> None:
    """Nothing more is sent to it, and queued deliveries are cancelled. The log is kept."""
    await request.services.endpoints.remove(endpoint_id, request.author, request.key.project_slugs)


@routes.post(
    "/endpoints/{id}/rotate-secret", summary="Rotate the secret of an endpoint", errors=(UnknownEndpoint,)
)
async def rotate_secret(request: Request, endpoint_id: UUID) -> documents.EndpointWithSecretDocument:
    """Returns a new signing secret. This is the only time that it is shown. It signs every attempt from then
    on, including those of queued deliveries. The old secret is no longer used."""
    issued = await request.services.endpoints.rotate(endpoint_id, request.author, request.key.project_slugs)
    return documents.endpoint_with_secret_document(issued)


@routes.post("/endpoints/{id}/ping", summary="Send a ping", status=202, errors=(UnknownEndpoint,))
async def ping_endpoint(request: Request, endpoint_id: UUID) -> documents.DeliveryWithAttemptsDocument:
    """Sends a `ping` to the endpoint, whatever its events. It is signed, retried and logged like every
    delivery. Read the delivery by its `id` to see the result."""
    made = await request.services.endpoints.ping(endpoint_id, request.author, request.key.project_slugs)
    return documents.delivery_with_attempts_document(made, ())


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
