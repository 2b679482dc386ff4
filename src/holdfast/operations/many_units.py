"""Many units at once, each standing on its own: the bulk route and the import of a file."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from holdfast.domain.errors import Refusal
from holdfast.operations.command import Command
from holdfast.operations.inventory import Inventory
from holdfast.operations.write_path import Outcome, Written

TRANSACTIONS_IN_FLIGHT = 2

OUTCOMES = ("created", "replaced", "unchanged", "refused")


class Item(Protocol):
    """One unit as it was sent, or why it was refused before anybody looked for it."""

    @property
    def command(self) -> Command | Refusal: ...


Sent = TypeVar("Sent", bound=Item)
Note = Callable[[Sequence[Sent], list[Outcome]], Awaitable[None]]


async def write_all(
    inventory: Inventory, batches: AsyncIterator[list[Sent]], note: Note[Sent], *, store: bool
) -> None:
    """While the database works on one transaction, the next is being read. Outcomes are noted in order."""
    async with asyncio.TaskGroup() as group:
        running: deque[tuple[list[Sent], asyncio.Task[list[Outcome]]]] = deque()
        async for items in batches:
            if len(running) == TRANSACTIONS_IN_FLIGHT:
                earlier, task = running.popleft()
                await note(earlier, await task)
            running.append((items, group.create_task(_write(inventory, items, store))))
        for earlier, task in running:
            await note(earlier, await task)


async def _write(inventory: Inventory, items: Sequence[Item], store: bool) -> list[Outcome]:
    commands = [item.command for item in items if not isinstance(item.command, Refusal)]
    written: Iterator[Outcome] = iter(())
    if commands:
        written = iter(await inventory.write_many(commands, store=store))
    return [item.command if isinstance(item.command, Refusal) else next(written) for item in items]


def outcome_name(outcome: Outcome) -> str:
    if not isinstance(outcome, Written):
        return "refused"
    if outcome.created:
        return "created"
    return "replaced" if outcome.changed else "unchanged"
