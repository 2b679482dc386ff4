"""The log of e-mail to buyers."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from msgspec import Meta

from holdfast.domain.email import EmailKind, EmailStatus
from holdfast.domain.permissions import Permission
from holdfast.operations.documents import Count
from holdfast.web.api import parameters
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.models import Cursor, Document, Time, page_document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.pagination import creation_cursor
from holdfast.web.request import Request

routes = ApiRoutes(PREFIX, "Bookings", key_guard(Permission.SEE_BOOKINGS))


class EmailDocument(Document):
    """An e-mail to a buyer."""

    id: UUID
    kind: EmailKind
    status: Annotated[
        EmailStatus, Meta(description="`suppressed`: it was not sent, and `lastError` says why.")
    ]
    recipient: Annotated[str | None, Meta(description="Null if the buyer's personal data were erased.")]
    booking_reference: str
    project_slug: str
    attempts: Count
    last_error: Annotated[str | None, Meta(description="Of the last attempt; null if it succeeded.")]
    created_at: Time
    next_attempt_at: Annotated[Time | None, Meta(description="Null unless the e-mail is `queued`.")]
    ended_at: Annotated[Time | None, Meta(description="When it was sent or given up.")]


class EmailListDocument(Document):
    emails: list[EmailDocument]
    next_cursor: Cursor


@routes.get("/emails", summary="List e-mail to buyers")
async def list_emails(
    request: Request,
    *,
    status: Annotated[EmailStatus | None, parameters.one_of(EmailStatus, "Only e-mail in this status.")],
    cursor: parameters.TimeAndIdCursor,
    limit: parameters.Limit,
) -> EmailListDocument:
    """The latest first. A key that is limited to projects sees only theirs. Empty unless e-mail is set up."""
    rows = await request.services.bookings.emails_page(cursor, status, request.key.project_slugs, limit)
    return page_document(EmailListDocument, rows, limit, EmailDocument.fill, creation_cursor)
