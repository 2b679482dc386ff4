"""The delivery log: list, read and resend deliveries, recover failed ones, and reconcile with the feed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar
from uuid import UUID

from msgspec import Meta
from pydantic import AfterValidator, Field, StringConstraints
from starlette.responses import Response

from holdfast.domain.delivery import DeliveryFilter, DeliveryStatus, FailedDeliveryFilter
from holdfast.domain.endpoint import SENT_EVENTS
from holdfast.domain.errors import CursorExpired, EndpointRemoved, UnknownDelivery, UnknownEndpoint
from holdfast.domain.permissions import Permission
from holdfast.domain.unit import CODE_LENGTH, code_fault
from holdfast.operations.documents import Count
from holdfast.operations.webhook_documents import (
    DeliveryDocument,
    DeliveryWithAttemptsDocument,
    delivery_document,
    delivery_with_attempts_document,
)
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel
from holdfast.web.api.models import Cursor, Document, Time, page_response
from holdfast.web.api.parameters import (
    CODE_CLASS,
    CODE_CLASSES,
    DELIVERY_STATUS,
    EVENT,
    LIMIT,
    TIME_AND_ID,
    UNANSWERED,
    UNIT_CODE,
    feed_cursor,
    flag,
    id_parameter,
    time_parameter,
)
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.fields import (
    PRINTABLE_PATTERN,
    OneOf,
    TimeField,
    as_sorted_tuple,
    check_each_once,
    checked_by,
)
from holdfast.web.json import JsonResponse, optional_time_text, time_text
from holdfast.web.pagination import NUMBER_CURSOR, creation_cursor
from holdfast.web.request import Request

_START, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_FIRST_PAGE = (_END, UUID(int=2**128 - 1))

routes = ApiRoutes(PREFIX, "Webhooks")


SentEvents = Annotated[
    list[Annotated[str, OneOf(SENT_EVENTS)]],
    Field(min_length=1, max_length=len(SENT_EVENTS), json_schema_extra={"uniqueItems": True}),
    AfterValidator(check_each_once),
    AfterValidator(as_sorted_tuple),
]
UnitCode = Annotated[
    str,
    StringConstraints(min_length=CODE_LENGTH[0], max_length=CODE_LENGTH[1]),
    AfterValidator(checked_by(code_fault)),
    Field(json_schema_extra={"pattern": PRINTABLE_PATTERN}),
]


class Recovery(BodyModel):
    example: ClassVar[Any] = {"since": "2026-11-14T09:30:00.000Z", "dryRun": True}

    since: TimeField = Field(
        description="Deliveries that failed at this time or later. UTC without an offset."
    )
    until: TimeField | None = Field(None, description="And before this time; null: up to now.")
    events: SentEvents | None = Field(
        None, description="Only deliveries of these events; null: of all, pings included."
    )
    unit_code: UnitCode | None = Field(None, description="Only deliveries of units with this code.")
    dry_run: bool = Field(False, description="Count them and send nothing.")


class DeliveryListDocument(Document):
    deliveries: list[DeliveryDocument]
    next_cursor: Cursor


class RecoveredDocument(Document):
    """How many deliveries are sent again."""

    count: Count
    dry_run: Annotated[bool, Meta(description="Whether they were counted only.")]
    since: Time
    until: Time | None


class ReconciliationDocument(Document):
    """What became of the events of the feed that were for an endpoint. The numbers add up to `events`."""

    endpoint_id: UUID
    after: Annotated[str, Meta(description="The cursor of the feed after which events were counted.")]
    up_to: Annotated[str, Meta(description="The cursor of the feed up to which events were counted.")]
    events: Annotated[Count, Meta(description="Events of the feed that were for this endpoint.")]
    delivered: Count
    pending: Count
    failed: Count
    cancelled: Count
    forgotten: Annotated[
        Count, Meta(description="Events whose deliveries ended too long ago to be in the log.")
    ]
    missing: Annotated[Count, Meta(description="Events that have no delivery. It is always 0.")]
    agrees: Annotated[bool, Meta(description="Whether nothing is missing.")]


@routes.get(
    "/deliveries",
    summary="List deliveries",
    permission=Permission.SEE_WEBHOOKS,
    query=(
        id_parameter(
            "endpoint",
            "Only deliveries of this endpoint, removed or not; 404 if there never was one for this key.",
        ),
        EVENT,
        UNIT_CODE,
        DELIVERY_STATUS,
        CODE_CLASS,
        time_parameter("since", "Only deliveries made at this time or later. UTC without an offset."),
        time_parameter("until", "Only deliveries made before this time."),
        TIME_AND_ID,
        LIMIT,
    ),
    responses={200: DeliveryListDocument},
    errors=(UnknownEndpoint,),
)
async def list_deliveries(
    request: Request,
    *,
    endpoint: UUID | None,
    event: str | None,
    unit_code: str | None,
    status: DeliveryStatus | None,
    code: str | None,
    since: datetime | None,
    until: datetime | None,
    cursor: tuple[datetime, UUID] | None,
    limit: int,
) -> Response:
    """The latest first, those of removed endpoints included. A key that is limited to projects lists
    deliveries of endpoints that are limited to some of them."""
    filters = DeliveryFilter(
        since=since or _START,
        until=until or _END,
        events=None if event is None else (event,),
        unit_code=unit_code,
        code_class=None if code is None else CODE_CLASSES.get(code),
        unanswered=True if code == UNANSWERED else None,
        status=status,
    )
    rows = await request.services.deliveries.page(
        endpoint, cursor or _FIRST_PAGE, filters, limit, request.key.project_slugs
    )
    return page_response(DeliveryListDocument, rows, limit, delivery_document, creation_cursor)


@routes.get(
    "/deliveries/{id}",
    summary="Read a delivery with its attempts",
    permission=Permission.SEE_WEBHOOKS,
    responses={200: DeliveryWithAttemptsDocument},
    errors=(UnknownDelivery,),
)
async def get_delivery(request: Request, delivery_id: UUID) -> Response:
    """Every attempt with what was sent, what came back, and how long each phase took."""
    found = await request.services.deliveries.find(delivery_id, request.key.project_slugs)
    return JsonResponse(delivery_with_attempts_document(*found))


@routes.post(
    "/deliveries/{id}/resend",
    summary="Send a delivery again",
    permission=Permission.MANAGE_WEBHOOKS,
    responses={202: DeliveryWithAttemptsDocument},
    errors=(UnknownDelivery, EndpointRemoved),
)
async def resend_delivery(request: Request, delivery_id: UUID) -> Response:
    """Sends the delivery again at once, whatever became of it: the same id, the same body, a new series of
    attempts. Receivers should treat an id that they know as done."""
    found = await request.services.deliveries.resend(delivery_id, request.author, request.key.project_slugs)
    return JsonResponse(delivery_with_attempts_document(*found), 202)


@routes.post(
    "/endpoints/{id}/recover",
    summary="Send all failed deliveries again",
    permission=Permission.MANAGE_WEBHOOKS,
    body=Recovery,
    query=(flag("dryRun", "Count them and send nothing."),),
    responses={200: RecoveredDocument, 202: RecoveredDocument},
    errors=(UnknownEndpoint,),
)
async def recover_deliveries(
    request: Request, endpoint_id: UUID, body: Recovery, *, dry_run: bool
) -> Response:
    """Sends every delivery of the endpoint again that failed in a time, however many there are: each with the
    same id and the same body, as a new series of attempts. With `dryRun`, in the body or as a parameter, they
    are counted, nothing is sent, and the response is 200."""
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
    permission=Permission.SEE_WEBHOOKS,
    query=(feed_cursor("after", "A cursor of the event feed: only events after it are counted."),),
    responses={200: ReconciliationDocument},
    errors=(UnknownEndpoint, CursorExpired),
)
async def get_reconciliation(request: Request, endpoint_id: UUID, *, after: int | None) -> Response:
    """Counts, of the events that were for the endpoint, how many were delivered, are pending, have failed or
    were cancelled. The numbers add up to `events`."""
    slugs = request.key.project_slugs
    await request.services.endpoints.find(endpoint_id, slugs)
    found = await request.services.deliveries.reconcile(endpoint_id, after, slugs)
    document = ReconciliationDocument(
        endpoint_id=endpoint_id,
        after=NUMBER_CURSOR.encode(found.after),
        up_to=NUMBER_CURSOR.encode(found.upto),
        **found.counts._asdict(),
        agrees=found.counts.missing == 0,
    )
    return JsonResponse(document)
