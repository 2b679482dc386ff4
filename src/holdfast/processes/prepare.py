"""What `serve` does before the web processes start, in a process of its own.

What is imported for it is gone with it, so that the supervisor stays small. The answer is one JSON object
on stdout.
"""

import asyncio
import json
import os
import sys
from typing import Any

from holdfast import demo
from holdfast.demo import DemoAccess
from holdfast.domain.refusals import Refusal
from holdfast.observability.logging import set_up_logging
from holdfast.operations.setup_links import offer_first_link, setup_url
from holdfast.operations.starting import note_start
from holdfast.processes.waiting import migrate_when_reachable
from holdfast.settings import Settings
from holdfast.storage.database import open_database
from holdfast.storage.refused import SchemaRefused


async def prepare(settings: Settings, with_demo: bool) -> dict[str, Any]:
    database_url, public_url = settings.database_url, settings.public_url
    assert database_url is not None
    assert public_url is not None
    await migrate_when_reachable(database_url)
    async with open_database(database_url, writers=1, readers=1) as database:
        await note_start(database, public_url, with_demo)
        if with_demo:
            return _demo_answer(await demo.fill(database), public_url)
        token = await offer_first_link(database)
    return {} if token is None else {"setupUrl": setup_url(public_url, token)}


def _demo_answer(access: DemoAccess, public_url: str) -> dict[str, Any]:
    example = {"path": demo.EXAMPLE_PATH, "body": demo.EXAMPLE_BODY, "holdPath": demo.EXAMPLE_HOLD_PATH}
    return {
        "key": access.key,
        "signIn": {"url": public_url + demo.PAGES, "email": demo.EMAIL, "password": access.password},
        "example": example if access.has_project else None,
    }


def main() -> int:
    set_up_logging()
    settings = Settings.from_environment(os.environ)
    try:
        answer = asyncio.run(prepare(settings, with_demo="--demo" in sys.argv[1:]))
    except (Refusal, SchemaRefused) as refusal:
        answer = {"refusal": str(refusal)}
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
