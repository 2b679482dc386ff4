"""The errors of the domain. They know nothing of HTTP: ``web.problems`` maps them to responses.

DomainError
├── NoCredentials, InvalidApiKey, InvalidSignature
├── ScopeMissing
│   └── KeyLimited
├── InvalidInput
├── LoginFailed, SecondFactorNeeded
├── UnknownProject, UnknownUnit, UnknownBooking, UnknownKey, UnknownEndpoint, UnknownDelivery
├── UnknownStaff, InvalidSetupLink
├── PreconditionFailed
├── Conflict
│   ├── StatusLocked
│   ├── TermsLocked
│   ├── NotAvailable
│   ├── NotSigned
│   ├── HoldLapsed
│   └── TransitionNotAllowed
│       ├── BookingChanged
│       └── AgreementChanged
├── ProjectExists
├── StaffExists, LastAdmin
├── EndpointRemoved
├── CursorExpired
├── TooManyRequests
│   └── TooManyAttempts
├── TooManyHolds
│   ├── TooManyHoldsAtAddress
│   └── HeldTooRecently
├── SchemaNotCurrent
├── SecretsUnreadable
└── DatabaseUnavailable"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.message import AnyMessage, Message, MessageError

if TYPE_CHECKING:
    from holdfast.domain.status import Status


class DomainError(MessageError):
    """A reason to say no; its message is a sentence for the user."""


class NoCredentials(DomainError):
    def __init__(self, detail: AnyMessage = "Send your API key as `Authorization: Bearer <key>`.") -> None:
        super().__init__(detail)


class InvalidApiKey(DomainError):
    """One answer for an unknown, a revoked and an expired key, so that nobody learns which it is."""

    def __init__(self, detail: AnyMessage = "This API key is unknown, revoked or expired.") -> None:
        super().__init__(detail)


class InvalidSignature(DomainError):
    """What was sent is not signed, or not by whom we share the secret with, or too long ago."""


class ScopeMissing(DomainError):
    def __init__(self, scope: str) -> None:
        super().__init__(Message("This API key does not have the scope `%(scope)s`.", {"scope": scope}))
        self.scope = scope


class KeyLimited(ScopeMissing):
    """Who may see some projects only, or for a time only, must not make people who see all, for good."""

    def __init__(self, scope: str) -> None:
        DomainError.__init__(self, "This API key is limited to projects or in time, and staff are not.")
        self.scope = scope


class LoginFailed(DomainError):
    """One answer for an unknown account, a wrong password and a wrong code."""

    def __init__(self) -> None:
        super().__init__("The e-mail address, the password or the code is not right.")


class SecondFactorNeeded(DomainError):
    """The password was right. With the ticket the code alone is enough, for a few minutes."""

    def __init__(self, ticket: str) -> None:
        super().__init__("Type the code that your authenticator app shows for Holdfast.")
        self.ticket = ticket


_FAULTS_TOLD = 3
"""How many faults the sentence tells; ``faults`` has them all."""


class Fault(NamedTuple):
    pointer: str
    message: AnyMessage

    def sentence(self) -> str:
        place = self.pointer.strip("/")
        return f"{place}: {self.message}" if place else str(self.message)


class InvalidInput(DomainError):
    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        shown = [fault.sentence() for fault in self.first_faults()]
        more = self.more_faults()
        super().__init__(" ".join(shown if more is None else [*shown, str(more)]))

    @classmethod
    def at(cls, pointer: str, message: AnyMessage) -> InvalidInput:
        return cls([Fault(pointer, message)])

    def first_faults(self) -> Sequence[Fault]:
        return self.faults[:_FAULTS_TOLD]

    def more_faults(self) -> Message | None:
        """Return how many faults there are beyond the first, if any."""
        more = len(self.faults) - _FAULTS_TOLD
        return Message("And %(count)s more.", {"count": more}) if more > 0 else None


def raise_faults(faults: Iterable[Fault | None]) -> None:
    """Raise all faults together, if there are any."""
    if found := [fault for fault in faults if fault is not None]:
        raise InvalidInput(found)


class UnknownProject(DomainError):
    def __init__(self, slug: str) -> None:
        super().__init__(Message("There is no project `%(slug)s`.", {"slug": slug}))


class UnknownUnit(DomainError):
    def __init__(self, slug: str, code: str) -> None:
        message = "The project `%(slug)s` has no unit `%(code)s`."
        super().__init__(Message(message, {"slug": slug, "code": code}))


_ECHOED = 50
"""How much of what the caller typed is told back."""


class UnknownBooking(DomainError):
    """One answer for a reference that is unknown and a token that is not the booking's."""

    def __init__(self, reference: str) -> None:
        message = "There is no booking `%(reference)s` for this caller."
        super().__init__(Message(message, {"reference": reference[:_ECHOED]}))


class UnknownKey(DomainError):
    def __init__(self, key_id: object) -> None:
        super().__init__(Message("There is no key with the id %(id)s.", {"id": key_id}))


class UnknownEndpoint(DomainError):
    def __init__(self, endpoint_id: object) -> None:
        shown = str(endpoint_id)[:_ECHOED]
        super().__init__(Message("There is no endpoint with the id %(id)s.", {"id": shown}))


class UnknownDelivery(DomainError):
    def __init__(self, delivery_id: object) -> None:
        shown = str(delivery_id)[:_ECHOED]
        super().__init__(Message("There is no delivery with the id %(id)s.", {"id": shown}))


