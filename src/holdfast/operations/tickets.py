"""Between the password and the code of a sign-in: a sealed ticket, good for a few minutes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from holdfast.domain.errors import SecretsUnreadable
from holdfast.storage.secrets import SecretBox
from holdfast.storage.staff import Account

_GOOD_FOR = timedelta(minutes=5)
_LONGEST = 2000


class _Ticket(msgspec.Struct):
    staff_id: UUID
    password: str
    """Which one was right: with another one the ticket is worth nothing."""
    issued_at: datetime


class Tickets:
    """They stay in the form of the page, so that nothing is stored for those who never come back."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def issue(self, account: Account) -> str:
        ticket = _Ticket(account.staff.id, _mark(account), account.read_at)
        return self._box.seal(msgspec.json.encode(ticket).decode()).decode()

    def staff_id(self, text: str) -> UUID | None:
        ticket = self._read(text)
        return None if ticket is None else ticket.staff_id

    def is_for(self, text: str, account: Account) -> bool:
        ticket = self._read(text)
        return (
            ticket is not None
            and (ticket.staff_id, ticket.password) == (account.staff.id, _mark(account))
            and account.read_at - ticket.issued_at.astimezone(UTC) < _GOOD_FOR
        )

    def _read(self, text: str) -> _Ticket | None:
        if len(text) > _LONGEST or not text.isascii():
            return None
        try:
            return msgspec.json.decode(self._box.open(text.encode()), type=_Ticket)
        except (SecretsUnreadable, msgspec.DecodeError):
            return None


def _mark(account: Account) -> str:
    return hashlib.sha256((account.password_hash or "").encode()).hexdigest()
