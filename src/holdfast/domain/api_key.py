"""API keys and the bearer tokens of bookings."""

import base64
import hashlib
import secrets
import zlib
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

PREFIX = "hfk_"
_TOKEN_PREFIX = "hft_"  # noqa: S105
_TOKEN_BYTES = 24
_RANDOM_LENGTH = 36
_CHECKSUM_LENGTH = 6
_LENGTH = len(PREFIX) + _RANDOM_LENGTH + _CHECKSUM_LENGTH
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Scope(StrEnum):
    INTEGRATION = "integration"
    PAYMENTS = "payments"
    BACKOFFICE = "backoffice"
    ADMIN = "admin"


class Key(NamedTuple):
    id: UUID
    name: str
    hint: str
    """The first characters, by which a person recognizes the key."""
    scopes: frozenset[Scope]
    project_slugs: tuple[str, ...] | None
    """None: every project, those of the future included."""
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    def may_use(self, slug: str) -> bool:
        return self.project_slugs is None or slug in self.project_slugs


class IssuedKey(NamedTuple):
    key: Key
    text: str
    """The key itself: displayed once, never stored."""


def new_key_text() -> str:
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))
    return PREFIX + random + _checksum(random)


def is_well_formed(text: str) -> bool:
    """Check the form and the checksum, which needs no look-up in the database."""
    if len(text) != _LENGTH or not text.startswith(PREFIX) or not text.isascii():
        return False
    random, checksum = text[len(PREFIX) : -_CHECKSUM_LENGTH], text[-_CHECKSUM_LENGTH:]
    return _checksum(random) == checksum


def new_token_text() -> str:
    return token_from(secrets.token_bytes(_TOKEN_BYTES))


def token_from(random: bytes) -> str:
    return _TOKEN_PREFIX + base64.urlsafe_b64encode(random[:_TOKEN_BYTES]).decode().rstrip("=")


def token_hash(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogateescape")).digest()


def key_hash(text: str) -> bytes:
    """A plain hash is enough: the key carries over 200 random bits, so there is nothing to guess."""
    return hashlib.sha256(text.encode()).digest()


def key_hint(text: str) -> str:
    return text[: len(PREFIX) + 4]


def _checksum(random: str) -> str:
    number = zlib.crc32(random.encode())
    digits = ""
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
