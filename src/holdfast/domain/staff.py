"""The people of the back office."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.errors import Fault, Message
from holdfast.domain.permissions import ROLE_PERMISSIONS, Permission, Role
from holdfast.domain.project import NAME_LENGTH

LANGUAGES = ("en", "ar")
DIGITS = ("latn", "arab")
EMAIL_LENGTH = (3, 254)

# Only a mail server knows which addresses exist. This rejects text that cannot be one.
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


class Theme(StrEnum):
    AUTO = "auto"
    LIGHT = "light"
    DARK = "dark"


class Preferences(NamedTuple):
    language: str = "en"
    digits: str = "latn"
    """The digits of numbers: ``latn`` (123) or ``arab`` (١٢٣)."""
    theme: Theme = Theme.AUTO


class Staff(NamedTuple):
    id: UUID
    email: str
    name: str
    role: Role
    preferences: Preferences
    has_second_factor: bool
    created_at: datetime
    disabled_at: datetime | None
    last_signed_in_at: datetime | None
    failures_seen_at: datetime
    """Up to when failed deliveries need not be announced any more."""
    has_password: bool = True
    """Not before they have used their set-up link."""

    def may(self, permission: Permission) -> bool:
        return permission in ROLE_PERMISSIONS[self.role]


class SessionTimes(NamedTuple):
    """A session ends when nobody has used it for so long, and in any case at that age."""

    idle: timedelta = timedelta(minutes=120)
    absolute: timedelta = timedelta(hours=12)


class OpenSession(NamedTuple):
    id: UUID
    address: str
    agent: str
    created_at: datetime
    last_seen_at: datetime


def email_key(email: str) -> str:
    return email.strip().casefold()


def email_fault(email: str) -> Fault | None:
    shortest, longest = EMAIL_LENGTH
    if shortest <= len(email) <= longest and email.isprintable() and _EMAIL.fullmatch(email):
        return None
    message = "An e-mail address must have an @, no spaces and at most %(count)s characters."
    return Fault("/email", Message(message, {"count": longest}))


def default_name(email: str) -> str:
    return email.strip().partition("@")[0][: NAME_LENGTH[1]]
