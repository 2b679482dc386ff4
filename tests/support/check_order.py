"""Requests that are wrong in one way or in two, and the answer of the check that comes first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from tests.support import exact_json
from tests.support.problems import problem

TOO_LONG = 1024 * 1024 + 1
ORDER = [(401,), (403,), (405, 415, 413), (400,), (422,), (404,), (412,), (409,)]

Fault = Callable[[Any], Any]
"""From a draft to the same one with a fault in it."""
Faults = Mapping[str, tuple[int, Fault]]
"""By name: the status that it is answered with, and the fault."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A request until faults are put into it."""

    credentials: str
    wrong_scope: str
    method: str
    body: dict[str, object]
    content_type: str = "application/json"
    cut_off: bool = False
    padding: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        raise NotImplementedError

    def send(self, http: httpx.Client) -> httpx.Response:
        text = exact_json.write(self.body)
        content = (text[:-1] if self.cut_off else text).ljust(self.padding)
        headers = {"Content-Type": self.content_type, **self.headers}
        if self.credentials:
            headers["Authorization"] = f"Bearer {self.credentials}"
        return http.request(self.method, self.url, content=content, headers=headers)


OF_ANY_REQUEST: Faults = {
    "no key": (401, lambda draft: replace(draft, credentials="")),
    "unknown key": (401, lambda draft: replace(draft, credentials="nonsense")),
    "wrong scope": (403, lambda draft: replace(draft, credentials=draft.wrong_scope)),
    "wrong content type": (415, lambda draft: replace(draft, content_type="text/plain")),
    "content encoding": (
        415,
        lambda draft: replace(draft, headers=draft.headers | {"Content-Encoding": "gzip"}),
    ),
    "too long": (413, lambda draft: replace(draft, padding=TOO_LONG)),
    "not json": (400, lambda draft: replace(draft, cut_off=True)),
}


def pairs(faults: Faults, apart: list[set[str]]) -> list[tuple[str, str]]:
    """Every two of which one comes first; those of ``apart`` undo each other, and cannot stand together."""
    return [
        (first, second)
        for first in faults
        for second in faults
        if _rank(faults, first) < _rank(faults, second) and {first, second} not in apart
    ]


def refused_in_order(
    draft: Draft, http: httpx.Client, faults: Faults, apart: list[set[str]], name: str
) -> httpx.Response:
    """Alone, and before every fault that is checked later; the answer to the fault alone."""
    status, fault = faults[name]
    for first, second in pairs(faults, apart):
        if first == name:
            problem(fault(faults[second][1](draft)).send(http), status)
    response: httpx.Response = fault(draft).send(http)
    problem(response, status)
    return response


def _rank(faults: Faults, name: str) -> int:
    return next(place for place, statuses in enumerate(ORDER) if faults[name][0] in statuses)
