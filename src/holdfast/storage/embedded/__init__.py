"""The embedded PostgreSQL: the real server, run from the programs of a wheel, in the data directory."""

from holdfast.storage.embedded.server import (
    EmbeddedPostgres,
    serving_alone,
    serving_embedded,
    using_embedded,
    using_embedded_alone,
)
from holdfast.storage.errors import EmbeddedPostgresError

__all__ = [
    "EmbeddedPostgres",
    "EmbeddedPostgresError",
    "serving_alone",
    "serving_embedded",
    "using_embedded",
    "using_embedded_alone",
]
