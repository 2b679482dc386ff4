"""Credentials of the demo, new at each start: an API key, an admin's password, the receiver's endpoint."""

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
RECEIVER_DESCRIPTION = "Demo receiver"

_PASSWORD_BYTES = 12
_MAX_ENDPOINTS = 1000


class DemoAccess(NamedTuple):
    key: str
    password: str
    """The password of ``EMAIL``, an admin."""
    has_project: bool


async def new_access(database: Database, has_project: bool) -> DemoAccess:
    """Issue a key and a password. Those of the last start stop working."""
    await revoke_keys_named(database, KEY_NAME)
    issued = await issue_key(database, KEY_NAME, [Scope.INTEGRATION, Scope.BACKOFFICE])
    return DemoAccess(issued.text, await _new_password(database), has_project)


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
    await SetupLinks(database).choose_password(token, password, None)
    return password


async def register_receiver(endpoints: Endpoints, url: str) -> str:
    """Register the demo's receiver as an endpoint in place of the last start's, and return its secret."""
    for endpoint in await endpoints.page(None, None, _MAX_ENDPOINTS):
        if endpoint.config.description == RECEIVER_DESCRIPTION:
            await endpoints.remove(endpoint.id, COMMAND)
    issued = await endpoints.add(EndpointConfig(url, RECEIVER_DESCRIPTION), COMMAND)
    return issued.text
