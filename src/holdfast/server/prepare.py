"""Migrate or check the database before the processes of `serve` start, and fill it for the demo.

This is a process of its own: what is imported for it is gone with it, so that the supervisor stays small. Its
result is one JSON object on stdout.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, TypeVar

from holdfast.demo import project
from holdfast.demo.seed import seed_demo
from holdfast.domain.errors import DatabaseUnavailable, DomainError
from holdfast.operations.staff import create_first_setup_link, setup_url
from holdfast.server.process import read_settings
from holdfast.server.serve import OWNER_URL
from holdfast.settings import Settings
from holdfast.storage import schema
from holdfast.storage.database import Database
from holdfast.storage.errors import SchemaError, WrongDatabase
from holdfast.wiring import open_endpoints

_PAUSE_SECONDS = 0.5
_LOGGED_EVERY_SECONDS = 10.0

Result = TypeVar("Result")

_log = logging.getLogger(__name__)


async def retry_while_unreachable(work: Callable[[], Awaitable[Result]]) -> Result:
    """Wait for the database for as long as it takes: another process would not reach it either."""
    logged_at = -_LOGGED_EVERY_SECONDS
    while True:
        try:
            return await work()
        except DatabaseUnavailable as unavailable:
            if monotonic() - logged_at >= _LOGGED_EVERY_SECONDS:
                logged_at = monotonic()
                why = str(unavailable.__cause__ or "") or "it does not answer"
                _log.warning("waiting for the database: %s", why)
        await asyncio.sleep(_PAUSE_SECONDS)


async def prepare(
    settings: Settings, may_migrate: bool, hook_url: str | None, owner_url: str = ""
) -> dict[str, Any]:
    """Return the result for `serve`. ``hook_url`` is that of the demo's receiver, if there is a demo."""
    return await retry_while_unreachable(lambda: _prepare(settings, may_migrate, hook_url, owner_url))


async def _prepare(
    settings: Settings, may_migrate: bool, hook_url: str | None, owner_url: str
) -> dict[str, Any]:
    database_url, public_url = settings.database_url, settings.public_url
    assert database_url is not None
    assert public_url is not None
    demo_slug = None if hook_url is None else project.SLUG
    prepare_schema = schema.migrate if may_migrate else schema.check
    await prepare_schema(owner_url or database_url, demo_slug)
    async with Database(database_url, writers=1, readers=1) as database:
        await database.write(schema.record_start, hook_url is not None, public_url)
        _report(await database.read(schema.load_durability))
        if hook_url is not None:
            async with schema.lock_filling(database_url):
                return await _prepare_demo(database, settings, public_url, hook_url)
        token = await create_first_setup_link(database)
    return {} if token is None else {"setupUrl": setup_url(public_url, token)}


def _report(durability: dict[str, str]) -> None:
    _log.info("durability of the database", extra={"fields": durability})
    for name in ("fsync", "full_page_writes"):
        if durability[name] == "off":
            message = (
                "%s is off: when the database's machine fails, acknowledged changes may be lost or damaged"
            )
            _log.warning(message, name)


async def _prepare_demo(
    database: Database, settings: Settings, public_url: str, hook_url: str
) -> dict[str, Any]:
    async with open_endpoints(database, settings) as endpoints:
        access = await seed_demo(database, public_url, endpoints, hook_url)
    return {
        "key": access.key,
        "signIn": {"url": f"{public_url}/backoffice", "email": project.EMAIL, "password": access.password},
        "project": public_url + project.PROJECT_PATH,
        "example": {
            "path": project.EXAMPLE_PATH,
            "body": project.EXAMPLE_BODY,
            "holdPath": project.EXAMPLE_HOLD_PATH,
        },
        "receiverSecret": access.receiver_secret,
    }


if __name__ == "__main__":
    given = read_settings()
    owner_url = given.pop(OWNER_URL, "")
    try:
        settings = Settings.from_environment(given)
        hook_url = next(iter(sys.argv[2:]), None)
        result = asyncio.run(prepare(settings, sys.argv[1] == "migrate", hook_url, owner_url))
    except (DomainError, SchemaError) as error:
        result = {"error": str(error), "isWrongDatabase": isinstance(error, WrongDatabase)}
    sys.stdout.write(json.dumps(result))
