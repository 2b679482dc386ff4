"""How a visitor of the demo gets in: a key for programs and a sign-in for people, new at each start."""

import secrets
from typing import NamedTuple

from holdfast.domain.api_key import Scope
from holdfast.domain.audit import COMMAND
from holdfast.domain.endpoint import EndpointConfig
from holdfast.domain.errors import UnknownStaff
from holdfast.domain.permissions import Role
from holdfast.operations.api_keys import issue_key, revoke_keys_named
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.staff import SetupLinks, StaffAccounts
from holdfast.storage.database import Database

KEY_NAME = "holdfast serve --demo"
EMAIL = "demo@holdfast.example"
STAFF_NAME = "Demo"

_PASSWORD_BYTES = 12


class DemoAccess(NamedTuple):
    key: str
    password: str
    """Of ``EMAIL``, who is an admin."""
    has_project: bool


async def new_access(database: Database, has_project: bool) -> DemoAccess:
    """Key and password are this start's; the last one's are void."""
    await revoke_keys_named(database, KEY_NAME)
    issued = await issue_key(database, KEY_NAME, [Scope.INTEGRATION, Scope.BACKOFFICE])
    return DemoAccess(issued.text, await _new_password(database), has_project)


async def _new_password(database: Database) -> str:
    """For the demo's admin, who is made if need be, and whose sessions end."""
    staff, password = StaffAccounts(database), secrets.token_urlsafe(_PASSWORD_BYTES)
    try:
        person = await staff.find_by_email(EMAIL)
    except UnknownStaff:
        await staff.add(EMAIL, STAFF_NAME, Role.ADMIN, password, COMMAND)
        return password
    await staff.change(person.id, {"role": Role.ADMIN, "disabled": False}, COMMAND)
    _, token = await staff.reset(person.id, COMMAND)
    await SetupLinks(database).choose_password(token, password, None)
    return password


# The demo's receiver is an endpoint like any other; each start registers it, with a secret of its own.

DESCRIPTION = "Demo receiver"

_MOST_ENDPOINTS = 1000


async def register_receiver(subscribing: Endpoints, url: str) -> str:
    """Its secret. The receiver of the last start is gone, and its endpoint with it."""
    for endpoint in await subscribing.page(None, None, _MOST_ENDPOINTS):
        if endpoint.wishes.description == DESCRIPTION:
            await subscribing.remove(endpoint.id, COMMAND)
    issued = await subscribing.add(EndpointConfig(url, DESCRIPTION), COMMAND)
    return issued.text
