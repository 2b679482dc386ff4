"""Units as buyers look for them: those on sale, with what they cost and the first of their pictures."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from holdfast.domain.booking import Terms
from holdfast.domain.layout import BoardUnit
from holdfast.domain.listing import BY_AREA, Listing, ListingCursor, ListingFacts, ListingOrder, UnitFilter
from holdfast.domain.unit import Unit
from holdfast.storage.boards import COLUMNS, IS_OVER, board_unit
from holdfast.storage.database import Connection, fetch_one

# What is unavailable is nobody's business. A lapsed hold is on sale like the hold was.
_IS_ON_SALE = "status <> 'unavailable'"
_IS_FREE = f"(status = 'available' or {IS_OVER})"
# The same rule as domain.booking.Terms.total_sar; a test holds the two against each other.
_TOTAL = """
    round(case when vat_included is false then price_sar * (100 + coalesce(vat_rate, 0)) / 100
        else price_sar end, 2)
"""
_TERMS = "trim_scale(vat_rate)::text, vat_included, trim_scale(deposit_percent)::text, bathrooms"
_OFFER = f"{COLUMNS}, {_TERMS}, (images -> 0)::text"
_OFFER_UNSEEN = f"{COLUMNS}, {_TERMS}, null"

_MEETS = f"""
    project_id = $1 and {_IS_ON_SALE}
    and (not $2 or {_IS_FREE})
    and ($3::text is null or type = $3)
    and ($4::smallint is null or bedrooms = $4)
    and ($5::numeric is null or {_TOTAL} >= $5) and ($6::numeric is null or {_TOTAL} <= $6)
    and ($7::numeric is null or area_sqm >= $7) and ($8::numeric is null or area_sqm <= $8)
"""
_PAGE = f"""
    select {_OFFER} from unit
    where {_MEETS} and ($9::numeric is null or ({{key}}, code) {{beyond}} ($9, $10::text))
    order by {{key}} {{direction}}, code {{direction}} limit $11
"""
_AMONG = f"select {_OFFER} from unit where {_MEETS} and code = any($9::text[])"
_CODES = f"select code from unit where {_MEETS} limit $9"

_THESE = (
    f"select {_OFFER_UNSEEN} from unit where project_id = $1 and {_IS_ON_SALE} and code = any($2::text[])"
)
_FACTS = f"""
    select trim_scale(min({_TOTAL}) filter (where {_IS_FREE}))::text,
        trim_scale(min(area_sqm))::text, trim_scale(max(area_sqm))::text,
        (array_agg(distinct bedrooms order by bedrooms) filter (where bedrooms is not null))[1:$2],
        (array_agg(distinct type order by type))[1:$2],
        min(delivery_year), max(delivery_year)
    from unit where project_id = $1 and {_IS_ON_SALE}
"""
_MOST_CHOICES = 30

# Of a huge project some of those that are free are alike enough: nobody waits for a look at all of them.
_LOOKED_AT = 2000
_SIMILAR = f"""
    select {COLUMNS} from (
        select * from unit
        where project_id = $1 and id <> $2 and {_IS_FREE} and not archived
        limit {_LOOKED_AT}
    ) as unit
    order by bedrooms is distinct from $3, type <> $4, abs(price_sar - $5::numeric), code
    limit $6
"""


async def page(
    connection: Connection,
    project_id: UUID,
    wish: UnitFilter,
    order: ListingOrder,
    after: ListingCursor | None,
    limit: int,
) -> list[Listing]:
    """By price or area."""
    mark = after or ListingCursor(None, "")
    rows = await connection.fetch(_page_statement(order), project_id, *wish, mark.value, mark.code, limit)
    return [_offer(row) for row in rows]


async def among(
    connection: Connection, project_id: UUID, wish: UnitFilter, codes: Sequence[str]
) -> dict[str, Listing]:
    """Those of the named ones that meet the wish."""
    rows = await connection.fetch(_AMONG, project_id, *wish, codes)
    return {row[1]: _offer(row) for row in rows}


async def codes(connection: Connection, project_id: UUID, wish: UnitFilter, limit: int) -> list[str]:
    """Of those that meet the wish, in no order."""
    return [row[0] for row in await connection.fetch(_CODES, project_id, *wish, limit)]


async def these(connection: Connection, project_id: UUID, codes: Sequence[str]) -> list[Listing]:
    """Without their pictures."""
    return [_offer(row) for row in await connection.fetch(_THESE, project_id, codes)]


async def facts(connection: Connection, project_id: UUID) -> ListingFacts:
    free_from, least, most, bedrooms, types, first_year, last_year = await fetch_one(
        connection, _FACTS, project_id, _MOST_CHOICES
    )
    return ListingFacts(
        free_from and Decimal(free_from),
        None if least is None else (Decimal(least), Decimal(most)),
        bedrooms or [],
        types or [],
        None if first_year is None else (first_year, last_year),
    )


async def similar(connection: Connection, unit: Unit, limit: int) -> list[BoardUnit]:
    """Free ones: with as many bedrooms first, then of the same type, then the nearest in price."""
    fields = unit.fields
    rows = await connection.fetch(
        _SIMILAR, unit.project_id, unit.id, fields.bedrooms, fields.type, fields.price_sar, limit
    )
    return [board_unit(row) for row in rows]


def _page_statement(order: ListingOrder) -> str:
    key = "area_sqm" if order in BY_AREA else _TOTAL
    beyond, direction = ("<", "desc") if order.is_downward else (">", "asc")
    return _PAGE.format(key=key, beyond=beyond, direction=direction)


def _offer(columns: asyncpg.Record | tuple[Any, ...]) -> Listing:
    *seen, vat_rate, vat_included, deposit, bathrooms, image = columns
    unit = board_unit(tuple(seen))
    terms = Terms(unit.price_sar, vat_included, vat_rate and Decimal(vat_rate), deposit and Decimal(deposit))
    return Listing(unit, terms, bathrooms, None if image is None else msgspec.json.decode(image))
