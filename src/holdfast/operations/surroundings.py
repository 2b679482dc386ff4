"""What some commands must know beside their unit: its bookings, and what their buyer holds elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from holdfast.domain.booking import CLAIMING, HOLDING, Booking
from holdfast.domain.decision import Standing
from holdfast.domain.fairness import LiveHold
from holdfast.domain.status import LOCKED
from holdfast.operations.command import NOTHING, Command
from holdfast.storage import bookings
from holdfast.storage.database import Connection
from holdfast.storage.units import UnitKey

Standings = dict[UnitKey, Standing]


async def look_around(
    connection: Connection, standings: Standings, commands: Sequence[Command], lapsed: Sequence[UnitKey]
) -> set[UnitKey]:
    """Completes the standings; gives the keys of units that have changed since they were read."""
    asking = [command for command in commands if command.wanted is not NOTHING]
    if not asking and not lapsed:
        return set()
    overtaken = await _find_bookings(connection, standings, asking, lapsed)
    await _find_lately_lapsed(connection, standings, asking)
    await _find_live_holds(connection, standings, asking)
    return overtaken


def note_hold(standing: Standing, booking: Booking) -> None:
    """For the commands that follow in the same batch."""
    if booking.status not in HOLDING or booking.hold_expires_at is None:
        return
    places = zip(booking.holder, booking.slots, strict=True)
    for holder, slot in places:
        holds = None if holder is None else standing.live_holds.get(holder)
        if holds is not None and slot is not None:
            assert isinstance(holds, list)
            holds.append(LiveHold(slot, booking.hold_expires_at))


async def _find_bookings(
    connection: Connection, standings: Standings, asking: Sequence[Command], lapsed: Sequence[UnitKey]
) -> set[UnitKey]:
    wanting = {command.key for command in asking if command.wanted.claim}.union(lapsed)
    claimed = {
        unit.id: key for key in wanting if (unit := standings[key].unit) is not None and unit.status in LOCKED
    }
    numbered = {
        number: command.key for command in asking if (number := command.wanted.booking_number) is not None
    }
    if not claimed and not numbered:
        return set()
    unknown = set(claimed.values())
    overtaken = set()
    for turn, booking in await bookings.concerning(connection, list(claimed), list(numbered)):
        key = claimed.get(booking.unit_id) or numbered[booking.number]
        if standings[key].turn != turn:
            overtaken.add(key)
        if booking.status in CLAIMING:
            unknown.discard(key)
        standings[key] = _with_booking(standings[key], booking)
    return overtaken | unknown


async def _find_lately_lapsed(
    connection: Connection, standings: Standings, asking: Sequence[Command]
) -> None:
    recalling = [
        command for command in asking if command.wanted.visitor_id is not None or command.wanted.token_hash
    ]
    keys = {unit.id: command.key for command in recalling if (unit := standings[command.key].unit)}
    if not keys:
        return
    visitors = [visitor for command in recalling if (visitor := command.wanted.visitor_id)]
    token_hashes = [token_hash for command in recalling if (token_hash := command.wanted.token_hash)]
    for booking in await bookings.lately_lapsed(connection, list(keys), visitors, token_hashes):
        key = keys[booking.unit_id]
        standings[key] = _with_booking(standings[key], booking)


async def _find_live_holds(connection: Connection, standings: Standings, asking: Sequence[Command]) -> None:
    holders: set[UUID] = {holder for command in asking for holder in command.wanted.holders}
    if not holders:
        return
    holds = await bookings.live_holds(connection, list(holders))
    for command in asking:
        standings[command.key] = standings[command.key]._replace(live_holds=holds)


def _with_booking(standing: Standing, booking: Booking) -> Standing:
    if booking.status in CLAIMING:
        return standing._replace(booking=booking)
    return standing._replace(others={**standing.others, booking.number: booking})
