"""Units on sale as listed for buyers, with their total price and first image."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

import asyncpg
import msgspec

from holdfast.domain.board import BoardUnit
from holdfast.domain.booking import Terms
from holdfast.domain.listing import BY_AREA, Listing, ListingCursor, ListingFacts, ListingOrder, UnitFilter
from holdfast.domain.unit import Unit
from holdfast.storage.boards import COLUMNS, IS_OVER, board_unit
from holdfast.storage.database import Connection, fetch_one

# Buyers do not see unavailable units. A unit with an expired hold is on sale as it was before.
_IS_ON_SALE = "status <> 'unavailable'"
_IS_FREE = f"(status = 'available' or {IS_OVER})"
# The same rule as domain.booking.Terms.total_sar; a test compares the two.
_TOTAL = """
    round(case when vat_included is false then price_sar * (100 + coalesce(vat_rate, 0)) / 100
        else price_sar end, 2)
"""
_TERMS = "vat_included, trim_scale(vat_rate)::text, trim_scale(deposit_percent)::text"
_LISTING = f"{COLUMNS}, {_TERMS}, bathrooms, (images -> 0)::text"
_LISTING_WITHOUT_IMAGE = f"{COLUMNS}, {_TERMS}, bathrooms, null"

_MATCHES = f"""
    project_id = $1 and {_IS_ON_SALE}
    and (not $2 or {_IS_FREE})
    and ($3::text is null or type = $3)
    and ($4::smallint is null or bedrooms = $4)
    and ($5::numeric is null or {_TOTAL} >= $5) and ($6::numeric is null or {_TOTAL} <= $6)
    and ($7::numeric is null or area_sqm >= $7) and ($8::numeric is null or area_sqm <= $8)
"""
_PAGE = f"""
    select {_LISTING} from unit
    where {_MATCHES} and ($9::numeric is null or ({{key}}, code) {{beyond}} ($9, $10::text))
        and ($12::text[] is null or code = any($12))
    order by {{key}} {{direction}}, code {{direction}} limit $11
"""
_MATCHING_CODES = f"select {_LISTING} from unit where {_MATCHES} and code = any($9::text[])"
_CODES = f"select code from unit where {_MATCHES} and ($10::text[] is null or code = any($10)) limit $9"

_BY_CODES = f"""
    select {_LISTING_WITHOUT_IMAGE} from unit
    where project_id = $1 and {_IS_ON_SALE} and code = any($2::text[])
"""
_SUMMARY = f"""
    select trim_scale(min({_TOTAL}) filter (where {_IS_FREE}))::text,
        trim_scale(min(area_sqm))::text, trim_scale(max(area_sqm))::text,
        (array_agg(distinct bedrooms order by bedrooms) filter (where bedrooms is not null))[1:$2],
        (array_agg(distinct type order by type))[1:$2],
        min(delivery_year), max(delivery_year)
    from unit where project_id = $1 and {_IS_ON_SALE}
"""
_MOST_CHOICES = 30

# In a huge project it is enough to compare some of the free units.
_MAX_COMPARED = 2000
_SIMILAR = f"""
    select {COLUMNS} from (
        select * from unit
        where project_id = $1 and id <> $2 and {_IS_FREE} and not archived
        limit {_MAX_COMPARED}
    ) as unit
    order by bedrooms is distinct from $3, type <> $4, abs(price_sar - $5::numeric), code
    limit $6
"""


async def list_page(
    connection: Connection,
    project_id: UUID,
    filters: UnitFilter,
    order: ListingOrder,
    after: ListingCursor | None,
    limit: int,
    codes: Sequence[str] | None,
) -> list[Listing]:
    """Return a page in the order of price or area; ``codes`` are those of the units to choose from."""
    cursor = after or ListingCursor(None, "")
    rows = await connection.fetch(
        _page_statement(order), project_id, *filters, cursor.value, cursor.code, limit, codes
    )
    return [_listing(row) for row in rows]


async def find_matching(
    connection: Connection, project_id: UUID, filters: UnitFilter, codes: Sequence[str]
) -> dict[str, Listing]:
    """Return those of the named units that match, by code."""
    rows = await connection.fetch(_MATCHING_CODES, project_id, *filters, codes)
    return {row[1]: _listing(row) for row in rows}


async def list_codes(
    connection: Connection, project_id: UUID, filters: UnitFilter, limit: int, codes: Sequence[str] | None
) -> list[str]:
    """Return the codes of units that match, in no order; ``codes`` are those of the units to choose from."""
    return [row[0] for row in await connection.fetch(_CODES, project_id, *filters, limit, codes)]


async def find_by_codes(connection: Connection, project_id: UUID, codes: Sequence[str]) -> list[Listing]:
    """Return listings without images."""
    return [_listing(row) for row in await connection.fetch(_BY_CODES, project_id, codes)]


async def summarize(connection: Connection, project_id: UUID) -> ListingFacts:
    free_from, least, most, bedrooms, types, first_year, last_year = await fetch_one(
        connection, _SUMMARY, project_id, _MOST_CHOICES
    )
    areas = None if least is None else (Decimal(least), Decimal(most))
    years = None if first_year is None else (first_year, last_year)
    return ListingFacts(free_from and Decimal(free_from), areas, bedrooms or [], types or [], years)


async def find_similar(connection: Connection, unit: Unit, limit: int) -> list[BoardUnit]:
    """Return free units: with as many bedrooms first, then of the same type, then the nearest in price."""
    fields = unit.fields
    rows = await connection.fetch(
        _SIMILAR, unit.project_id, unit.id, fields.bedrooms, fields.type, fields.price_sar, limit
    )
    return [board_unit(row) for row in rows]


def _page_statement(order: ListingOrder) -> str:
    key = "area_sqm" if order in BY_AREA else _TOTAL
    beyond, direction = ("<", "desc") if order.is_downward else (">", "asc")
    return _PAGE.format(key=key, beyond=beyond, direction=direction)


def _listing(row: asyncpg.Record) -> Listing:
    *shown, vat_included, vat_rate, deposit, bathrooms, image = row
    unit = board_unit(tuple(shown))
    terms = Terms(unit.price_sar, vat_included, vat_rate and Decimal(vat_rate), deposit and Decimal(deposit))
    return Listing(unit, terms, bathrooms, image and msgspec.json.decode(image))
