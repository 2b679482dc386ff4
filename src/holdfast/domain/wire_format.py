"""The text of names and timestamps in APIs and files. Pure."""

from datetime import datetime
from functools import cache


@cache
def camel_case(name: str) -> str:
    """Return the name of a field in JSON."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@cache
def snake_case(name: str) -> str:
    """Return the name in the code of a field that JSON calls ``name``."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def format_timestamp(time: datetime) -> str:
    """Return ``2026-11-14T09:30:00.000Z``; all times are in UTC and in whole milliseconds."""
    return f"{time.isoformat(timespec='milliseconds')[:23]}Z"
