"""Endpoints as a registrant uses them, and an inbox that takes in what is sent to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from threading import Thread
from typing import Any

import httpx

from tests.support.backoffice import BACKOFFICE
from tests.support.client import succeeded, with_body
from tests.support.server import PATIENCE_SECONDS, wait_until

ENDPOINTS = f"{BACKOFFICE}/endpoints"
DELIVERIES = f"{BACKOFFICE}/deliveries"
NOBODY_LISTENS = "http://127.0.0.1:9/hook"
"""A port at which no receiver of the tests is."""

ENDPOINT_FIELDS = [
    "id", "url", "description", "events", "projects", "paused", "ordered", "maxInFlight", "state", "failing",
    "secretId", "secretRotatedAt", "createdAt", "updatedAt",
]  # fmt: skip
DELIVERY_FIELDS = [
    "id", "event", "endpointId", "unitCode", "status", "createdAt", "nextAttemptAt", "endedAt", "reason",
    "attemptCount", "lastStatusCode", "lastCause",
]  # fmt: skip
ATTEMPT_FIELDS = [
    "number", "trigger", "startedAt", "endedAt", "durationMs", "statusCode", "cause", "secretId", "address",
    "timings", "request", "response",
]  # fmt: skip
ATTEMPTS = 2
IMPATIENT = {"HOLDFAST_ATTEMPTS": str(ATTEMPTS), "HOLDFAST_RETRY_FIRST_GAP_SECONDS": "0.05"}
"""Where a delivery has failed as soon as its second attempt did."""


@dataclass
class Registrar:
    """What one key does with endpoints and deliveries."""

    http: httpx.Client
    added: list[str] = field(default_factory=list)

    def ask_to_add(self, body: object) -> httpx.Response:
        return self.http.post(ENDPOINTS, **with_body(body))

    def add(self, url: str = NOBODY_LISTENS, **config: Any) -> dict[str, Any]:
        made = succeeded(self.ask_to_add({"url": url, **config}), 201)
        assert list(made) == [*ENDPOINT_FIELDS, "secret"]
        self.added.append(made["id"])
        return made

    def read(self, endpoint_id: str) -> dict[str, Any]:
        found = succeeded(self.http.get(f"{ENDPOINTS}/{endpoint_id}"))
        assert list(found) == ENDPOINT_FIELDS
        return found

    def ask_to_change(self, endpoint_id: str, changes: object) -> httpx.Response:
        return self.http.patch(f"{ENDPOINTS}/{endpoint_id}", **with_body(changes))

    def change(self, endpoint_id: str, **changes: Any) -> dict[str, Any]:
        return succeeded(self.ask_to_change(endpoint_id, changes))

    def post(self, endpoint_id: str, action: str, body: object = None) -> httpx.Response:
        return self.http.post(f"{ENDPOINTS}/{endpoint_id}/{action}", **with_body(body))

    def rotate(self, endpoint_id: str) -> dict[str, Any]:
        return succeeded(self.post(endpoint_id, "rotate-secret"))

    def ping(self, endpoint_id: str) -> dict[str, Any]:
        return succeeded(self.post(endpoint_id, "ping"), 202)

    def remove(self, endpoint_id: str) -> None:
        response = self.http.delete(f"{ENDPOINTS}/{endpoint_id}")
        assert (response.status_code, response.content) == (204, b""), response.text

    def remove_all(self) -> None:
        """What this one has added: endpoints that are left behind take in the events of all other tests."""
        for endpoint_id in self.added:
            self.http.delete(f"{ENDPOINTS}/{endpoint_id}")

    def reconciliation(self, endpoint_id: str, **query: str) -> dict[str, Any]:
        return succeeded(self.http.get(f"{ENDPOINTS}/{endpoint_id}/reconciliation", params=query))

    def deliveries(self, **query: str | int) -> dict[str, Any]:
        answer = succeeded(self.http.get(DELIVERIES, params=query))
        assert set(answer) == {"deliveries", "nextCursor"}
        assert all(list(one) == DELIVERY_FIELDS for one in answer["deliveries"])
        return answer

    def delivery(self, delivery_id: str) -> dict[str, Any]:
        found = succeeded(self.http.get(f"{DELIVERIES}/{delivery_id}"))
        assert list(found) == [*DELIVERY_FIELDS, "body", "attempts"]
        assert all(list(attempt) == ATTEMPT_FIELDS for attempt in found["attempts"])
        return found

    def ask_to_resend(self, delivery_id: str) -> httpx.Response:
        return self.http.post(f"{DELIVERIES}/{delivery_id}/resend")

    def resend(self, delivery_id: str) -> dict[str, Any]:
        return succeeded(self.ask_to_resend(delivery_id), 202)

    def ended(self, delivery_id: str, attempts: int = 1) -> dict[str, Any]:
        """The delivery once it is over, with so many attempts."""
        return self.when(delivery_id, lambda it: it["status"] != "pending" and it["attemptCount"] >= attempts)

    def tried(self, delivery_id: str, attempts: int = 1) -> dict[str, Any]:
        return self.when(delivery_id, lambda it: it["attemptCount"] >= attempts)

    def when(self, delivery_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def look() -> bool:
            found.update(self.delivery(delivery_id))
            return holds(found)

        wait_until(look)
        return found


@dataclass
class Post:
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


class Inbox:
    """A receiver in threads of its own, which answers as it is told to."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[tuple[str, str]] = []
        self.body = b""
        self._posts: Queue[Post] = Queue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def next(self) -> Post:
        """The next that arrives, if it does in time."""
        try:
            return self._posts.get(timeout=PATIENCE_SECONDS)
        except Empty:
            raise AssertionError("Nothing arrived.") from None

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(inbox) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - within the handler, self is another
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox._posts.put(Post(dict(self.headers.items()), body))
                self.send_response(inbox.status)
                for name, value in (*inbox.headers, ("Content-Length", str(len(inbox.body)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(inbox.body)

            def log_message(self, *_: object) -> None:
                """It says nothing."""

        return Handler


def pinged(registrar: Registrar, inbox: Inbox, status: int, endpoint_id: str | None = None) -> dict[str, Any]:
    """A ping that was answered with this status, once it is over."""
    inbox.status = status
    target = endpoint_id or registrar.add(inbox.url)["id"]
    return registrar.ended(registrar.ping(target)["id"])


@contextmanager
def an_inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    try:
        yield inbox
    finally:
        inbox.close()
