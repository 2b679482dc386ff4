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
from holdfast.domain.refusals import Refusal
from holdfast.observability.logging import set_up_logging
from holdfast.processes.waiting import migrate_when_reachable
from holdfast.settings import Settings
from holdfast.storage.database import open_database
from holdfast.storage.refused import SchemaRefused


async def prepare(database_url: str, with_demo: bool) -> dict[str, Any]:
    await migrate_when_reachable(database_url)
    if not with_demo:
        return {}
    async with open_database(database_url, writers=1, readers=1) as database:
        access = await demo.fill(database)
    example = (
        {"path": demo.EXAMPLE_PATH, "body": demo.EXAMPLE_BODY, "holdPath": demo.EXAMPLE_HOLD_PATH}
        if access.has_project
        else None
    )
    return {"key": access.key, "example": example}


def main() -> int:
    set_up_logging()
    database_url = Settings.from_environment(os.environ).database_url
    assert database_url is not None
    try:
        answer = asyncio.run(prepare(database_url, with_demo="--demo" in sys.argv[1:]))
    except (Refusal, SchemaRefused) as refusal:
        answer = {"refusal": str(refusal)}
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
