"""Amounts as people type them."""

from __future__ import annotations

import re
from decimal import Decimal

# Digits of any script, with or without separators between thousands.
_AMOUNT = re.compile(r"\d{1,15}(\.\d{1,4})?")
_SEPARATORS = str.maketrans(
    {",": None, "٬": None, " ": None, "\N{NO-BREAK SPACE}": None, "\N{ARABIC DECIMAL SEPARATOR}": "."}
)


def amount_in(text: str) -> Decimal | None:
    """None where it is no amount."""
    plain = text.translate(_SEPARATORS)
    return Decimal(plain) if _AMOUNT.fullmatch(plain) else None
