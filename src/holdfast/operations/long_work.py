"""Work that takes long without waiting for anything."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

# Some ten milliseconds' worth of things.
_MANY = 1000


async def worked_out(
    things: int, work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs
) -> Result:
    """In a thread if there are many things to work on, so that other requests have their turn."""
    if things <= _MANY:
        return work(*given, **named)
    return await asyncio.to_thread(work, *given, **named)
