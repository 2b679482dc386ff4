"""Which deliveries are asked for, read from a query and written into one. A wrong filter filters nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from holdfast.domain.delivery import DeliveryStatus
from holdfast.domain.endpoint import SENT_EVENTS
from holdfast.domain.unit import code_fault
from holdfast.operations.deliveries import BEHIND_ALL, END, START, Filters
from holdfast.web.api.parameters import CODE_CLASSES, UNANSWERED, read_id
from holdfast.web.backoffice.visits import Visit
from holdfast.web.cursors import read_moment_and_id_cursor
from holdfast.web.html.forms import Form
from holdfast.web.html.language import Language

NAMES = ("endpoint", "event", "unit", "status", "code", "since", "until")
CODES = (*CODE_CLASSES, UNANSWERED)


class AskedFor(NamedTuple):
    endpoint_id: UUID | None
    filters: Filters
    before: tuple[datetime, UUID]
    chosen: dict[str, str]
    """The filters that filter, as they stand in the query."""

    @property
    def is_newest(self) -> bool:
        """Whether it is the page that grows."""
        return self.before == BEHIND_ALL and self.filters.until == END

    def address(self, path: str, **more: str) -> str:
        query = urlencode({**self.chosen, **more})
        return f"{path}?{query}" if query else path


def asked_for(visit: Visit) -> AskedFor:
    sent = visit.query
    event, status, code = sent.text("event"), sent.text("status"), sent.text("code")
    since, until = moment_of(sent, "since", visit.language), moment_of(sent, "until", visit.language)
    unit = sent.text("unit")
    unit_code = None if not unit or code_fault(unit, "/unit") else unit
    filters = Filters(
        since=since or START,
        until=until or END,
        events=(event,) if event in SENT_EVENTS else None,
        unit_code=unit_code,
        code_class=CODE_CLASSES.get(code),
        unanswered=True if code == UNANSWERED else None,
        status=DeliveryStatus(status) if status in tuple(DeliveryStatus) else None,
    )
    endpoint_id = read_id(sent.text("endpoint"))
    valid = {
        "endpoint": endpoint_id is not None,
        "event": filters.events is not None,
        "unit": unit_code is not None,
        "status": filters.status is not None,
        "code": code in CODES,
        "since": since is not None,
        "until": until is not None,
    }
    chosen = {name: sent.text(name) for name in NAMES if valid[name]}
    return AskedFor(endpoint_id, filters, _cursor(sent), chosen)


def moment_of(sent: Form, name: str, language: Language) -> datetime | None:
    """What a field for a date and time says, in the person's time zone."""
    try:
        return language.at(sent.text(name)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _cursor(sent: Form) -> tuple[datetime, UUID]:
    try:
        return read_moment_and_id_cursor(sent.text("cursor"))
    except ValueError:
        return BEHIND_ALL
