"""Profiles of sellers: changed by several people at once, and remembered for pages of errors."""

import asyncio

from holdfast.domain.audit import COMMAND
from holdfast.domain.seller import Seller
from holdfast.operations.sellers import Sellers
from holdfast.operations.units import Units
from holdfast.storage import sellers as storage
from holdfast.storage.database import Database
from tests.operations.scene import until_somebody_waits
from tests.support.inventory import SLUG, new_project
from tests.support.sql import rows


async def test_of_two_first_changes_at_once_the_second_builds_on_the_first(database: Database) -> None:
    profiles = Sellers(database, Units(database))
    async with database.writing() as connection:
        first = await storage.find_for_update(connection, None)
        change = asyncio.create_task(profiles.settle(None, {"email": "sales@palm.example"}, COMMAND))
        await until_somebody_waits(database)
        await storage.update(connection, None, first._replace(phone="920001234"))
    assert await change == await profiles.own(None) == Seller(phone="920001234", email="sales@palm.example")
    (entry,) = await rows(
        database, "select before::text, after::text from audit_entry where action = 'settle'"
    )
    assert tuple(entry) == ('{"email":null}', '{"email":"sales@palm.example"}')


async def test_pages_that_must_not_ask_the_database_name_the_seller_that_was_seen_last(
    database: Database,
) -> None:
    await new_project(database)
    profiles = Sellers(database, Units(database))
    await profiles.settle(None, {"legal_name": "Palm", "phone": "920001234"}, COMMAND)
    await profiles.settle(SLUG, {"phone": "920004321"}, COMMAND)
    assert profiles.last_seen(SLUG) == Seller()
    assert await profiles.effective(SLUG) == Seller("Palm", phone="920004321")
    assert profiles.last_seen(SLUG) == Seller("Palm", phone="920004321")
    assert profiles.last_seen("another") == Seller("Palm", phone="920001234")
