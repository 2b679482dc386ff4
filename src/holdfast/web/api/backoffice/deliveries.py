"""The delivery log: list, read and resend deliveries, recover failed ones, and reconcile with the feed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints
from starlette.responses import Response

from holdfast.domain.delivery import DeliveryFilter, DeliveryStatus, FailedDeliveryFilter
from holdfast.domain.endpoint import SENT_EVENTS
from holdfast.domain.errors import CursorExpired, EndpointRemoved, UnknownDelivery, UnknownEndpoint
from holdfast.domain.permissions import Permission
from holdfast.domain.unit import CODE_LENGTH, code_fault
from holdfast.operations import delivery_documents as documents
from holdfast.operations.deliveries import END, NO_CURSOR, START
from holdfast.operations.documents import Count
from holdfast.web import fields
from holdfast.web.api import parameters
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel
from holdfast.web.api.models import Cursor, Document, Time, page_document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.json import JsonResponse, optional_time_text, time_text
from holdfast.web.pagination import NUMBER_CURSOR, creation_cursor
from holdfast.web.request import Request

routes = ApiRoutes(PREFIX, "Webhooks", key_guard(Permission.SEE_WEBHOOKS))

SentEvents = Annotated[
    list[Annotated[str, fields.OneOf(SENT_EVENTS)]],
    Field(min_length=1, max_length=len(SENT_EVENTS), json_schema_extra={"uniqueItems": True}),
    AfterValidator(fields.check_each_once),
    fields.SORTED,
]
UnitCode = Annotated[
    str,
    StringConstraints(min_length=CODE_LENGTH[0], max_length=CODE_LENGTH[1]),
    AfterValidator(fields.checked_by(code_fault)),
    Field(json_schema_extra={"pattern": fields.PRINTABLE_PATTERN}),
]


class Recovery(BodyModel):
    example: ClassVar[Any] = {"since": "2026-11-14T09:30:00.000Z", "dryRun": True}

    since: fields.TimeField = Field(
        description="Deliveries that failed at this time or later. UTC without an offset."
    )
    until: fields.TimeField | None = Field(None, description="And before this time; null: up to now.")
    events: SentEvents | None = Field(
        None, description="Only deliveries of these events; null: of all, pings included."
    )
    unit_code: UnitCode | None = Field(None, description="Only deliveries of units with this code.")
    dry_run: bool = Field(False, description="Count them and send nothing.")


class DeliveryListDocument(Document):
    deliveries: list[documents.DeliveryDocument]
    next_cursor: Cursor


class RecoveredDocument(Document):
    """How many deliveries are sent again."""

    count: Count
    dry_run: Annotated[bool, "Whether they were counted only."]
    since: Time
    until: Time | None


class ReconciliationDocument(Document):
    """What became of the events of the feed that were for an endpoint. The numbers add up to `events`."""

    endpoint_id: UUID
    after: Annotated[str, "The cursor of the feed after which events were counted."]
    up_to: Annotated[str, "The cursor of the feed up to which events were counted."]
    events: Annotated[Count, "Events of the feed that were for this endpoint."]
    delivered: Count
    pending: Count
    failed: Count
    cancelled: Count
    forgotten: Annotated[Count, "Events whose deliveries ended too long ago to be in the log."]
    missing: Annotated[Count, "Events that have no delivery. It is always 0."]
    agrees: Annotated[bool, "Whether nothing is missing."]


@routes.get("/deliveries", summary="List deliveries", errors=(UnknownEndpoint,))
async def list_deliveries(
    request: Request,
    *,
    endpoint: Annotated[
        UUID | None,
        parameters.id_parameter(
            "Only deliveries of this endpoint, removed or not; 404 if there never was one for this key."
        ),
    ],
    event: Annotated[str | None, parameters.one_of(SENT_EVENTS, "Only of this event.")],
    unit_code: parameters.UnitCodeFilter,
    status: Annotated[
        DeliveryStatus | None, parameters.one_of(DeliveryStatus, "Only deliveries in this status.")
    ],
    code: Annotated[
        str | None,
        parameters.one_of(
            (*parameters.CODE_CLASSES, parameters.UNANSWERED),
            "Filter by the class of the last response; `none`: no response.",
        ),
    ],
    since: Annotated[
        datetime | None,
        parameters.time_parameter("Only deliveries made at this time or later. UTC without an offset."),
    ],
    until: Annotated[datetime | None, parameters.time_parameter("Only deliveries made before this time.")],
    cursor: parameters.TimeAndIdCursor,
    limit: parameters.Limit,
) -> DeliveryListDocument:
    """Latest first, including deliveries of removed endpoints. A key that is limited to projects lists only
    deliveries of endpoints that are limited to some of the same projects."""
    filters = DeliveryFilter(
        since=since or START,
        until=until or END,
        events=None if event is None else (event,),
        unit_code=unit_code,
        code_class=None if code is None else parameters.CODE_CLASSES.get(code),
        unanswered=True if code == parameters.UNANSWERED else None,
        status=status,
    )
    rows = await request.services.deliveries.page(
        endpoint, cursor or NO_CURSOR, filters, limit, request.key.project_slugs
    )
    return page_document(DeliveryListDocument, rows, limit, documents.delivery_document, creation_cursor)


@routes.get("/deliveries/{id}", summary="Read a delivery with its attempts", errors=(UnknownDelivery,))
async def get_delivery(request: Request, delivery_id: UUID) -> documents.DeliveryWithAttemptsDocument:
    """Every attempt with its request, its response, and the duration of each phase."""
    found = await request.services.deliveries.find(delivery_id, request.key.project_slugs)
    return documents.delivery_with_attempts_document(*found)


@routes.post(
    "/deliveries/{id}/resend",
    summary="Send a delivery again",
    permission=Permission.MANAGE_WEBHOOKS,
    status=202,
    errors=(UnknownDelivery, EndpointRemoved),
)
async def resend_delivery(request: Request, delivery_id: UUID) -> documents.DeliveryWithAttemptsDocument:
    """Sends the delivery again at once, whatever its status: with the same id and body, in a new series of
    attempts. Receivers should ignore an id that they have already processed."""
    found = await request.services.deliveries.resend(delivery_id, request.author, request.key.project_slugs)
    return documents.delivery_with_attempts_document(*found)


@routes.post(
    "/endpoints/{id}/recover",
    summary="Send all failed deliveries again",
    permission=Permission.MANAGE_WEBHOOKS,
    responses={200: RecoveredDocument, 202: RecoveredDocument},
    errors=(UnknownEndpoint,),
)
async def recover_deliveries(
    request: Request,
    endpoint_id: UUID,
    body: Recovery,
    *,
    dry_run: Annotated[bool, parameters.flag("Count them and send nothing.")],
) -> Response:
    """Sends all deliveries of the endpoint that failed in a period again, each with the same id and body, in
    a new series of attempts. With `dryRun`, in the body or as a parameter, they are only counted, and the
    response is 200."""
    choices = body.sent()
    is_dry = choices.pop("dry_run", False) or dry_run
    selection = FailedDeliveryFilter(**choices)
    slugs = request.key.project_slugs
    await request.services.endpoints.find(endpoint_id, slugs)
    deliveries = request.services.deliveries
    if is_dry:
        count = await deliveries.count_failed(endpoint_id, selection, slugs)
    else:
        count = await deliveries.recover(endpoint_id, selection, request.author, slugs)
    document = RecoveredDocument(
        count, is_dry, time_text(selection.since), optional_time_text(selection.until)
    )
    return JsonResponse(document, 200 if is_dry else 202)


@routes.get(
    "/endpoints/{id}/reconciliation",
    summary="Reconcile deliveries with the feed",
    errors=(UnknownEndpoint, CursorExpired),
)
async def get_reconciliation(
    request: Request,
    endpoint_id: UUID,
    *,
    after: Annotated[
        int | None, parameters.feed_cursor("A cursor of the event feed: only events after it are counted.")
    ],
) -> ReconciliationDocument:
    """Counts how many of the endpoint's events were delivered, are pending, have failed or were cancelled.
    The numbers add up to `events`."""
    slugs = request.key.project_slugs
    await request.services.endpoints.find(endpoint_id, slugs)
    found = await request.services.deliveries.reconcile(endpoint_id, after, slugs)
    return ReconciliationDocument(
        endpoint_id=endpoint_id,
        after=NUMBER_CURSOR.encode(found.after),
        up_to=NUMBER_CURSOR.encode(found.upto),
        **found.counts._asdict(),
        agrees=found.counts.missing == 0,
    )
