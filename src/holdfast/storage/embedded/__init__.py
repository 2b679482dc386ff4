"""The embedded PostgreSQL: the real server, run from the programs of a wheel, in the data directory."""

from holdfast.storage.embedded.server import EmbeddedPostgres
from holdfast.storage.embedded.sharing import (
    serving_alone,
    serving_embedded,
    using_embedded,
    using_embedded_alone,
)
from holdfast.storage.refused import EmbeddedRefused

__all__ = [
    "EmbeddedPostgres",
    "EmbeddedRefused",
    "serving_alone",
    "serving_embedded",
    "using_embedded",
    "using_embedded_alone",
]
