"""Fills a database that has no project yet, and never touches what a visitor has changed."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from holdfast.demo.access import DemoAccess, new_access
from holdfast.demo.past import happen
from holdfast.demo.project import ADDRESS, DRAWINGS, NAME, SLUG, demo_units
from holdfast.domain.errors import PreconditionFailed, Refusal
from holdfast.domain.unit import Media, Unit
from holdfast.domain.unit_writes import Precondition
from holdfast.operations.projects import add_project, list_projects
from holdfast.operations.units import PatchUnit, ReplaceUnit, Units
from holdfast.operations.write_path import Command
from holdfast.storage import installation
from holdfast.storage.database import Database

_ALL_UNITS = 1000


async def fill(database: Database, public_url: str = ADDRESS) -> DemoAccess:
    """The project with its units and their past, if there is no other; and a way in, new each time."""
    slugs = [project.slug for project in await list_projects(database)]
    if not slugs:
        await add_project(database, SLUG, NAME)
    if slugs in ([], [SLUG]):
        async with _inventory(database) as inventory:
            await _add_missing_units(inventory, public_url)
            units = await _units(inventory)
            await happen(database, inventory, units)
            await _point_drawings_at(inventory, units, public_url)
    return await new_access(database, has_project=not slugs or SLUG in slugs)


async def is_demo(database: Database) -> bool:
    async with database.reading() as connection:
        return await installation.is_demo(connection)


@asynccontextmanager
async def _inventory(database: Database) -> AsyncIterator[Units]:
    inventory = Units(database)
    try:
        yield inventory
    finally:
        await inventory.close()


async def _add_missing_units(inventory: Units, public_url: str) -> None:
    """All of them, or what an earlier start was interrupted in; never those that are there."""
    project_id = await inventory.project_id(SLUG)
    absent = Precondition(none_match=frozenset("*"))
    await _write(
        inventory,
        [
            ReplaceUnit((project_id, unit.code), unit.fields, unit.status, absent)
            for unit in demo_units(public_url)
        ],
    )


async def _units(inventory: Units) -> list[Unit]:
    units, _ = await inventory.page(SLUG, "", _ALL_UNITS, None, None)
    return units


async def _point_drawings_at(inventory: Units, units: Iterable[Unit], public_url: str) -> None:
    """Drawings are named by the server's address, which may be another one than at the last start."""
    commands = []
    for unit in units:
        images, files = unit.fields.images, unit.fields.files
        pointed = _pointed(images, public_url), _pointed(files, public_url)
        if pointed != (images, files):
            changes = dict(zip(("images", "files"), pointed, strict=True))
            commands.append(PatchUnit((unit.project_id, unit.code), changes))
    if commands:
        await _write(inventory, commands)


def _pointed(sent: tuple[Media, ...], public_url: str) -> tuple[Media, ...]:
    return tuple(
        one if isinstance(one, str) else {**one, "url": _address(one["url"] or "", public_url)}
        for one in sent
    )


def _address(url: str, public_url: str) -> str:
    _, found, name = url.partition(f"{DRAWINGS}/")
    return f"{public_url}{DRAWINGS}/{name}" if found else url


async def _write(inventory: Units, commands: Sequence[Command]) -> None:
    for outcome in await inventory.write_many(commands, store=True):
        if isinstance(outcome, Refusal) and not isinstance(outcome, PreconditionFailed):
            raise outcome
