"""Commands on bookings, as the operations build them."""

from holdfast.domain import booking_actions
from holdfast.domain.audit import Author
from holdfast.domain.booking import Buyer, Draft
from holdfast.domain.holds import HoldPeriods
from holdfast.domain.transitions import Action, Caller
from holdfast.operations.booking_commands import BookingCommand
from holdfast.storage.units import UnitKey


def sign_booking(
    key: UnitKey, author: Author, number: int, buyer: Buyer, language: str = booking_actions.LANGUAGE
) -> BookingCommand:
    return BookingCommand(
        key,
        author,
        number,
        lambda snapshot, now: booking_actions.sign(snapshot, number, buyer, now, language),
    )


def cancel_booking(key: UnitKey, author: Author, number: int, caller: Caller) -> BookingCommand:
    return BookingCommand(
        key, author, number, lambda snapshot, now: booking_actions.cancel(snapshot, number, caller, now)
    )


def confirm_deposit(
    key: UnitKey,
    author: Author,
    number: int,
    caller: Caller,
    periods: HoldPeriods,
    payment_id: str | None = None,
) -> BookingCommand:
    return BookingCommand(
        key,
        author,
        number,
        lambda snapshot, now: booking_actions.confirm_deposit(
            snapshot, number, caller, periods, now, payment_id
        ),
    )


def close_booking(key: UnitKey, author: Author, number: int, caller: Caller) -> BookingCommand:
    return BookingCommand(
        key,
        author,
        number,
        lambda snapshot, now: booking_actions.close_sale_of_booking(snapshot, number, caller, now),
    )


def mark_refunded(key: UnitKey, author: Author, number: int) -> BookingCommand:
    return BookingCommand(
        key, author, number, lambda snapshot, now: booking_actions.mark_refunded(snapshot, number, now)
    )


def reissue_link(key: UnitKey, author: Author, number: int, token_hash: bytes) -> BookingCommand:
    return BookingCommand(
        key, author, number, lambda snapshot, _: booking_actions.reissue_link(snapshot, number, token_hash)
    )


def change_status(key: UnitKey, author: Author, action: Action, caller: Caller) -> BookingCommand:
    return BookingCommand(
        key,
        author,
        None,
        lambda snapshot, now: booking_actions.change_status(snapshot, key[1], action, caller, now),
    )


def close_sale(
    key: UnitKey, author: Author, caller: Caller, draft: Draft, buyer: Buyer | None
) -> BookingCommand:
    return BookingCommand(
        key,
        author,
        None,
        lambda snapshot, now: booking_actions.close_sale(snapshot, key[1], draft, buyer, caller, now),
    )
