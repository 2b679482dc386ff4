"""The stream of a project's page, as a browser reads it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.support.staff_client import Person


class Stream:
    def __init__(self, response: httpx.Response) -> None:
        self.last_id = ""
        self._lines = response.iter_lines()

    def next(self, name: str) -> dict[str, Any]:
        """The next event with this name."""
        while True:
            found, data = self._event()
            if found == name:
                return dict(json.loads(data))

    def change_of(self, code: str, version: int = 2) -> dict[str, Any]:
        """The first that has come so far: a unit that was made just before may be told as it was made."""
        while True:
            news = self.next("units")
            for unit in news["units"]:
                if unit["code"] == code and unit["version"] >= version:
                    return {**news, **unit}

    def rest(self) -> list[str]:
        return list(self._lines)

    def _event(self) -> tuple[str, str]:
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line:
                break
            name, _, value = line.partition(": ")
            fields[name] = value
        self.last_id = fields.get("id", self.last_id)
        return fields["event"], fields["data"]


@contextmanager
def watching(person: Person, page: str, query: str = "", **headers: str) -> Iterator[Stream]:
    """After the first heartbeat."""
    with person.stream("GET", f"{page}/live{query}", headers={**person.sent(), **headers}) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-store"
        stream = Stream(response)
        assert stream.next("heartbeat")["now"] > 0
        yield stream
