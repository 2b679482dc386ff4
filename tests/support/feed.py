"""Reads the event feed on from where it was last read."""

import itertools
from typing import Any

import httpx

from tests.support.client import Project, Unit

EVENTS = "/v1/integration/events"
TRIM_UP_TO_UNIT = """
    update event_feed set trimmed_position = (select max(position) from event where unit_id = $1::text::uuid)
"""


def page(http: httpx.Client, **query: str | int) -> dict[str, Any]:
    response = http.get(EVENTS, params=query)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    assert set(body) == {"events", "nextCursor"}
    assert isinstance(body["nextCursor"], str)
    return body


def read_on(http: httpx.Client, cursor: str | None, limit: int = 1000) -> tuple[list[dict[str, Any]], str]:
    """Everything after the cursor, and the cursor to go on from."""
    events: list[dict[str, Any]] = []
    while True:
        query: dict[str, str | int] = (
            {"limit": limit} if cursor is None else {"limit": limit, "after": cursor}
        )
        answer = page(http, **query)
        moved = cursor != answer["nextCursor"]
        cursor = str(answer["nextCursor"])
        if not answer["events"]:
            return events, cursor
        assert moved, "the feed does not go on"
        events += answer["events"]


class Feed:
    """One long reading of the feed, from which each test sees what concerns it."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._seen: list[dict[str, Any]] = []
        self.cursor: str | None = None

    def all(self) -> list[dict[str, Any]]:
        fresh, self.cursor = read_on(self._http, self.cursor)
        self._seen += fresh
        return self._seen

    def end(self) -> str:
        self.all()
        assert self.cursor is not None
        return self.cursor

    def of(self, where: Project | Unit) -> list[dict[str, Any]]:
        return concerning(where, self.all())

    def types_of(self, where: Project | Unit) -> list[str]:
        return [str(event["type"]) for event in self.of(where)]


def concerning(where: Project | Unit, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a test brought about itself: holds that others left behind lapse at any time."""
    return [event for event in events if _concerns(event["data"]["unit"], where)]


def _concerns(unit: dict[str, Any], where: Project | Unit) -> bool:
    if isinstance(where, Project):
        return bool(unit["projectSlug"] == where.slug)
    return bool((unit["projectSlug"], unit["code"]) == (where.project.slug, where.code))


def chain_is_unbroken(events: list[dict[str, Any]]) -> bool:
    """Each event of a unit begins where the one before it ended, and later."""
    pairs = list(itertools.pairwise(events))
    meets = all(a["data"]["unit"]["status"] == b["data"]["unit"]["previousStatus"] for a, b in pairs)
    return meets and all(a["createdAt"] < b["createdAt"] for a, b in pairs)
