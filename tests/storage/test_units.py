"""Units in the database: locked in order, stored exactly, bounded by the database itself."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from holdfast.domain.event import EventName
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS
from holdfast.domain.unit import UnitFields, as_seen
from holdfast.storage import unit_lists, units
from holdfast.storage.database import ConstraintViolated, Database
from tests.support.inventory import claim, new_project, replacement, store


async def test_a_thousand_units_are_given_back_each_under_its_own_key(database: Database) -> None:
    project_id = await new_project(database)
    codes = sorted(f"A-{number}" for number in range(1000))
    await store(database, *(replacement(project_id, code, int(code[2:])) for code in codes))
    async with database.writing() as connection:
        _, snapshots = await units.load_for_update(
            connection, {}, [(project_id, code) for code in codes], locked=True
        )
    for code, snapshot in zip(codes, snapshots, strict=True):
        assert snapshot.unit is not None
        assert (snapshot.unit.code, snapshot.unit.fields.price_sar) == (code, Decimal(code[2:]))


async def test_what_is_stored_is_read_back_exactly(database: Database) -> None:
    project_id = await new_project(database)
    wanted = UnitFields(
        "شقة",
        Decimal("9999999.9999"),
        Decimal("999999999999.99"),
        False,
        Decimal("0.0001"),
        Decimal(100),
        0,
        999,
        2200,
        -9,
        "line\nline",
        ("https://example.com/a.jpg", {"url": "https://example.com/b.jpg", "name": "Plan"}),
        ({"url": "https://example.com/c.pdf"},),
    )
    (written,) = await store(database, replacement(project_id, "A/1")._replace(fields=wanted))
    async with database.reading() as connection:
        _, (snapshot,) = await units.load_for_update(connection, {}, [(project_id, "A/1")], locked=False)
    assert snapshot.unit == written.unit
    assert snapshot.unit is not None
    assert repr(snapshot.unit.fields) == repr(wanted)


async def test_each_unit_is_issued_a_ref_of_its_own(database: Database) -> None:
    project_id = await new_project(database)
    written = await store(database, *(replacement(project_id, f"A-{number}") for number in range(20)))
    assert len({one.unit.ref for one in written}) == 20


BEYOND_BOUNDS: list[tuple[str, Any]] = [
    ("code", ""),
    ("code", "x" * 51),
    ("code", " A"),
    ("code", "e\N{COMBINING ACUTE ACCENT}"),
    ("type", ""),
    ("type", "x" * 101),
    ("area_sqm", Decimal(0)),
    ("area_sqm", Decimal("9999999.99991")),
    ("area_sqm", Decimal("1.00001")),
    ("area_sqm", Decimal("NaN")),
    ("price_sar", Decimal("-0.01")),
    ("price_sar", Decimal("0.001")),
    ("price_sar", Decimal(1000000000000)),
    ("price_sar", Decimal("NaN")),
    ("vat_rate", Decimal("100.0001")),
    ("vat_rate", Decimal("0.00001")),
    ("deposit_percent", Decimal(-1)),
    ("bedrooms", 1000),
    ("bathrooms", -1),
    ("delivery_year", 1899),
    ("delivery_year", 2201),
    ("floor", -10),
    ("floor", 201),
    ("description", "x" * 10001),
    ("images", "{}"),
    ("files", "[" + ",".join(["1"] * 101) + "]"),
    ("status", "gone"),
    ("status", "held"),
    ("status", "reserved"),
    ("archived", True),
    ("version", 0),
]


@pytest.mark.parametrize(("column", "value"), BEYOND_BOUNDS)
async def test_the_database_itself_refuses_what_the_domain_refuses(
    database: Database, column: str, value: object
) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    with pytest.raises(ConstraintViolated):
        async with database.writing() as connection:
            await connection.execute(f"update unit set {column} = $1", value)


async def test_the_database_knows_the_same_transitions_as_the_status_table(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        known = await connection.fetchval(
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'known_transition'"
        )
        statuses = ", ".join(f"('{status}')" for status in [*Status, "gone"])
        names = ", ".join(f"('{name}')" for name in [*EventName, "ping"])
        rows = await connection.fetch(
            f"""
            select type, previous_status, status
            from (values {names}) as event (type)
            cross join (values {statuses}) as before (previous_status)
            cross join (values {statuses}) as after (status)
            where {known.removeprefix("CHECK ")}
            """
        )
    finally:
        await connection.close()
    assert {tuple(row) for row in rows} == {
        (row.event, row.source, row.target) for row in TRANSITIONS if row.event
    }


@pytest.mark.parametrize("status", [Status.HELD, Status.RESERVED])
@pytest.mark.parametrize("ends_in_seconds", [-5.0, 300.0])
async def test_filters_and_the_domain_agree_on_what_has_lapsed(
    database: Database, status: Status, ends_in_seconds: float
) -> None:
    project_id = await new_project(database)
    await store(database, replacement(project_id, "A-1"))
    await claim(database, "A-1", status, ends_in_seconds)
    async with database.reading() as connection:
        now, (snapshot,) = await units.load_for_update(connection, {}, [(project_id, "A-1")], locked=False)
        assert snapshot.unit is not None
        seen = as_seen(snapshot.unit, now)
        for asked in Status:
            page = await unit_lists.page(connection, project_id, "", 10, asked, None)
            assert page == ([seen] if asked is seen.status else [])
        for since, expected in ((seen.updated_at, [seen]), (_just_after(seen.updated_at), [])):
            assert await unit_lists.page(connection, project_id, "", 10, None, since) == expected


def _just_after(moment: datetime) -> datetime:
    return moment + timedelta(milliseconds=1)


async def test_a_page_by_status_merges_lapsed_claims_in_the_order_of_codes(database: Database) -> None:
    project_id = await new_project(database)
    codes = [f"A-{number}" for number in range(6)]
    await store(database, *(replacement(project_id, code) for code in codes))
    await claim(database, "A-1", Status.HELD, -5)
    await claim(database, "A-3", Status.RESERVED, -5)
    await claim(database, "A-4", Status.HELD, 300)
    async with database.reading() as connection:
        first = await unit_lists.page(connection, project_id, "", 3, Status.AVAILABLE, None)
        rest = await unit_lists.page(connection, project_id, first[-1].code, 3, Status.AVAILABLE, None)
    assert [unit.code for unit in first + rest] == ["A-0", "A-1", "A-2", "A-3", "A-5"]
