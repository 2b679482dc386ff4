"""JSON without a float anywhere: what is compared is what stood on the wire."""

import json
from decimal import Decimal
from typing import Any


def write(value: object) -> str:
    """JSON text in which a Decimal stands digit for digit."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {write(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(write(part) for part in value) + "]"
    return json.dumps(value)


def read(text: str) -> Any:
    """A number with a point or an exponent becomes a Decimal; one without stays an int."""
    return json.loads(text, parse_float=Decimal)
