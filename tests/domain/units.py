"""Units, the snapshots in which commands find them, and strategies that make them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from holdfast.domain.decision import UnitSnapshot
from holdfast.domain.project import Project
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, UnitFields

NOW = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
MILLISECOND, MINUTE, DAY = timedelta(milliseconds=1), timedelta(minutes=1), timedelta(days=1)
PROJECT = Project(UUID(int=1), "palm-court", "Palm Court", 1, NOW - 10 * MINUTE)
FIELDS = UnitFields("apartment", Decimal("120.5"), Decimal(1000000), True, Decimal(15), Decimal(10))


def unit(status: Status = Status.AVAILABLE, fields: UnitFields = FIELDS, **others: Any) -> Unit:
    values: dict[str, Any] = {
        "id": UUID(int=2),
        "project_id": PROJECT.id,
        "code": "A-101",
        "ref": "U-100001",
        "fields": fields,
        "status": status,
        "archived": False,
        "hold_expires_at": NOW + MINUTE if status is Status.HELD else None,
        "reserved_until": NOW + MINUTE if status is Status.RESERVED else None,
        "version": 7,
        "created_at": NOW - 5 * MINUTE,
        "updated_at": NOW - 4 * MINUTE,
    }
    return Unit(**(values | others))


def snapshot(found: Unit | None) -> UnitSnapshot:
    return UnitSnapshot(PROJECT, found)


_MEDIA = ("https://example.com/a.jpg",)
_OTHER = UnitFields(
    "شقة", Decimal("0.0001"), Decimal(0), None, None, Decimal(0), 0, 3, 2030, -1, "", _MEDIA, _MEDIA
)
fields = st.sets(st.sampled_from(UnitFields._fields)).map(
    lambda names: FIELDS._replace(**{name: getattr(_OTHER, name) for name in names})
)


@st.composite
def units(draw: st.DrawFn) -> Unit:
    status = draw(st.sampled_from(Status))
    ends_at = NOW + draw(st.integers(-300_000, 300_000)) * MILLISECOND
    return unit(
        status,
        draw(fields),
        archived=status is Status.UNAVAILABLE and draw(st.booleans()),
        hold_expires_at=ends_at if status is Status.HELD else None,
        reserved_until=ends_at if status is Status.RESERVED else None,
        version=draw(st.integers(1, 1000)),
    )
