"""The test vectors that the server and the receiver kit share."""

import json
from typing import Any, NamedTuple

import pytest

from sdk.make_vectors import FILE


class Vector(NamedTuple):
    name: str
    secret: str
    now: int
    headers: dict[str, str]
    body: bytes
    signature_refused_for: str | None
    event_refused_for: str | None

    @property
    def timestamp(self) -> str | None:
        return self.headers.get("X-Service-Timestamp")

    @property
    def signature(self) -> str | None:
        return self.headers.get("X-Service-Signature")

    @property
    def refused_for(self) -> str | None:
        return self.signature_refused_for or self.event_refused_for


def _vector(one: dict[str, Any]) -> Vector:
    name, secret, now, headers, body, signature_refused_for, event_refused_for = one.values()
    return Vector(name, secret, now, headers, body.encode(), signature_refused_for, event_refused_for)


VECTORS = [_vector(one) for one in json.loads(FILE.read_text(encoding="utf-8"))["vectors"]]
SIGNED = [vector for vector in VECTORS if vector.signature_refused_for is None]
EVENTS = [vector for vector in SIGNED if vector.event_refused_for is None]


def named(name: str) -> Vector:
    (found,) = (vector for vector in VECTORS if vector.name == name)
    return found


def each(vectors: list[Vector]) -> list[Any]:
    return [pytest.param(vector, id=vector.name) for vector in vectors]
