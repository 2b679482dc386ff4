"""Who asks for holds, commands for the write path, and what came of them."""

from collections.abc import Sequence

from holdfast.domain.audit import COMMAND, ActorKind, Author
from holdfast.domain.booking import Holder
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.bookings import Bookings, Held, Requester
from holdfast.operations.units import Units
from holdfast.operations.write_path import Outcome
from holdfast.storage.database import Database
from holdfast.storage.units import UnitKey
from tests.operations.interference import Hook, InterferingDatabase
from tests.support.delivery_engine import eventually
from tests.support.inventory import SLUG
from tests.support.sales import new_opening, new_units
from tests.support.sql import value

NORA, OMAR = Requester("192.0.2.1", "noras-cookie"), Requester("192.0.2.2", "omars-cookie")
KEYED = NORA._replace(idempotency_key="key-1")
STAFF = Author(ActorKind.STAFF, "staff@example.com", "request-1")
LIMITS = HoldLimits(per_visitor=3, per_address=3, rehold_seconds=60)
SOMEBODY_WAITS = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0
    )
"""


async def hold(
    selling: Bookings, requester: Requester = NORA, code: str = "A-1", token: str | None = None
) -> Held:
    return await selling.hold(SLUG, code, requester, token, "request-1")


async def new_keys(database: Database, *codes: str) -> list[UnitKey]:
    """Of new units on sale."""
    project_id = await new_units(database, *codes)
    return [(project_id, code) for code in codes]


async def cancel(selling: Bookings, reference: str) -> None:
    await selling.cancel_as_buyer(await selling.find(reference), "request-2")


def interrupted(database: Database, meanwhile: Hook) -> Bookings:
    """On another process, which has looked at a unit before something happens to it."""
    return Bookings(database, Units(InterferingDatabase(database, meanwhile)), HoldPeriods(), HoldLimits())


async def opening(
    database: Database, key: UnitKey, holder: Holder | None = None, limits: HoldLimits = LIMITS
) -> HoldUnit:
    return HoldUnit(key, COMMAND, await new_opening(database, holder=holder, limits=limits))


def kinds(outcomes: Sequence[Outcome]) -> list[type]:
    return [type(outcome) for outcome in outcomes]


async def until_somebody_waits(database: Database) -> None:
    await eventually(lambda: value(database, SOMEBODY_WAITS))
