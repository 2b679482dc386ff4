"""The audit trail in the database: exact, in order, by unit."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

from holdfast.domain.audit import CLOCK, ActorKind, AuditEntry, Author, Change
from holdfast.domain.booking import BookingStatus
from holdfast.domain.layout import Placement
from holdfast.domain.status import Status
from holdfast.operations import api_keys
from holdfast.storage import audit
from holdfast.storage.audit import StoredEntry
from holdfast.storage.database import Database, current_time
from tests.support.inventory import new_project, replacement, store

AT = datetime(2026, 11, 14, 9, 30, 0, 5000, tzinfo=UTC)
LATEST = 2**62
NOTHING = Change(None, {})
STAFF = Author(ActorKind.STAFF, "nora@example.com", "request-1")


def entry(subject_id: UUID, action: str, author: Author = CLOCK, change: Change = NOTHING) -> AuditEntry:
    return AuditEntry(subject_id, uuid4(), AT, author, action, "234-679-FHK", change)


async def history(database: Database, unit_id: UUID, *entries: AuditEntry) -> list[StoredEntry]:
    """Of a unit, after these entries."""
    for one in entries:
        await database.write(audit.insert, one)
    return await database.read(audit.history, unit_id, LATEST, 100)


async def test_an_entry_is_read_back_as_it_was_written(database: Database) -> None:
    unit_id = uuid4()
    change = Change({"status": Status.HELD}, {"status": Status.AVAILABLE, "hold_expires_at": None})
    (found,) = await history(database, unit_id, entry(unit_id, "cancel-hold", STAFF, change))
    told = ("staff", "nora@example.com", "request-1", "cancel-hold", "234-679-FHK")
    assert (found.at, *found[4:9]) == (AT, *told)
    assert json.loads(found.before or "") == {"status": "held"}
    assert json.loads(found.after) == {"status": "available", "holdExpiresAt": None}
    # What was not there before is told apart from what had nothing to tell.
    changes = [entry(unit_id, "x", change=change) for change in (NOTHING, Change({}, {}))]
    assert [one.before for one in (await history(database, unit_id, *changes))[:2]] == ["{}", None]


async def test_values_are_written_in_the_names_and_forms_of_the_wire(database: Database) -> None:
    unit_id = uuid4()
    told = {
        "price_sar": Decimal("999999999999.99"),
        "vat_rate": Decimal("0.0001"),
        "area_sqm": Decimal(100),
        "hold_expires_at": AT,
        "reserved_until": AT.replace(microsecond=0),
        "booking_status": BookingStatus.REFUND_DUE,
        "images": ("https://x.example/1", {"url": "https://x.example/2"}),
        "places": {"A_1": Placement("A", 1, 2)._asdict()},
        "description": "line\nشقة",
    }
    (found,) = await history(database, unit_id, entry(unit_id, "change", change=Change({}, told)))
    assert json.loads(found.after, parse_float=Decimal) == {
        "priceSar": Decimal("999999999999.99"),
        "vatRate": Decimal("0.0001"),
        "areaSqm": 100,
        "holdExpiresAt": "2026-11-14T09:30:00.005Z",
        "reservedUntil": "2026-11-14T09:30:00.000Z",
        "bookingStatus": "refund-due",
        "images": ["https://x.example/1", {"url": "https://x.example/2"}],
        "places": {"A_1": {"building": "A", "floor": 1, "position": 2}},
        "description": "line\nشقة",
    }


async def test_a_history_is_of_one_unit_the_latest_first_page_by_page(database: Database) -> None:
    unit_id, other_id = uuid4(), uuid4()
    steps = [
        entry(one, action) for number in range(5) for one, action in ((unit_id, f"{number}"), (other_id, "x"))
    ]
    everything = await history(database, unit_id, *steps)
    assert [one.action for one in everything] == ["4", "3", "2", "1", "0"]
    assert await database.read(audit.history, unit_id, everything[1].id, 2) == everything[2:4]


async def test_a_key_is_shown_by_its_name(database: Database) -> None:
    unit_id = uuid4()
    issued = await api_keys.issue(database, api_keys.NewApiKey("The nightly sync"))
    named = Author(ActorKind.KEY, str(issued.key.id), "request-2")
    namesake = Author(ActorKind.STAFF, str(issued.key.id))
    entries = entry(unit_id, "put", named), entry(unit_id, "sign in", namesake)
    assert [one.key_name for one in await history(database, unit_id, *entries)] == [None, "The nightly sync"]


async def test_the_changes_of_a_batch_stand_in_their_order(database: Database) -> None:
    project_id = await new_project(database)
    changes = [replacement(project_id, code, price) for price in range(1, 9) for code in ("A-1", "A-2")]
    written = await store(database, *changes)
    found = await history(database, written[0].unit.id)
    assert [one.action for one in found] == ["change"] * 7 + ["create"]
    assert [json.loads(one.after)["priceSar"] for one in reversed(found)] == list(range(1, 9))
    # Times are in whole milliseconds.
    assert (await database.read(current_time)).microsecond % 1000 == 0
