"""What some commands must know beside their unit: its bookings, and what their buyer holds elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from holdfast.domain.booking import CLAIMING, HOLDING, Booking
from holdfast.domain.decision import Standing, Wanted
from holdfast.domain.hold_limits import LiveHold
from holdfast.domain.status import LOCKED
from holdfast.operations.command import NOTHING, Command
from holdfast.storage import bookings
from holdfast.storage.database import Connection
from holdfast.storage.units import Counted, UnitKey

Standings = dict[UnitKey, Standing]
Asking = list[tuple[UnitKey, Wanted]]


def asking(commands: Sequence[Command]) -> Asking:
    """What commands want to know beside their units, for those that do."""
    return [(command.key, wanted) for command in commands if (wanted := command.wanted) is not NOTHING]


def counted(asked: Asking) -> Counted:
    """The holders whose live holds count."""
    addresses = {wanted.holder.address_id for _, wanted in asked}
    visitors = {wanted.holder.visitor_id for _, wanted in asked}
    return Counted(tuple(filter(None, addresses)), tuple(filter(None, visitors)))


async def look_around(
    connection: Connection,
    standings: Standings,
    asked: Asking,
    lapsed: Sequence[UnitKey],
    now: datetime,
    *,
    several: bool,
) -> set[UnitKey]:
    """Completes the standings; gives the keys of units that have changed since they were read.

    ``several``: some of the units have more than one command.
    """
    if not asked and not lapsed:
        return set()
    overtaken = await _find_bookings(connection, standings, asked, lapsed)
    overtaken |= await _find_keyed(connection, standings, asked)
    free = [(key, wanted) for key, wanted in asked if several or _is_free(standings[key]) or key in lapsed]
    await _find_lately_lapsed(connection, standings, free, now)
    return overtaken


def note_hold(standing: Standing, booking: Booking) -> None:
    """For the commands that follow in the same batch."""
    if not standing.live_holds or booking.status not in HOLDING or booking.hold_expires_at is None:
        return
    for holder, slot in zip(booking.holder, booking.slots, strict=True):
        if holder is not None and slot is not None and holder in standing.live_holds:
            holds = standing.live_holds[holder]
            assert isinstance(holds, list)
            holds.append(LiveHold(slot, booking.hold_expires_at))


def _is_free(standing: Standing) -> bool:
    """Only then is it of interest who asks for it; those who come too late cost no look-up.

    A unit that is not free may become so by another command of the batch, before theirs.
    """
    return standing.unit is not None and standing.unit.status not in LOCKED


async def _find_bookings(
    connection: Connection, standings: Standings, asked: Asking, lapsed: Sequence[UnitKey]
) -> set[UnitKey]:
    wanting = {key for key, wanted in asked if wanted.claim}.union(lapsed)
    claimed = {
        unit.id: key for key in wanting if (unit := standings[key].unit) is not None and unit.status in LOCKED
    }
    numbered = {wanted.booking_number: key for key, wanted in asked if wanted.booking_number is not None}
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


async def _find_keyed(connection: Connection, standings: Standings, asked: Asking) -> set[UnitKey]:
    """Bookings that the same requests have made before."""
    idempotency_ids = [wanted.idempotency_id for _, wanted in asked if wanted.idempotency_id]
    keys = {unit.id: key for key, wanted in asked if wanted.idempotency_id and (unit := standings[key].unit)}
    if not keys:
        return set()
    overtaken = set()
    for turn, booking in await bookings.keyed(connection, list(keys), idempotency_ids):
        key = keys[booking.unit_id]
        if standings[key].turn != turn:
            overtaken.add(key)
        standings[key] = _with_booking(standings[key], booking)
    return overtaken


async def _find_lately_lapsed(
    connection: Connection, standings: Standings, asked: Asking, now: datetime
) -> None:
    recalling = [(key, wanted) for key, wanted in asked if wanted.visitor_id is not None or wanted.token_hash]
    keys = {unit.id: key for key, _ in recalling if (unit := standings[key].unit)}
    if not keys:
        return
    since = now - timedelta(seconds=max(wanted.lapsed_within_seconds for _, wanted in recalling))
    visitors = [wanted.visitor_id for _, wanted in recalling if wanted.visitor_id]
    token_hashes = [wanted.token_hash for _, wanted in recalling if wanted.token_hash]
    for booking in await bookings.lately_lapsed(connection, list(keys), since, visitors, token_hashes):
        key = keys[booking.unit_id]
        standings[key] = _with_booking(standings[key], booking)


def _with_booking(standing: Standing, booking: Booking) -> Standing:
    if booking.status in CLAIMING:
        return standing._replace(booking=booking)
    return standing._replace(others={**standing.others, booking.number: booking})