class UnknownStaff(DomainError):
    def __init__(self, person: object) -> None:
        shown = str(person)[:_ECHOED]
        super().__init__(Message("There is no member of staff `%(email)s`.", {"email": shown}))


class InvalidSetupLink(DomainError):
    """One answer for a link that is unknown, used, replaced or too old."""

    def __init__(self) -> None:
        super().__init__("This set-up link is no longer valid. Ask an admin for a new one.")


_NO_STATE = "The unit is not in the state that the request asks for: it does not exist."
_OTHER_STATE = (
    'The unit is not in the state that the request asks for: its ETag is "%(current)s", quotes included.'
)


class PreconditionFailed(DomainError):
    def __init__(self, current: str | None) -> None:
        super().__init__(Message(_OTHER_STATE, {"current": current}) if current else _NO_STATE)
        self.current = current


class Conflict(DomainError):
    """The unit's present status forbids it."""

    reason: str

    def __init__(
        self,
        detail: AnyMessage,
        status: Status,
        fields: Sequence[str] = (),
        hold_expires_at: datetime | None = None,
        now: datetime | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.fields = tuple(fields)
        self.hold_expires_at = hold_expires_at
        self.retry_after_seconds: float | None = None
        if hold_expires_at is not None and now is not None:
            self.retry_after_seconds = (hold_expires_at - now).total_seconds()


class StatusLocked(Conflict):
    reason = "status-locked"


class TermsLocked(Conflict):
    reason = "terms-locked"


class NotAvailable(Conflict):
    """Somebody else has the unit, or it is not on sale."""

    reason = "not-available"


class NotSigned(Conflict):
    reason = "not-signed"


class HoldLapsed(Conflict):
    reason = "hold-lapsed"


_NOT_IN_STATUS = "`%(action)s` is not possible while the unit is %(unit_status)s."
_NOT_FOR_CALLER = "`%(action)s` is not possible for this caller while the unit is %(unit_status)s."


class TransitionNotAllowed(Conflict):
    reason = "transition-not-allowed"

    def __init__(
        self,
        action: str,
        status: Status,
        archived: bool = False,
        hold_expires_at: datetime | None = None,
        now: datetime | None = None,
        *,
        detail: AnyMessage | None = None,
        others_may: bool = True,
    ) -> None:
        """``others_may``: whether it is the caller rather than the status that forbids it."""
        if detail is None:
            template = _NOT_FOR_CALLER if others_may else _NOT_IN_STATUS
            detail = Message(template, {"action": action, "unit_status": "archived" if archived else status})
        super().__init__(detail, status, (), hold_expires_at, now)


class BookingChanged(TransitionNotAllowed):
    """Somebody decided on what they had seen, and it is so no longer."""

    def __init__(self, booking_status: str, status: Status) -> None:
        message = "The booking has changed since it was read: it is %(booking_status)s now."
        Conflict.__init__(self, Message(message, {"booking_status": booking_status}), status)


class AgreementChanged(TransitionNotAllowed):
    """Nobody signs for what they have not read."""

    def __init__(self, status: Status) -> None:
        Conflict.__init__(
            self, "The agreement has changed since it was read: read it again, then sign.", status
        )


class ProjectExists(DomainError):
    def __init__(self, slug: str) -> None:
        super().__init__(Message("There is already a project `%(slug)s`.", {"slug": slug}))


class StaffExists(DomainError):
    def __init__(self, email: str) -> None:
        message = "There is already a member of staff with the e-mail address %(email)s."
        super().__init__(Message(message, {"email": email[:_ECHOED]}))


class LastAdmin(DomainError):
    def __init__(self) -> None:
        super().__init__("This is the only admin who can sign in; make somebody else an admin first.")


class EndpointRemoved(DomainError):
    reason = "endpoint-removed"

    def __init__(self) -> None:
        super().__init__("The endpoint of this delivery was removed; nothing can be sent to it any more.")


class CursorExpired(DomainError):
    def __init__(self) -> None:
        super().__init__("The events after this cursor are no longer kept; start again without a cursor.")


KEY_OVER_LIMIT = "This key has sent more requests than its limit allows."


class TooManyRequests(DomainError):
    def __init__(self, retry_after_seconds: float, detail: AnyMessage = KEY_OVER_LIMIT) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class TooManyAttempts(TooManyRequests):
    """To sign in."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(retry_after_seconds, "Too many attempts to sign in have failed; wait a little.")


class TooManyHolds(DomainError):
    """Nobody may take a whole building hostage."""

    def __init__(self, detail: AnyMessage, retry_after_seconds: float) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class TooManyHoldsAtAddress(TooManyHolds):
    """Perhaps others' holds: people at one place may share an address."""


class HeldTooRecently(TooManyHolds):
    pass


class SchemaNotCurrent(DomainError):
    retry_after_seconds = 1.0

    def __init__(self) -> None:
        super().__init__("The database is there, but its schema is not the one of this release.")


class SecretsUnreadable(DomainError):
    """None of the keys of this installation opens what was sealed."""

    retry_after_seconds = 60.0

    def __init__(self) -> None:
        super().__init__(
            "The signing secrets cannot be read with HOLDFAST_ENCRYPTION_KEYS; name the key that sealed them."
        )


class DatabaseUnavailable(DomainError):
    """Nothing of the request was stored, as far as is known; a repeated PUT or PATCH is safe."""

    retry_after_seconds = 1.0

    def __init__(
        self, detail: AnyMessage = "The database cannot be reached at this moment; try again shortly."
    ) -> None:
        super().__init__(detail)
