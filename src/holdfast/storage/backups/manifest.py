"""What a backup says of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.domain.spelling import moment_text
from holdfast.storage.refused import BackupRefused

FORMAT = 1
"""One more whenever a release could not read what this one writes."""


class Manifest(NamedTuple):
    holdfast: str
    """The release that made it."""
    created_at: datetime
    """The moment that the backup shows, by the clock of the database."""
    schema: str
    postgresql: str
    counts: Mapping[str, int]
    """Rows of the tables that tell how much it is."""

    def document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "holdfast": self.holdfast,
            "createdAt": moment_text(self.created_at),
            "schema": self.schema,
            "postgresql": self.postgresql,
            "counts": dict(self.counts),
        }


def write_manifest(manifest: Manifest) -> bytes:
    return json.dumps(manifest.document(), indent=2).encode() + b"\n"


def read_manifest(text: bytes) -> Manifest:
    """Its checksum was right, so what cannot be read was written by another release."""
    try:
        found = json.loads(text)
        number = int(found["format"])
        if number > FORMAT:
            raise BackupRefused(
                f"The backup was made by Holdfast {found['holdfast']} in a newer format; restore it with that"
                " release, or a newer one."
            )
        return _manifest(found)
    except (KeyError, TypeError, ValueError):
        raise BackupRefused("The manifest of the backup cannot be read.") from None


def _manifest(found: Mapping[str, Any]) -> Manifest:
    return Manifest(
        holdfast=str(found["holdfast"]),
        created_at=datetime.fromisoformat(found["createdAt"]),
        schema=str(found["schema"]),
        postgresql=str(found["postgresql"]),
        counts={str(name): int(number) for name, number in found["counts"].items()},
    )
