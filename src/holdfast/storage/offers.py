"""Units as buyers look for them."""

from __future__ import annotations

from holdfast.domain.board import BoardUnit
from holdfast.domain.unit import Unit
from holdfast.storage.boards import COLUMNS, IS_OVER, board_unit
from holdfast.storage.database import Connection

# Of a huge project some of those that are free are alike enough: nobody waits for a look at all of them.
_LOOKED_AT = 2000
_SIMILAR = f"""
    select {COLUMNS} from (
        select * from unit
        where project_id = $1 and id <> $2 and (status = 'available' or {IS_OVER}) and not archived
        limit {_LOOKED_AT}
    ) as unit
    order by bedrooms is distinct from $3, type <> $4, abs(price_sar - $5::numeric), code
    limit $6
"""


async def similar(connection: Connection, unit: Unit, limit: int) -> list[BoardUnit]:
    """Free ones: with as many bedrooms first, then of the same type, then the nearest in price."""
    fields = unit.fields
    rows = await connection.fetch(
        _SIMILAR, unit.project_id, unit.id, fields.bedrooms, fields.type, fields.price_sar, limit
    )
    return [board_unit(row) for row in rows]
