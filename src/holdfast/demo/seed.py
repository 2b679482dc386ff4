"""Seed the demo's database: the project, its units and earlier bookings, and credentials for the visitor."""

import secrets
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from holdfast.demo.past import store_past
from holdfast.demo.project import DEFAULT_URL, DRAWINGS_PATH, EMAIL, NAME, SELLER, SLUG
from holdfast.domain.api_key import Scope
from holdfast.domain.audit import COMMAND
from holdfast.domain.endpoint import EndpointConfig, IssuedSecret
from holdfast.domain.errors import DomainError, ProjectExists, UnknownStaff
from holdfast.domain.permissions import Role
from holdfast.domain.seller import read_logo
from holdfast.domain.unit import Media, Unit
from holdfast.operations import api_keys
from holdfast.operations.api_keys import NewApiKey
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.projects import Projects, add_project
from holdfast.operations.sellers import Sellers
from holdfast.operations.staff import StaffAccounts
from holdfast.operations.units import PatchUnit, Units
from holdfast.storage import schema
from holdfast.storage.database import Database

KEY_NAME = "holdfast serve --demo"
RECEIVER_DESCRIPTION = "Demo receiver"

_MAX_UNITS = 1000
_MAX_ENDPOINTS = 1000
_PASSWORD_BYTES = 12


class DemoAccess(NamedTuple):
    key: str
    password: str
    receiver_secret: str


async def seed_demo(
    database: Database, public_url: str = DEFAULT_URL, endpoints: Endpoints | None = None, hook_url: str = ""
) -> DemoAccess:
    """Add what is missing of the project with its past, and return new credentials.

    The database is marked first, so that the next start completes one that was interrupted. Units are stored
    with their past in one transaction; once there, they and their seller stay as they are. With ``endpoints``
    the receiver at ``hook_url`` is registered.
    """
    async with database.writing() as connection:
        await schema.check_may_fill(connection, SLUG)
        await schema.mark_as_filled(connection)
    with suppress(ProjectExists):
        await add_project(database, SLUG, NAME)
    # The key and the password of the last start stop working.
    await api_keys.revoke_named(database, KEY_NAME)
    issued = await api_keys.issue(database, NewApiKey(KEY_NAME, [Scope.INTEGRATION, Scope.BACKOFFICE]))
    password = await _new_password(database)
    receiver = None if endpoints is None else await _register_receiver(endpoints, hook_url)
    units = Units(database)
    try:
        rows, _ = await units.page(SLUG, "", _MAX_UNITS, None, None)
        if rows:
            await _update_drawing_urls(units, rows, public_url)
        else:
            await Projects(database, units).settle(SLUG, {"listed": True}, COMMAND)
            logo = read_logo(b64encode(Path(__file__).with_name("logo.png").read_bytes()).decode())
            seller = await Sellers(database, units).settle(None, SELLER.set_fields | {"logo": logo}, COMMAND)
            project_id = await units.project_id(SLUG)
            await store_past(database, project_id, public_url, seller, receiver)
    finally:
        await units.close()
    return DemoAccess(issued.text, password, "" if receiver is None else receiver.text)


async def _register_receiver(endpoints: Endpoints, url: str) -> IssuedSecret:
    """Register the demo's receiver, or give the one of the last start this URL and a new secret."""
    for endpoint in await endpoints.page(None, None, _MAX_ENDPOINTS):
        if endpoint.config.description == RECEIVER_DESCRIPTION:
            await endpoints.change(endpoint.id, {"url": url}, COMMAND)
            return await endpoints.rotate(endpoint.id, COMMAND)
    return await endpoints.add(EndpointConfig(url, RECEIVER_DESCRIPTION), COMMAND)


async def _new_password(database: Database) -> str:
    """Give the demo's admin a new password and end their sessions; add them if they are missing."""
    accounts, password = StaffAccounts(database), secrets.token_urlsafe(_PASSWORD_BYTES)
    try:
        staff = await accounts.find_by_email(EMAIL)
    except UnknownStaff:
        await accounts.add(EMAIL, "Demo", Role.ADMIN, password, COMMAND)
        return password
    await accounts.change(staff.id, {"role": Role.ADMIN, "disabled": False}, COMMAND)
    _, token = await accounts.reset(staff.id, COMMAND)
    await accounts.choose_password(token, password, None)
    return password


async def _update_drawing_urls(units: Units, rows: Iterable[Unit], public_url: str) -> None:
    """Point drawings at the server's address, which may differ from the last start's."""
    commands = []
    for unit in rows:
        fields = {"images": unit.fields.images, "files": unit.fields.files}
        updated = {
            name: tuple(_with_url(medium, public_url) for medium in media) for name, media in fields.items()
        }
        commands.append(PatchUnit((unit.project_id, unit.code), updated))
    for outcome in await units.write_many(commands, store=True):
        if isinstance(outcome, DomainError):
            raise outcome


def _with_url(media: Media, public_url: str) -> Media:
    if isinstance(media, str):
        return media
    _, is_drawing, name = (media["url"] or "").partition(f"{DRAWINGS_PATH}/")
    return {**media, "url": f"{public_url}{DRAWINGS_PATH}/{name}"} if is_drawing else media
