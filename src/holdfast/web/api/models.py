"""Response documents that several surfaces share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Annotated, Any, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta
from starlette.responses import Response

from holdfast.domain.audit import ActorKind
from holdfast.domain.booking import BookingStatus
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, revision
from holdfast.operations.bookings import FoundBooking
from holdfast.operations.documents import Document as Document
from holdfast.operations.documents import Time as Time
from holdfast.operations.write_path import WriteResult
from holdfast.web.json import Header, optional_time_text, time_text
from holdfast.web.pagination import TEXT_CURSOR, paginate
from holdfast.web.request import Request

Row = TypeVar("Row")
List = TypeVar("List", bound=Document)

Media = Annotated[Any, Meta(extra_json_schema={"$ref": "#/components/schemas/Media"})]
Changes = Annotated[Any, Meta(extra_json_schema={"type": "object"})]
"""Fields by their names, as the audit trail keeps them."""
Cursor = Annotated[str | None, "Asks for the next page; null on the last one."]

FIELD_TEXTS = {
    "id": "The unit's id.",
    "projectId": "The id of the project.",
    "code": "The unit's code: printable text in NFC with no space at either end. It is case-sensitive.",
    "type": "What kind of unit it is, in your words.",
    "areaSqm": "The area in square meters.",
    "priceSar": "The price in SAR.",
    "vatIncluded": "Whether the price includes VAT.",
    "vatRate": "The rate of VAT in percent.",
    "depositPercent": "The deposit in percent of the total.",
    "status": "The status of the unit.",
    "bedrooms": "The number of bedrooms.",
    "bathrooms": "The number of bathrooms.",
    "deliveryYear": "The year of the handover.",
    "floor": "The floor, 0 for the ground floor. Null: it is guessed from the code.",
    "description": "What the unit is like.",
    "images": "Pictures.",
    "files": "Floor plans and other files.",
    "holdExpiresAt": "When the current hold ends; null if there is none.",
    "createdAt": "When the unit was created.",
    "updatedAt": "When the unit last changed.",
    "projectName": "The name of the project.",
    "projectSlug": "The slug of the project.",
    "ref": "A short reference for people, issued once and never changed.",
}
"""Descriptions of the members of a unit, for every document that has them."""


class UnitDocument(Document):
    id: UUID
    project_id: UUID
    code: str
    type: str
    area_sqm: Decimal
    price_sar: Decimal
    vat_included: bool | None
    vat_rate: Decimal | None
    deposit_percent: Decimal | None
    status: Status
    bedrooms: int | None
    bathrooms: int | None
    delivery_year: int | None
    floor: int | None
    description: str | None
    images: tuple[Media, ...]
    files: tuple[Media, ...]
    hold_expires_at: Annotated[Time | None, "The end of the current hold."]
    created_at: Time
    updated_at: Time
    project_name: str
    project_slug: str
    ref: Annotated[str, "A short reference for people, issued once and never changed."]


class UnitListDocument(Document):
    units: list[UnitDocument]
    next_cursor: Cursor


class ProjectDocument(Document):
    id: UUID
    slug: str
    name: str
    created_at: Time


class ProjectListDocument(Document):
    projects: list[ProjectDocument]
    next_cursor: Cursor


class TermsDocument(Document):
    price_sar: Decimal
    vat_included: bool | None
    vat_rate: Decimal | None
    total_sar: Annotated[Decimal, "Price, plus VAT where the price does not include it."]
    deposit_percent: Decimal | None
    deposit_sar: Decimal


class BuyerDocument(Document):
    name: str
    email: str
    phone: str


class ActorDocument(Document):
    """Who did it."""

    kind: Annotated[
        ActorKind,
        "A key, staff, a buyer, the clock (an end that came), a payment system, or a "
        "command at the server's console.",
    ]
    id: Annotated[
        str | None,
        "The id of the key or the payment, the reference of the buyer's booking, or the address of staff.",
    ]
    name: Annotated[str | None, "The name of the key."]


class BookingDocument(Document):
    """A buyer's purchase of a unit, from hold to sale."""

    reference: str
    status: Annotated[
        BookingStatus,
        "`open` and `signed`: the unit is held. `lapsed`, `cancelled`, `refund-due` and "
        "`refunded`: the booking ended unsold; `refund-due` if a confirmed deposit must be refunded.",
    ]
    unit_code: str
    project_slug: str
    hold_expires_at: Annotated[Time | None, "When the hold ended or will end; null if there was none."]
    reserved_until: Annotated[
        Time | None,
        "When the reservation ends, or would have ended; null if there is none.",
    ]
    terms: Annotated[TermsDocument, "Frozen when the unit was held."]
    buyer: Annotated[BuyerDocument | None, "Null if unsigned, erased, or not for the key."]
    signed_at: Time | None
    deposit_confirmed_at: Time | None
    closed_at: Time | None
    buyer_erased_at: Time | None


def unit_document(unit: Unit, project: Project) -> UnitDocument:
    # On the path of every PUT, so by position; the status stands after the terms.
    fields = unit.fields
    return UnitDocument(
        unit.id, unit.project_id, unit.code, *fields[:6], unit.status, *fields[6:],  # type: ignore[arg-type]
        optional_time_text(unit.hold_expires_at), time_text(unit.created_at), time_text(unit.updated_at),
        project.name, project.slug, unit.ref,
    )  # fmt: skip


def etag_header(unit: Unit, project: Project) -> Header:
    return b"etag", f'"{revision(unit, project)}"'.encode()


def not_modified(request: Request, unit: Unit, project: Project) -> Response | None:
    """304 for a client that has this revision of the unit already."""
    if not request.has_revision(revision(unit, project)):
        return None
    return Response(status_code=304, headers={"etag": etag_header(unit, project)[1].decode()})


def changes(text: str | None) -> Changes | None:
    """Return changes as JSON, which is how the audit trail stores them."""
    return None if text is None else msgspec.Raw(text.encode())


def booking_document(source: FoundBooking | WriteResult) -> BookingDocument:
    booking = source.booking
    if isinstance(source, WriteResult):
        unit_code, project_slug = source.unit.code, source.project.slug
    else:
        unit_code, project_slug = source.unit_code, source.project_slug
    return BookingDocument.fill(
        booking,
        unit_code=unit_code,
        project_slug=project_slug,
        terms=TermsDocument.fill(booking.terms),
        buyer=None if booking.buyer is None else BuyerDocument.fill(booking.buyer),
    )


def page_document(
    kind: Callable[[list[Any], str | None], List],
    rows: Sequence[Row],
    limit: int,
    document_of: Callable[[Row], Document],
    cursor_of: Callable[[Row], str],
) -> List:
    """Return a page of a list; ``rows`` has one row more where there is a next page."""
    page, next_cursor = paginate(rows, limit, cursor_of)
    return kind([document_of(row) for row in page], next_cursor)


async def project_page(
    request: Request,
    kind: Callable[[list[Any], str | None], List],
    cursor: str,
    limit: int,
    document_of: Callable[[Project], Document],
) -> List:
    """Return a page of the projects that the key may use."""
    rows = await request.services.units.projects_page(request.key.project_slugs, cursor, limit)
    return page_document(kind, rows, limit, document_of, lambda project: TEXT_CURSOR.encode(project.slug))
