"""Units, and strategies that make them."""

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
MINUTE = timedelta(minutes=1)
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


def decimals(least: str, most: str, places: int) -> st.SearchStrategy[Decimal]:
    return st.decimals(Decimal(least), Decimal(most), places=places)


fields = st.builds(
    UnitFields,
    type=st.sampled_from(["apartment", "villa", "شقة"]),
    area_sqm=decimals("0.0001", "9999999.9999", 4),
    price_sar=decimals("0", "999999999999.99", 2),
    vat_included=st.none() | st.booleans(),
    vat_rate=st.none() | decimals("0", "100", 4),
    deposit_percent=st.none() | decimals("0", "100", 4),
    bedrooms=st.none() | st.integers(0, 999),
    bathrooms=st.none() | st.integers(0, 999),
    delivery_year=st.none() | st.integers(1900, 2200),
    floor=st.none() | st.integers(-9, 200),
    description=st.none() | st.text(max_size=20),
    images=st.lists(st.just("https://example.com/a.jpg"), max_size=2).map(tuple),
    files=st.just(()),
)


@st.composite
def units(draw: st.DrawFn) -> Unit:
    status = draw(st.sampled_from(Status))
    archived = status is Status.UNAVAILABLE and draw(st.booleans())
    ends_at = NOW + draw(st.integers(-300_000, 300_000)) * timedelta(milliseconds=1)
    return unit(
        status,
        draw(fields),
        archived=archived,
        hold_expires_at=ends_at if status is Status.HELD else None,
        reserved_until=ends_at if status is Status.RESERVED else None,
        version=draw(st.integers(1, 1000)),
    )
