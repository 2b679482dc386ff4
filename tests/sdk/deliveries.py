"""Deliveries as Holdfast sends them, made anew for each test, and how receivers in this process get them."""

import json
import time
from typing import Any, NamedTuple, Self
from uuid import uuid4

import httpx

from holdfast_webhooks import Receiver, WsgiReceiver
from sdk.make_vectors import SECRET, body_of, digest

URL = "http://receiver.invalid/hook"


class Delivery(NamedTuple):
    headers: dict[str, str]
    body: bytes

    def with_headers(self, **changed: str) -> Self:
        named = {f"X-Service-{name}": value for name, value in changed.items()}
        return self._replace(headers={**self.headers, **named})

    def signed_at(self, moment: int) -> Self:
        signature = f"sha256={digest(SECRET, str(moment), self.body.decode())}"
        return self.with_headers(Timestamp=str(moment), Signature=signature)


def delivery(event: str = "unit.sold", code: str = "A-101", **more: Any) -> Delivery:
    document = {**json.loads(body_of(event, code)), "id": str(uuid4()), **more}
    body = json.dumps(document, ensure_ascii=False).encode()
    named = {"X-Service-Event": document["type"], "X-Service-Delivery": document["id"]}
    return Delivery({"Content-Type": "application/json", **named}, body).signed_at(int(time.time()))


async def post(receiver: Receiver, sent: Delivery) -> int:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(receiver)) as client:
        return (await client.post(URL, headers=sent.headers, content=sent.body)).status_code


def post_to_wsgi(receiver: WsgiReceiver, sent: Delivery) -> int:
    with httpx.Client(transport=httpx.WSGITransport(receiver)) as client:
        return client.post(URL, headers=sent.headers, content=sent.body).status_code
