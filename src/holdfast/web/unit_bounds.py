"""The bounds of the contract's table of fields, for all who check them."""

from __future__ import annotations

from decimal import Decimal

from holdfast.web.fields import Bounds

TYPE_LENGTH = 100
DESCRIPTION_LENGTH = 10_000
MEDIA_AT_MOST = 100
LONGEST_URL = 2048
LONGEST_MEDIA_NAME = 500


AREA = Bounds(Decimal(0), Decimal("9999999.9999"), 4, least_is_out=True)
PRICE = Bounds(Decimal(0), Decimal("999999999999.99"), 2)
DEPOSIT = PRICE._replace(most=2 * PRICE.most)
"""All of a price to which as much VAT is added."""
PERCENTAGE = Bounds(Decimal(0), Decimal(100), 4)
ROOMS = Bounds(Decimal(0), Decimal(999), 0)
YEAR = Bounds(Decimal(1900), Decimal(2200), 0)
