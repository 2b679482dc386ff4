"""Projects, to which units belong."""

import re
import unicodedata
from collections.abc import Collection
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.errors import Fault, Message

SLUG_PATTERN = "^[a-z0-9]+(-[a-z0-9]+)*$"
SLUG_LENGTH = (2, 100)
NAME_LENGTH = (1, 200)

_WORDS = re.compile("[a-z0-9]+")
_SLUG = re.compile(SLUG_PATTERN.replace("$", r"\Z"))


COUNTED_BELOW = 10**9
"""No version gets so far by counting. After a recovery that lost changes all go on from beyond it."""


class Project(NamedTuple):
    id: UUID
    slug: str
    name: str
    version: int
    created_at: datetime
    hold_seconds: float | None = None
    """None: the server's own."""
    reservation_days: float | None = None
    turn: int = 1
    """One more at every change; the version is that of what units show of their project."""
    listed: bool = False
    """Whether the list of projects shows it to buyers. Its address works in either case."""

    @property
    def first_unit_version(self) -> int:
        """Return the version of a new unit: a unit of the same code, and so id, may have been lost."""
        return 1 if self.version < COUNTED_BELOW else self.version


@lru_cache(maxsize=1000)
def slug_fault(slug: str, pointer: str = "/path/slug") -> Fault | None:
    shortest, longest = SLUG_LENGTH
    if not shortest <= len(slug) <= longest:
        message = "A slug must have %(least)s to %(most)s characters."
        return Fault(pointer, Message(message, {"least": shortest, "most": longest}))
    if not _SLUG.match(slug):
        return Fault(pointer, "A slug can contain only a-z and 0-9, with single hyphens in between.")
    return None


def name_fault(name: str) -> Fault | None:
    """Check the name of a project, an API key or a member of staff."""
    shortest, longest = NAME_LENGTH
    if shortest <= len(name) <= longest and name.isprintable() and name == name.strip():
        return None
    message = "A name is printable text of %(least)s to %(most)s characters."
    return Fault("/name", Message(message, {"least": shortest, "most": longest}))


def is_within_projects(own: Collection[str] | None, allowed: Collection[str] | None) -> bool:
    """Tell whether ``own`` projects lie within ``allowed`` ones; None is every project."""
    return allowed is None or (own is not None and set(own) <= set(allowed))


def suggested_slug(name: str) -> str:
    """Return a slug made of the Latin letters and digits of a name; empty if there are too few."""
    plain = unicodedata.normalize("NFKD", name[: NAME_LENGTH[1]]).encode("ascii", "ignore").decode().lower()
    slug = "-".join(_WORDS.findall(plain))[: SLUG_LENGTH[1]].rstrip("-")
    return slug if len(slug) >= SLUG_LENGTH[0] else ""
