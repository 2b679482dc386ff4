"""Ids that follow from what they name."""

from hashlib import sha1
from uuid import UUID

_NAMED = ~(0xF000 << 64 | 0xC000 << 48)
_VERSION_5 = 0x5000 << 64 | 0x8000 << 48


def id_within(namespace: UUID, name: str) -> UUID:
    """The version 5 UUID of a name. The library's own function imports its hash anew at every call."""
    digest = sha1(namespace.bytes + name.encode(), usedforsecurity=False).digest()
    # Version and variant set here: the class takes twice as long for it.
    return UUID(int=int.from_bytes(digest[:16]) & _NAMED | _VERSION_5)
