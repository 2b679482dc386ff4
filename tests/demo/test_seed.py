"""The demo project is one that a client could have sent, and each start leaves what visitors made of it."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from holdfast.demo import past, seed
from holdfast.demo.project import EMAIL, EXAMPLE_PATH, EXAMPLE_PRICE_PATH, NAME, SLUG, DemoUnit, demo_units
from holdfast.domain.api_key import Scope
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import BookingStatus
from holdfast.domain.delivery import ReconciliationCounts
from holdfast.domain.errors import DatabaseUnavailable, LoginFailed
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.domain.permissions import Role
from holdfast.domain.reports import Conversion
from holdfast.domain.signature import verify
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from holdfast.operations import api_keys
from holdfast.operations.bookings import Bookings
from holdfast.operations.events import EventFeed
from holdfast.operations.projects import add_project
from holdfast.operations.reports import Reports
from holdfast.operations.units import PatchUnit, Units
from holdfast.server.prepare import prepare
from holdfast.settings import Settings
from holdfast.storage import delivery_log, schema
from holdfast.storage.database import Database
from holdfast.web.api.unit_bodies import UnitReplacement, UnitValues, check_unit
from holdfast.web.json import camel_case, encode, value_at
from holdfast.web.pages.i18n import in_language
from holdfast.web.pages.templates import STATIC
from tests.docs.documents import ROOT
from tests.support.server import WEBHOOKS
from tests.support.sql import REFUSE, execute
from tests.support.staff import open_office

UNITS = list(demo_units())
STATUSES = {Status.AVAILABLE: 81, Status.SOLD: 26, Status.RESERVED: 12, Status.UNAVAILABLE: 6}
LARGEST_DRAWING_BYTES = 20 * 1024


def test_it_has_about_120_units_on_a_dozen_floors_of_which_four_penthouses_are_not_on_sale() -> None:
    codes = [unit.code for unit in UNITS]
    assert len(set(codes)) == len(codes)
    assert 110 <= len(codes) <= 130
    assert all(re.fullmatch(r"[AB]-\d{4}", code) for code in codes)
    assert {int(code[2:4]) for code in codes} == set(range(1, 13))
    off_sale = [unit.fields.type for unit in UNITS if unit.status is Status.UNAVAILABLE]
    assert off_sale == ["Penthouse | بنتهاوس"] * 4


def test_every_unit_is_one_that_a_put_would_accept_and_keep_as_it_is() -> None:
    for unit in UNITS:
        body = {camel_case(name): value for name, value in unit.fields._asdict().items()}
        sent, _ = value_at(encode(body).decode(), 0)
        checked = check_unit(UnitReplacement, sent, SLUG, unit.code)
        assert isinstance(checked, UnitValues), checked
        assert checked.replacement() == unit.fields


def test_every_text_is_in_english_and_in_arabic() -> None:
    for text in (NAME, *(text for unit in UNITS for text in (unit.fields.type, unit.fields.description))):
        assert text is not None
        english, arabic = in_language(text, "en"), in_language(text, "ar")
        assert english.isascii() or "m²" in english
        assert text in (f"{english} | {arabic}", f"{english}\n{arabic}")


def drawing_urls(unit: Unit | DemoUnit) -> Iterator[str]:
    for medium in (*unit.fields.images, *unit.fields.files):
        assert not isinstance(medium, str)
        yield str(medium["url"])


def test_every_drawing_is_a_small_file_of_the_server_and_runs_no_script() -> None:
    base = "https://units.example.com"
    urls = {url for unit in demo_units(base) for url in drawing_urls(unit)}
    drawn = {STATIC / url.removeprefix(f"{base}/static/") for url in urls}
    for file in drawn | set((STATIC / "demo").glob("*.svg")):
        drawing = file.read_bytes()
        assert len(drawing) <= LARGEST_DRAWING_BYTES
        assert ElementTree.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
        assert b"<script" not in drawing


def test_the_examples_overwrite_no_unit_and_change_one_that_nobody_has() -> None:
    codes = {unit.code for unit in UNITS}
    assert EXAMPLE_PATH.split("/units/")[0].endswith(f"/{SLUG}")
    assert EXAMPLE_PATH.rpartition("/")[2] not in codes
    assert EXAMPLE_PATH not in (ROOT / "docs" / "quick-start.md").read_text()
    assert EXAMPLE_PRICE_PATH.rpartition("/")[2] in codes - {*past.SOLD, *past.RESERVED}


async def seeded_units(database: Database, url: str) -> list[Unit]:
    await seed.seed_demo(database, url)
    inventory = Units(database)
    units, _ = await inventory.page(SLUG, "", 1000, None, None)
    await inventory.close()
    return units


async def test_it_has_bookings_of_every_kind_and_the_next_start_changes_nothing(database: Database) -> None:
    here, elsewhere = "http://127.0.0.1:8000", "https://demo.example.com"
    units = await seeded_units(database, here)
    assert Counter(unit.status for unit in units) == STATUSES
    inventory = Units(database)
    bookings = Bookings(database, inventory, HoldPeriods(), HoldLimits())
    assert Counter(one.booking.status for one in await bookings.page(None, None, None, None, 200)) == {
        BookingStatus.SOLD: 26,
        BookingStatus.RESERVED: 12,
        BookingStatus.CANCELLED: 4,
        BookingStatus.LAPSED: 51,
        BookingStatus.REFUND_DUE: 1,
        BookingStatus.REFUNDED: 3,
    }
    # A visitor changes a unit that has a booking, and one that has none.
    for code, changes in ((past.SOLD[0], {"description": "mine"}), ("A-0601", {"images": ()})):
        outcome = await inventory.write(PatchUnit((units[0].project_id, code), changes))
        units = [outcome.unit if unit.code == code else unit for unit in units]
    await inventory.close()
    assert await seeded_units(database, here) == units
    moved = await seeded_units(database, elsewhere)
    assert {url.partition("/static/")[0] for unit in moved for url in drawing_urls(unit)} == {elsewhere}


async def test_a_start_that_was_cut_off_is_completed_by_the_next_since_the_mark_comes_first(
    database: Database,
) -> None:
    await execute(database, REFUSE.format(table="booking", state="XX000", condition="true"))
    with pytest.raises(DatabaseUnavailable):
        await seed.seed_demo(database)
    await execute(database, "drop trigger refuse on booking")
    async with database.reading() as connection:
        assert await connection.fetchval("select array_agg(slug::text) from project") == [SLUG]
        await schema.check_may_fill(connection, "another-slug")
    units = await seeded_units(database, "http://127.0.0.1:8000")
    assert Counter(unit.status for unit in units) == STATUSES


async def test_two_starts_at_once_fill_the_database_once(postgres_url: str, database: Database) -> None:
    address, hook_url = "http://127.0.0.1:8000", "http://127.0.0.1:9/hook"
    own = {"HOLDFAST_DATABASE_URL": postgres_url, "HOLDFAST_PUBLIC_URL": address}
    settings = Settings.from_environment({**WEBHOOKS, **own})
    await asyncio.gather(*(prepare(settings, True, hook_url) for _ in range(2)))
    assert Counter(unit.status for unit in await seeded_units(database, address)) == STATUSES


async def test_the_past_lies_over_90_days_and_agrees_with_itself(
    postgres_url: str, database: Database
) -> None:
    own = {"HOLDFAST_DATABASE_URL": postgres_url, "HOLDFAST_PUBLIC_URL": "http://127.0.0.1:8000"}
    settings = Settings.from_environment({**WEBHOOKS, **own})
    started = await prepare(settings, True, "http://127.0.0.1:9/hook")
    await EventFeed(database).number()
    async with database.reading() as connection:
        events = await connection.fetch(
            "select unit_id, created_at, now() - created_at as age from event order by position, unit_version"
        )
        assert [event["created_at"] for event in events] == sorted(event["created_at"] for event in events)
        of_units = {(event["unit_id"], event["created_at"]) for event in events}
        last = await connection.fetchval("select last_position from event_feed")
        assert len(of_units) == len(events) == last
        assert max(event["age"] for event in events).days > 80
        assert sum(event["age"].total_seconds() < 4 * 3600 for event in events) >= 5
        assert not await connection.fetch(
            """
            select from unit where version <> 1 + (
                select count(*) from audit_entry
                where subject_id = unit.id and action not in ('create', 'sign', 'mark-refunded')
            ) or created_at > updated_at or reserved_until < now() + interval '1 day'
            """
        )
        ends = await connection.fetch(
            "select distinct reserved_until::date from unit where status = 'reserved'"
        )
        assert len(ends) >= 8
        endpoint_id = await connection.fetchval("select id from endpoint")
        # The receiver was registered later.
        sent = await connection.fetchval("select count(*) from event where endpoint_ids <> '{}'")
        assert 60 < sent < len(events) / 2
        counts = await delivery_log.count_reconciled(connection, endpoint_id, None, 0, last)
        assert counts == ReconciliationCounts(sent, sent - 2, 0, 2, 0, 0, 0)
        assert not await connection.fetch(
            """
            select from booking join unit on unit.id = unit_id
            where booking.status in ('reserved', 'sold') and booking.price_sar <> unit.price_sar
            """
        )
        attempts = await connection.fetch(
            """
            select body, request_headers, attempts from ended_delivery
            join attempt on delivery_id = id and started_at > created_at
            """
        )
        assert {1, 2, 3, 8} <= {attempt["attempts"] for attempt in attempts}
        for attempt in attempts:
            headers = dict(json.loads(attempt["request_headers"]))
            timestamp, signature = headers["X-Service-Timestamp"], headers["X-Service-Signature"]
            body = attempt["body"].encode()
            assert verify(started["receiverSecret"], timestamp, signature, body, float(timestamp)) is None
    inventory = Units(database)
    figures = await Reports(database, inventory).load(SLUG, 90, "Asia/Riyadh")
    await inventory.close()
    assert figures.statuses[0].units[Status.AVAILABLE] == 121
    assert (figures.units_sold, sum(day.units > 0 for day in figures.sales) > 15) == (26, True)
    assert figures.conversion == Conversion(95, 40, 24, 2)
    # The next start keeps the receiver and its past.
    restarted = await prepare(settings, True, "http://127.0.0.1:10/hook")
    assert restarted["receiverSecret"] != started["receiverSecret"]
    async with database.reading() as connection:
        row = await connection.fetchrow("select id, url from endpoint")
        assert row is not None
        assert tuple(row) == (endpoint_id, "http://127.0.0.1:10/hook")
        assert await connection.fetchval("select count(*) from event") == len(events)


@pytest.mark.parametrize("hour", range(24))
def test_whenever_it_starts_nothing_lies_ahead_and_no_unit_is_taken_twice(hour: int) -> None:
    now = datetime(2026, 3, 1, hour, 30, tzinfo=UTC)
    ended = BookingStatus.SOLD, BookingStatus.REFUND_DUE, BookingStatus.REFUNDED
    visits = past.visits(now)
    assert visits == sorted(visits)
    for visit in visits:
        assert past.early(now) < visit.at < now > visit.ended_at
        assert visit.at < visit.ended_at or visit.status not in ended
    taken = Counter(visit.code for visit in visits if visit.status is not BookingStatus.LAPSED)
    assert set(taken.values()) == {1}


async def test_each_start_has_a_new_key_and_password_whatever_a_visitor_did(database: Database) -> None:
    office = open_office(database)
    first = await seed.seed_demo(database)
    await add_project(database, "other", "Another project")
    opened = await office.sign_in(EMAIL, password=first.password)
    assert opened.staff.role is Role.ADMIN
    await office.set_up_factor(await office.oneself(opened), first.password)
    await office.add("other@example.com")
    await office.staff.change(opened.staff.id, {"role": Role.VIEWER, "disabled": True}, COMMAND)
    second = await seed.seed_demo(database)
    assert not await office.is_signed_in(opened)
    with pytest.raises(LoginFailed):
        await office.sign_in(EMAIL, password=first.password)
    again = await office.sign_in(EMAIL, password=second.password)
    assert (again.staff.role, again.staff.has_second_factor) == (Role.ADMIN, False)
    assert first.key != second.key
    keys = [key for key in await api_keys.list_all(database) if key.name == seed.KEY_NAME]
    assert [key.scopes for key in keys] == [frozenset({Scope.INTEGRATION, Scope.BACKOFFICE})] * 2
    assert sorted(key.revoked_at is None for key in keys) == [False, True]
