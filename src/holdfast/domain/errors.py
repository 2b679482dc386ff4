"""The errors of the domain and their messages. ``web.problems`` maps them to responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.domain.status import Status


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence with values in it, kept as an id and parameters so that pages can translate it."""

    id: str
    """The English text with ``%(name)s`` for each parameter, as in gettext."""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.id % self.parameters if self.parameters else self.id


AnyMessage = Message | str
"""A plain text is a message without parameters: it is its own id."""


class MessageError(Exception):
    def __init__(self, message: AnyMessage) -> None:
        super().__init__(message)
        self.message = message


class FieldError(MessageError, ValueError):
    """The value of a field or parameter is not valid; pydantic collects these with its own."""


class DomainError(MessageError):
    """An error whose message is a sentence for the user."""

    text: str
    """The message of an error that is raised without one."""

    def __init__(self, message: AnyMessage | None = None) -> None:
        super().__init__(self.text if message is None else message)


class NoCredentials(DomainError):
    text = "Send your API key as `Authorization: Bearer <key>`."


class InvalidApiKey(DomainError):
    """The same for an unknown, a revoked and an expired key, so that nobody learns which it is."""

    text = "This API key is unknown, revoked or expired."


class InvalidSignature(DomainError):
    """A payment callback has no signature, a wrong one or an old one."""


class ScopeMissing(DomainError):
    text = "This API key does not have the scope `%(scope)s`."

    def __init__(self, scope: str) -> None:
        super().__init__(Message(self.text, {"scope": scope}))
        self.scope = scope


class KeyLimited(ScopeMissing):
    text = "This API key is limited to projects or expires, so it cannot manage staff."


class LoginFailed(DomainError):
    """The same for an unknown account, a wrong password and a wrong code."""

    text = "The e-mail address, password or code is incorrect."


class SecondFactorNeeded(DomainError):
    """The password was right. With the ticket the code alone is enough, for a few minutes."""

    text = "Enter the code that your authenticator app shows for Holdfast."

    def __init__(self, ticket: str) -> None:
        super().__init__()
        self.ticket = ticket


class Fault(NamedTuple):
    pointer: str
    message: AnyMessage

    def sentence(self) -> str:
        place = self.pointer.strip("/")
        return f"{place}: {self.message}" if place else str(self.message)


_MAX_FAULTS_IN_MESSAGE = 3


class InvalidInput(DomainError):
    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        sentences = [fault.sentence() for fault in self.first_faults()]
        more = self.more_faults()
        super().__init__(" ".join(sentences if more is None else [*sentences, str(more)]))

    @classmethod
    def at(cls, pointer: str, message: AnyMessage) -> InvalidInput:
        return cls([Fault(pointer, message)])

    def first_faults(self) -> Sequence[Fault]:
        return self.faults[:_MAX_FAULTS_IN_MESSAGE]

    def more_faults(self) -> Message | None:
        more = len(self.faults) - _MAX_FAULTS_IN_MESSAGE
        return Message("And %(count)s more.", {"count": more}) if more > 0 else None


def raise_faults(faults: Iterable[Fault | None]) -> None:
    if found := [fault for fault in faults if fault is not None]:
        raise InvalidInput(found)


class UnknownProject(DomainError):
    def __init__(self, slug: str) -> None:
        super().__init__(Message("There is no project `%(slug)s`.", {"slug": slug}))


class ProjectExists(DomainError):
    def __init__(self, slug: str) -> None:
        super().__init__(Message("There is already a project `%(slug)s`.", {"slug": slug}))


class UnknownUnit(DomainError):
    def __init__(self, slug: str, code: str) -> None:
        message = "The project `%(slug)s` has no unit `%(code)s`."
        super().__init__(Message(message, {"slug": slug, "code": code}))


_MAX_ID_LENGTH = 50


class _ErrorWithId(DomainError):
    """An error that repeats the beginning of an id that the caller sent."""

    def __init__(self, identifier: object) -> None:
        super().__init__(Message(self.text, {"id": str(identifier)[:_MAX_ID_LENGTH]}))


