"""Which database it is."""

from __future__ import annotations

from holdfast.settings import Settings


def url_of(settings: Settings) -> str:
    if settings.database_url is None:
        raise ValueError("The process that starts this one names the database.")
    return settings.database_url
