"""A service and its database are often started together; the service gives it time."""

import asyncio
import json
import logging
import os
import sys
import time
from typing import Any

from holdfast.demo import project
from holdfast.demo.access import EMAIL, DemoAccess, register_receiver
from holdfast.demo.seed import seed_demo
from holdfast.domain.errors import DatabaseUnavailable, DomainError
from holdfast.observability.logging import set_up_logging
from holdfast.operations.health import record_start
from holdfast.operations.staff import create_first_setup_link, setup_url
from holdfast.settings import Settings
from holdfast.storage.database import open_database
from holdfast.storage.errors import SchemaError
from holdfast.storage.schema import migrate
from holdfast.wiring import open_endpoints

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.5

_log = logging.getLogger(__name__)


async def migrate_when_reachable(database_url: str, patience_seconds: float = _PATIENCE_SECONDS) -> list[str]:
    give_up_at = time.monotonic() + patience_seconds
    while True:
        try:
            return await migrate(database_url)
        except DatabaseUnavailable:
            if time.monotonic() > give_up_at:
                raise
            _log.warning("waiting for the database")
        await asyncio.sleep(_PAUSE_SECONDS)


# What `serve` does before the web processes start, in a process of its own.
#
# What is imported for it is gone with it, so that the supervisor stays small. The answer is one JSON object
# on stdout.


async def prepare(settings: Settings, demo_hook: str | None) -> dict[str, Any]:
    """``demo_hook``: where the demo's receiver takes webhooks; None: there is no demo."""
    database_url, public_url = settings.database_url, settings.public_url
    assert database_url is not None
    assert public_url is not None
    await migrate_when_reachable(database_url)
    async with open_database(database_url, writers=1, readers=1) as database:
        await record_start(database, public_url, demo_hook is not None)
        if demo_hook is not None:
            access = await seed_demo(database, public_url)
            async with open_endpoints(database, settings) as own:
                secret = await register_receiver(own, demo_hook)
            return _demo_answer(access, secret, public_url)
        token = await create_first_setup_link(database)
    return {} if token is None else {"setupUrl": setup_url(public_url, token)}


def _demo_answer(access: DemoAccess, receiver_secret: str, public_url: str) -> dict[str, Any]:
    example = {
        "path": project.EXAMPLE_PATH,
        "body": project.EXAMPLE_BODY,
        "holdPath": project.EXAMPLE_HOLD_PATH,
    }
    return {
        "key": access.key,
        "signIn": {"url": f"{public_url}/backoffice", "email": EMAIL, "password": access.password},
        "example": example if access.has_project else None,
        "project": public_url + project.PROJECT_PATH if access.has_project else None,
        "receiverSecret": receiver_secret,
    }


def _demo_hook(arguments: list[str]) -> str | None:
    """``--demo URL``, or nothing."""
    return arguments[1] if arguments else None


def main() -> int:
    set_up_logging()
    settings = Settings.from_environment(os.environ)
    try:
        answer = asyncio.run(prepare(settings, _demo_hook(sys.argv[1:])))
    except (DomainError, SchemaError) as refusal:
        answer = {"refusal": str(refusal)}
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