class UnknownBooking(_ErrorWithId):
    """The same for a reference that is unknown and a token that is not the booking's."""

    text = "There is no booking `%(id)s` that your key or token gives access to."


class UnknownKey(_ErrorWithId):
    text = "There is no key with the id %(id)s."


class UnknownEndpoint(_ErrorWithId):
    text = "There is no endpoint with the id %(id)s."


class UnknownDelivery(_ErrorWithId):
    text = "There is no delivery with the id %(id)s."


class UnknownStaff(_ErrorWithId):
    text = "There is no member of staff `%(id)s`."


class StaffExists(_ErrorWithId):
    text = "There is already a member of staff with the e-mail address %(id)s."


class InvalidSetupLink(DomainError):
    """The same for a link that is unknown, used, replaced or too old."""

    text = "This set-up link is no longer valid. Ask an admin for a new one."


_NO_STATE = "The unit is not in the state that the request asks for: it does not exist."
_OTHER_STATE = (
    'The unit is not in the state that the request asks for: its ETag is "%(current)s", quotes included.'
)


class PreconditionFailed(DomainError):
    def __init__(self, current: str | None) -> None:
        super().__init__(Message(_OTHER_STATE, {"current": current}) if current else _NO_STATE)
        self.current = current


class Conflict(DomainError):
    """What is stored forbids the action. ``status`` is that of the unit, if there is one."""

    def __init__(
        self,
        detail: AnyMessage,
        status: Status | None,
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
    pass


class TermsLocked(Conflict):
    pass


class NotAvailable(Conflict):
    """Somebody else has the unit, or it is not on sale."""


class NotSigned(Conflict):
    pass


class HoldLapsed(Conflict):
    pass


class TransitionNotAllowed(Conflict):
    pass


class BookingChanged(TransitionNotAllowed):
    """The booking is no longer as the caller saw it."""


class AgreementChanged(TransitionNotAllowed):
    text = "The agreement has changed since you read it: read it again, then sign."

    def __init__(self, status: Status) -> None:
        super().__init__(self.text, status)


class PaymentUsed(Conflict):
    pass


class IdempotencyKeyUsed(Conflict):
    """The request was carried out already, and its response is not for this caller, or not any more."""

    def __init__(self, detail: AnyMessage, status: Status | None = None, made_id: UUID | None = None) -> None:
        super().__init__(detail, status)
        self.made_id = made_id


class LastAdmin(DomainError):
    text = "This is the only admin who can sign in; make someone else an admin first."


class EndpointRemoved(DomainError):
    text = "The endpoint of this delivery was removed, so nothing can be sent to it."


class CursorExpired(DomainError):
    text = "The events after this cursor are no longer kept; start again without a cursor."


class TooManyRequests(DomainError):
    text = "This key has sent more requests than its limit allows."

    def __init__(self, retry_after_seconds: float, message: AnyMessage | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TooManyAttempts(TooManyRequests):
    text = "Too many failed sign-in attempts; wait a moment."


class TooManyHolds(TooManyRequests):
    """A visitor or an address holds as many units as it may, so that nobody takes a whole building."""


class TooManyHoldsAtAddress(TooManyHolds):
    """Some of the holds may be other people's who share the address."""


class HeldTooRecently(TooManyHolds):
    pass


class SchemaNotCurrent(DomainError):
    retry_after_seconds = 1.0
    text = "The database can be reached, but this release does not work with its schema."


class Overloaded(DomainError):
    text = "Too many changes are waiting, so this one was not stored; try again shortly."


class SecretsUnreadable(DomainError):
    retry_after_seconds = 60.0
    text = (
        "The signing secrets cannot be read with HOLDFAST_ENCRYPTION_KEYS; add the key that encrypted them."
    )


class DatabaseUnavailable(DomainError):
    """Nothing of the request was stored, as far as is known; a repeated PUT or PATCH is safe."""

    retry_after_seconds = 1.0
    text = "The database cannot be reached right now; try again shortly."
