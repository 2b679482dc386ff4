"""The seller of the units: who buyers deal with, as pages show it and agreements name it. Pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast.domain.errors import FieldError

LARGEST_LOGO_BYTES = 256 * 1024
LARGEST_LOGO_PIXELS = 2000
_LARGEST_PROFILE_BYTES = 16 * 1024
"""Of the color profile of a PNG, which is compressed: readers need up to a thousand times as much memory."""

_BETWEEN_DIGITS = re.compile(r"[\s()./\u002d\u2010-\u2013\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_NUMBERS = {
    "commercial_registration": (r"\d{10}", "A commercial registration number has 10 digits."),
    "vat_number": (r"3\d{13}3", "A VAT number has 15 digits; the first and the last are 3."),
    "whatsapp": (r"\+[1-9]\d{7,14}", "This must begin with + and the country code, such as +966501234567."),
    "iban": (
        r"[A-Z]{2}\d{2}[A-Z\d]{11,30}",
        "This must be an IBAN, such as SA03 8000 0000 6080 1016 7519. Check it for a mistyped character.",
    ),
}
# Where a picture has its width and height. A JPEG may have a thumbnail, with a size of its own.
_SIZES = {
    "png": re.compile(rb"\A\x89PNG\r\n\x1a\n....IHDR(....)(....)", re.DOTALL),
    "jpeg": re.compile(rb"\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf](?=..[\x08\x0c](..)(..))", re.DOTALL),
}
_ENDS = {"png": b"IEND\xaeB`\x82", "jpeg": b"\xff\xd9"}


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
    """The path of a stored picture."""

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
Profiles = Mapping[str | None, Seller]
"""By the slugs of projects; by None that of the installation."""
Logo = tuple[str, bytes]
"""A path, which changes with the picture, and the picture."""


def effective(profiles: Profiles, slug: str | None) -> Seller:
    """Return the profile that buyers of a project see: the installation's with the fields of the project."""
    return profiles.get(None, NOBODY_NAMED)._replace(**profiles.get(slug, NOBODY_NAMED).set_fields)


def plain_number(text: str) -> str:
    """Return a number without what people write between its digits, which may be of any script."""
    return _BETWEEN_DIGITS.sub("", "".join(str(unicodedata.decimal(one, one)) for one in text.upper()))


def read_number(field: str, text: str) -> str:
    """Return the plain number of this field."""
    number, (pattern, message) = plain_number(text), _NUMBERS[field]
    is_valid = re.fullmatch(pattern, number, re.ASCII) is not None
    if is_valid and field == "iban":
        # Two digits are computed from the others (ISO 13616).
        is_valid = int("".join(str(int(one, 36)) for one in number[4:] + number[:4])) % 97 == 1
    if not is_valid:
        raise FieldError(message)
    return number


def read_logo(data_url: str) -> Logo:
    """Return the picture of a data URL. It may be large in neither bytes nor pixels."""
    with suppress(ValueError):
        content = b64decode(re.sub("^data:image/(png|jpeg);base64,", "", data_url), validate=True)
        kind = "jpeg" if content.startswith(b"\xff\xd8\xff") else "png"
        sides = [int.from_bytes(side) for pair in _SIZES[kind].findall(content) for side in pair]
        profiles = map(int.from_bytes, re.findall(rb"(?=(....)iCCP)", content, re.DOTALL))
        is_small = len(content) <= LARGEST_LOGO_BYTES and max(profiles, default=0) <= _LARGEST_PROFILE_BYTES
        if is_small and _ENDS[kind] in content and 0 < min(sides) <= max(sides) <= LARGEST_LOGO_PIXELS:
            return f"/p/logos/{hashlib.sha256(content).hexdigest()[:32]}.{kind}", content
    raise FieldError(
        "A logo is an intact PNG or JPEG of at most 256 KB, 2000 by 2000 pixels and 16 KB of color profile."
    )
