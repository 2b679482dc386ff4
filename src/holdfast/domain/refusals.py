"""Every reason to say no, drawn as one tree. No HTTP here: ``web.problems`` maps these to answers.

Refusal
├── NoCredentials, KeyRefused, ScopeMissing
├── InvalidInput
├── UnknownProject, UnknownUnit, UnknownBooking, UnknownKey
├── PreconditionFailed
├── Conflict
│   ├── StatusLocked
│   ├── TermsLocked
│   ├── NotAvailable
│   ├── NotSigned
│   ├── HoldLapsed
│   └── TransitionNotAllowed
├── ProjectExists
├── CursorExpired
├── TooManyRequests
├── TooManyHolds
│   └── HeldTooRecently
├── SchemaNotCurrent
└── DatabaseAway
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from holdfast.domain.status import Status


class Refusal(Exception):
    """A reason to say no; its text is a sentence for the user."""


class NoCredentials(Refusal):
    def __init__(self, detail: str = "Send your API key as `Authorization: Bearer <key>`.") -> None:
        super().__init__(detail)


class KeyRefused(Refusal):
    """One answer for an unknown, a revoked and an expired key, so that nobody learns which it is."""

    def __init__(self, detail: str = "This API key is unknown, revoked or expired.") -> None:
        super().__init__(detail)


class ScopeMissing(Refusal):
    def __init__(self, scope: str) -> None:
        super().__init__(f"This API key does not have the scope `{scope}`.")
        self.scope = scope


_FAULTS_TOLD = 3
"""How many faults the sentence tells; ``faults`` has them all."""


class Fault(NamedTuple):
    pointer: str
    message: str

    def sentence(self) -> str:
        place = self.pointer.strip("/")
        return f"{place}: {self.message}" if place else self.message


class InvalidInput(Refusal):
    def __init__(self, faults: Sequence[Fault]) -> None:
        shown = [fault.sentence() for fault in faults[:_FAULTS_TOLD]]
        more = [f"And {len(faults) - _FAULTS_TOLD} more."] if len(faults) > _FAULTS_TOLD else []
        super().__init__(" ".join(shown + more))
        self.faults = tuple(faults)

    @classmethod
    def at(cls, pointer: str, message: str) -> InvalidInput:
        return cls([Fault(pointer, message)])


class UnknownProject(Refusal):
    def __init__(self, slug: str) -> None:
        super().__init__(f"There is no project `{slug}`.")


class UnknownUnit(Refusal):
    def __init__(self, slug: str, code: str) -> None:
        super().__init__(f"The project `{slug}` has no unit `{code}`.")


_ECHOED = 50
"""How much of what the caller typed is told back."""


class UnknownBooking(Refusal):
    """One answer for a reference that is unknown and a token that is not the booking's."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"There is no booking `{reference[:_ECHOED]}` for this caller.")


class UnknownKey(Refusal):
    def __init__(self, key_id: object) -> None:
        super().__init__(f"There is no key with the id {key_id}.")


class PreconditionFailed(Refusal):
    def __init__(self, current: str | None) -> None:
        state = f'its ETag is "{current}", quotes included' if current else "it does not exist"
        super().__init__(f"The unit is not in the state that the request asks for: {state}.")
        self.current = current


class Conflict(Refusal):
    """The unit's present status forbids it."""

    reason: str

    def __init__(
        self,
        detail: str,
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
        detail: str | None = None,
        others_may: bool = True,
    ) -> None:
        """``others_may``: whether it is the caller rather than the status that forbids it."""
        state = "archived" if archived else status
        caller = " for this caller" if others_may else ""
        told = detail or f"`{action}` is not possible{caller} while the unit is {state}."
        super().__init__(told, status, (), hold_expires_at, now)


class ProjectExists(Refusal):
    def __init__(self, slug: str) -> None:
        super().__init__(f"There is already a project `{slug}`.")


class CursorExpired(Refusal):
    def __init__(self) -> None:
        super().__init__("The events after this cursor are no longer kept; start again without a cursor.")


KEY_OVER_LIMIT = "This key has sent more requests than its limit allows."


class TooManyRequests(Refusal):
    def __init__(self, retry_after_seconds: float, detail: str = KEY_OVER_LIMIT) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class TooManyHolds(Refusal):
    """Nobody may take a whole building hostage."""

    def __init__(self, detail: str, retry_after_seconds: float) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class HeldTooRecently(TooManyHolds):
    pass


class SchemaNotCurrent(Refusal):
    retry_after_seconds = 1.0

    def __init__(self) -> None:
        super().__init__("The database is there, but its schema is not the one of this release.")


class DatabaseAway(Refusal):
    """Nothing of the request was stored, as far as is known; a repeated PUT or PATCH is safe."""

    retry_after_seconds = 1.0

    def __init__(
        self, detail: str = "The database cannot be reached at this moment; try again shortly."
    ) -> None:
        super().__init__(detail)
