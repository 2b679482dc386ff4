"""A payment system for tests: it signs what it reports and can report it twice."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from holdfast.domain.signature import sign
from tests.support import exact_json
from tests.support.client import JSON, exact

CALLBACK = "/v1/payments/callback"
SECRET = "not a secret, for tests alone"
PAGE = "https://pay.example.com/deposits"
SETTINGS = {"HOLDFAST_PAYMENT_URL": PAGE, "HOLDFAST_PAYMENT_SECRET": SECRET}


def signed_headers(
    body: bytes, secret: str = SECRET, at: int | None = None, prefix: str = ""
) -> dict[str, str]:
    timestamp = int(time.time()) if at is None else at
    return {
        "X-Payment-Timestamp": str(timestamp),
        "X-Payment-Signature": sign(secret, timestamp, body, prefix),
    }


@dataclass(frozen=True)
class Till:
    http: httpx.Client

    def send(
        self, body: object, headers: Mapping[str, str] | None = None, method: str = "POST", query: str = ""
    ) -> httpx.Response:
        """Signed, unless the headers say otherwise; an empty one is left out."""
        text = body if isinstance(body, str) else exact_json.write(body)
        content = text.encode()
        sent = {"Content-Type": JSON, **signed_headers(content), **(headers or {})}
        named = {name: value for name, value in sent.items() if value}
        return self.http.request(method, CALLBACK + query, content=content, headers=named)

    def tell(self, payment_id: str, booking: Mapping[str, Any], amount: object = None) -> httpx.Response:
        """Of a booking as it is read; the amount is the deposit, unless it is another."""
        due = booking["terms"]["depositSar"] if amount is None else amount
        return self.send({"id": payment_id, "reference": booking["reference"], "amountSar": due})

    def told(self, payment_id: str, booking: Mapping[str, Any]) -> str:
        """What became of the booking."""
        answer = self.tell(payment_id, booking)
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = exact(answer)
        assert set(document) == {"reference", "status"}
        assert document["reference"] == booking["reference"]
        return str(document["status"])
