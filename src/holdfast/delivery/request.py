"""The request of an attempt, as bytes and as the log shows it. What all of an endpoint share is made once."""

from __future__ import annotations

from holdfast.delivery.attempted import Post
from holdfast.delivery.idle_connections import Origin
from holdfast.domain.delivery import USER_AGENT
from holdfast.domain.endpoint_url import EndpointUrl, read_url
from holdfast.domain.signature import sign

Headers = tuple[tuple[str, str], ...]

_MOST_TARGETS = 4096


class Target:
    """Where the deliveries of an endpoint go, and how each of their requests begins."""

    def __init__(self, url: EndpointUrl) -> None:
        self.url = url
        self.origin = Origin(url.scheme, url.host, url.port)
        self._headers: Headers = (
            ("Host", url.host_header),
            ("Content-Type", "application/json"),
            ("User-Agent", USER_AGENT),
        )
        lines = "".join(f"{name}: {value}\r\n" for name, value in self._headers)
        self._head = f"POST {url.request_target} HTTP/1.1\r\n{lines}"

    def request(self, post: Post, secret: str, timestamp: int) -> tuple[bytes, Headers]:
        delivery, signature = str(post.delivery_id), sign(secret, timestamp, post.body)
        head = (
            f"{self._head}X-Service-Event: {post.event}\r\nX-Service-Delivery: {delivery}\r\n"
            f"X-Service-Timestamp: {timestamp}\r\nX-Service-Signature: {signature}\r\n"
            f"Content-Length: {len(post.body)}\r\n\r\n"
        )
        headers = (
            *self._headers,
            ("X-Service-Event", post.event),
            ("X-Service-Delivery", delivery),
            ("X-Service-Timestamp", str(timestamp)),
            ("X-Service-Signature", signature),
            ("Content-Length", str(len(post.body))),
        )
        return head.encode("ascii") + post.body, headers


class Targets:
    """By URL. Those of a worker are few, and reading one costs more than a whole exchange."""

    def __init__(self) -> None:
        self._known: dict[str, Target] = {}

    def of(self, url: str) -> Target:
        """Raises ``UrlFault``."""
        target = self._known.get(url)
        if target is None:
            if len(self._known) >= _MOST_TARGETS:
                self._known.clear()
            target = self._known[url] = Target(read_url(url))
        return target
