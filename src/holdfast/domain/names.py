"""Ids that follow from what they name."""

from hashlib import sha1
from uuid import UUID


def id_within(namespace: UUID, name: str) -> UUID:
    """The version 5 UUID of a name. The library's own function imports its hash anew at every call."""
    digest = sha1(namespace.bytes + name.encode(), usedforsecurity=False).digest()
    return UUID(bytes=digest[:16], version=5)
