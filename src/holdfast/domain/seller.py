"""The seller of the units: who buyers deal with, as pages show it and agreements name it. Pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from base64 import b64decode
from typing import NamedTuple

from holdfast.domain.errors import Fault

LARGEST_LOGO_BYTES = 256 * 1024
LARGEST_LOGO_PIXELS = 2000
IBAN_MESSAGE = (
    "This must be an IBAN, such as SA03 8000 0000 6080 1016 7519. Check it for a mistyped character."
)

_BETWEEN_DIGITS = re.compile(r"[\s()./\u002d\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
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
    """The path of a stored picture; in a change also a data URL."""

    @property
    def set_fields(self) -> dict[str, str]:
        return {name: value for name, value in self._asdict().items() if value is not None}

    @property
    def dialled(self) -> str:
        """Return the phone number as a telephone takes it."""
        return plain_number(self.phone or "")

    @property
    def spaced_iban(self) -> str:
        return " ".join(re.findall(".{1,4}", self.iban or ""))


NOBODY_NAMED = Seller()


def plain_number(text: str) -> str:
    """Return a number without what people write between its digits, which may be of any script."""
    return _BETWEEN_DIGITS.sub("", "".join(str(unicodedata.decimal(one, one)) for one in text.upper()))


def iban_fault(text: str) -> Fault | None:
    """Check the two digits that are computed from the others (ISO 13616)."""
    is_valid = int("".join(str(int(one, 36)) for one in text[4:] + text[:4])) % 97 == 1
    return None if is_valid else Fault("", IBAN_MESSAGE)


def read_logo(data_url: str) -> tuple[str, bytes] | None:
    """Return a path, which changes with the picture, and the picture.

    None for what is no PNG or JPEG, or is too large in bytes or pixels.
    """
    try:
        content = b64decode(data_url.partition(",")[2], validate=True)
    except ValueError:
        return None
    kind = "jpeg" if content.startswith(b"\xff\xd8\xff") else "png"
    sizes = [int.from_bytes(side) for pair in _SIZES[kind].findall(content) for side in pair]
    is_too_large = len(content) > LARGEST_LOGO_BYTES or max(sizes, default=0) > LARGEST_LOGO_PIXELS
    if is_too_large or min(sizes, default=0) == 0:
        return None
    return f"/logos/{hashlib.sha256(content).hexdigest()[:32]}.{kind}", content
