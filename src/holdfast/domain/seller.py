"""The seller of the units: who buyers deal with, as pages show it and agreements name it. Pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import NamedTuple

LONGEST_TERMS = 10_000
LARGEST_LOGO_BYTES = 256 * 1024
LARGEST_LOGO_PIXELS = 2000

# Where a picture has its height and width. A JPEG may have a thumbnail, with a size of its own.
_SIZES = {
    "png": re.compile(rb"\A\x89PNG\r\n\x1a\n....IHDR(....)(....)", re.DOTALL),
    "jpeg": re.compile(rb"\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]..[\x08\x0c](..)(..)", re.DOTALL),
}


class Seller(NamedTuple):
    """A profile. Of a project: the fields that differ from those of the installation."""

    legal_name: str | None = None
    commercial_registration: str | None = None
    vat_number: str | None = None
    phone: str | None = None
    whatsapp: str | None = None
    email: str | None = None
    bank_name: str | None = None
    account_holder: str | None = None
    """None: the legal name."""
    iban: str | None = None
    terms: str | None = None
    """In addition to the clauses of the agreement."""
    logo: str | None = None
    """The name of a stored picture."""

    @property
    def set_fields(self) -> dict[str, str]:
        return {name: value for name, value in self._asdict().items() if value is not None}

    @property
    def dialled(self) -> str:
        """Return the phone number as a telephone takes it."""
        signs = (str(unicodedata.digit(one)) if one.isdecimal() else one for one in self.phone or "")
        return "".join(one for one in signs if one in "+0123456789")

    @property
    def spaced_iban(self) -> str:
        return " ".join(re.findall(".{1,4}", self.iban or ""))


NOBODY_NAMED = Seller()


def is_iban(text: str) -> bool:
    """Check the two digits that are computed from the others (ISO 13616)."""
    return int("".join(str(int(one, 36)) for one in text[4:] + text[:4])) % 97 == 1


class Logo(NamedTuple):
    name: str
    """It changes with the content."""
    media_type: str
    content: bytes


def read_logo(content: bytes) -> Logo | None:
    """Return None for what is no PNG or JPEG, or is too large in bytes or pixels."""
    kind = "jpeg" if content.startswith(b"\xff\xd8\xff") else "png"
    sizes = [int.from_bytes(side) for pair in _SIZES[kind].findall(content) for side in pair]
    is_too_large = len(content) > LARGEST_LOGO_BYTES or max(sizes, default=0) > LARGEST_LOGO_PIXELS
    if is_too_large or min(sizes, default=0) == 0:
        return None
    return Logo(f"{hashlib.sha256(content).hexdigest()[:32]}.{kind}", f"image/{kind}", content)
