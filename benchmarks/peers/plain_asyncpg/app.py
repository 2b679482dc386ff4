"""One Starlette handler and one statement."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import asyncpg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

# The project travels in the statement, so that one round trip is all there is.
UPSERT = """
    insert into unit (id, project_id, code, type, area_sqm, price_sar, vat_included, vat_rate,
        deposit_percent, bedrooms, bathrooms, delivery_year, description, images, files, status,
        version, created_at, updated_at)
    select gen_random_uuid(), project.id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
        coalesce($15, 'available'), 1, clock_timestamp(), clock_timestamp()
    from project where slug = $1
    on conflict (project_id, code) do update set
        type = excluded.type, area_sqm = excluded.area_sqm, price_sar = excluded.price_sar,
        vat_included = excluded.vat_included, vat_rate = excluded.vat_rate,
        deposit_percent = excluded.deposit_percent, bedrooms = excluded.bedrooms,
        bathrooms = excluded.bathrooms, delivery_year = excluded.delivery_year,
        description = excluded.description, images = excluded.images, files = excluded.files,
        status = coalesce($15, unit.status), version = unit.version + 1,
        updated_at = clock_timestamp()
    returning id, project_id as "projectId", code, type, area_sqm as "areaSqm", price_sar as "priceSar",
        vat_included as "vatIncluded", vat_rate as "vatRate", deposit_percent as "depositPercent", status,
        bedrooms, bathrooms, delivery_year as "deliveryYear", description, images, files,
        hold_expires_at as "holdExpiresAt", created_at as "createdAt", updated_at as "updatedAt",
        (select name from project where slug = $1) as "projectName", $1 as "projectSlug", ref
"""


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(type(value))


async def put_unit(request: Request) -> Response:
    body = json.loads(await request.body(), parse_float=Decimal)
    row = await request.app.state.pool.fetchrow(
        UPSERT, request.path_params["slug"], request.path_params["code"], body["type"], body["areaSqm"],
        body["priceSar"], body.get("vatIncluded"), body.get("vatRate"), body.get("depositPercent"),
        body.get("bedrooms"), body.get("bathrooms"), body.get("deliveryYear"), body.get("description"),
        body.get("images", []), body.get("files", []), body.get("status"),
    )  # fmt: skip
    return Response(json.dumps(dict(row), default=_plain), media_type="application/json")


async def _read_json_columns(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec("json", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    url = os.environ["BENCHMARK_DATABASE_URL"]
    async with asyncpg.create_pool(url, min_size=8, max_size=8, init=_read_json_columns) as pool:
        app.state.pool = pool
        yield


ROUTE = Route("/v1/integration/projects/{slug}/units/{code}", put_unit, methods=["PUT"])
app = Starlette(routes=[ROUTE], lifespan=lifespan)
