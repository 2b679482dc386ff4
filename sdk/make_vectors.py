"""Writes vectors.json beside itself: deliveries, valid and not, that every implementation must agree on.

    python3 sdk/make_vectors.py

It needs nothing but Python, and computes the digests by itself: with the code of neither the server
nor the receiver kit. A test holds its output against the file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

FILE = Path(__file__).with_name("vectors.json")
SECRET = "a-secret-for-vectors-4yq0Zt7bqM2vX9eR"
OTHER_SECRET = "another-secret-for-vectors-1cUuJk8sLhWn"
SIGNED_AT = 1794648600
ABOUT = (
    "Deliveries and what a receiver must make of them. `body` is text whose bytes in UTF-8 are the raw body; "
    "`now` is the receiver's Unix time. `signatureRefusedFor` is the outcome of the signature alone, null "
    "where it is valid; `eventRefusedFor` is what else is wrong with the delivery, null where nothing is."
)
CHANGES = {
    "unit.held": ("available", "held"),
    "unit.released": ("held", "available"),
    "unit.reserved": ("held", "reserved"),
    "unit.sold": ("reserved", "sold"),
    "unit.available": ("unavailable", "available"),
    "unit.unavailable": ("available", "unavailable"),
}
BOOKED = ("unit.reserved", "unit.sold")


def digest(secret: str, timestamp: str, body: str) -> str:
    return hmac.new(secret.encode(), f"{timestamp}.{body}".encode(), hashlib.sha256).hexdigest()


def identifier(name: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"https://holdfast.invalid/vectors/{name}"))


def compact(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def body_of(event: str, code: str = "A-101") -> str:
    data: dict[str, Any] = {"unit": None, "booking": None}
    if event != "ping":
        data = {
            "unit": unit_of(event, code),
            "booking": {"reference": "HF-7K2M9Q"} if event in BOOKED else None,
        }
    created_at = "2026-11-14T09:30:00.000Z"
    return compact({"id": identifier(event + code), "type": event, "createdAt": created_at, "data": data})


def unit_of(event: str, code: str) -> dict[str, str]:
    previous, status = CHANGES[event]
    named = {"id": identifier(f"unit {code}"), "code": code, "projectSlug": "marina-heights"}
    return {**named, "status": status, "previousStatus": previous}


def vector(name: str, body: str, **different: Any) -> dict[str, Any]:
    """A valid delivery of `body`, but for what is `different`; a header that is None is left out."""
    timestamp = str(different.get("timestamp", SIGNED_AT))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Service-Webhooks/1",
        "X-Service-Event": field_of(body, "type"),
        "X-Service-Delivery": field_of(body, "id"),
        "X-Service-Timestamp": timestamp,
        "X-Service-Signature": f"sha256={digest(different.get('signed_with', SECRET), timestamp, body)}",
        **different.get("headers", {}),
    }
    return {
        "name": name,
        "secret": different.get("secret", SECRET),
        "now": different.get("now", SIGNED_AT),
        "headers": {header: value for header, value in headers.items() if value is not None},
        "body": different.get("received", body),
        "signatureRefusedFor": different.get("signature"),
        "eventRefusedFor": different.get("event"),
    }


def field_of(body: str, name: str) -> str:
    try:
        return str(json.loads(body)[name])
    except (KeyError, TypeError, ValueError):
        return "ping" if name == "type" else identifier("no event")


def valid() -> list[dict[str, Any]]:
    sold = body_of("unit.sold")
    return [
        *(vector(event, body_of(event)) for event in (*CHANGES, "ping")),
        vector("a code in Arabic", body_of("unit.held", "برج أ/١٠١")),
        vector("a code outside the basic plane, a quote and a backslash", body_of("unit.held", '🏠 "\\ é')),
        vector("a code with a line separator", body_of("unit.held", "A\u2028B")),
        vector("a secret that is not ASCII", sold, secret="sécret-سر-🔑", signed_with="sécret-سر-🔑"),
        vector("a secret longer than a block of SHA-256", sold, secret=SECRET * 4, signed_with=SECRET * 4),
        vector("white space and a newline are part of the body", f" {sold}\r\n"),
        vector("signed 300 seconds ago", sold, now=SIGNED_AT + 300),
        vector("signed 300 seconds ahead", sold, now=SIGNED_AT - 300),
        vector("a field that is not known yet", sold[:-1] + ',"later":{"id":1}}'),
        vector("a type that is not known yet", body_of("unit.sold").replace("unit.sold", "unit.renamed")),
    ]


def refused_signatures() -> list[dict[str, Any]]:
    body = body_of("unit.reserved", "برج ب/٢")
    right = digest(SECRET, str(SIGNED_AT), body)

    def signed(name: str, signature: str | None, reason: str) -> dict[str, Any]:
        return vector(name, body, headers={"X-Service-Signature": signature}, signature=reason)

    def stamped(name: str, timestamp: str | None, reason: str) -> dict[str, Any]:
        """The signature is right for that very text, so that nothing but the text is refused."""
        header = {"X-Service-Timestamp": timestamp}
        return vector(name, body, timestamp=timestamp or "", headers=header, signature=reason)

    return [
        signed("no signature", None, "signature-missing"),
        signed("an empty signature", "", "signature-missing"),
        signed("the scheme sha1", f"sha1={right[:40]}", "scheme-not-sha256"),
        signed("the scheme v1", f"v1={right}", "scheme-not-sha256"),
        signed("the scheme in capitals", f"SHA256={right}", "scheme-not-sha256"),
        signed("a digest without a scheme", right, "scheme-not-sha256"),
        signed("a scheme without a digest", "sha256=", "digest-missing"),
        signed("a scheme alone", "sha256", "digest-missing"),
        signed("a digest in capitals", f"sha256={right.upper()}", "digest-malformed"),
        signed("a digest cut short", f"sha256={right[:-1]}", "digest-malformed"),
        signed("a digest that is too long", f"sha256={right}0", "digest-malformed"),
        signed("a digest that is not hexadecimal", f"sha256={'é' * 64}", "digest-malformed"),
        signed("two signatures in one header", f"sha256={right}, sha256={right}", "digest-malformed"),
        stamped("no timestamp", None, "timestamp-missing"),
        stamped("an empty timestamp", "", "timestamp-missing"),
        stamped("a timestamp that is a word", "now", "timestamp-not-a-number"),
        stamped("a timestamp with a sign", f"+{SIGNED_AT}", "timestamp-not-a-number"),
        stamped("a timestamp below zero", "-1", "timestamp-not-a-number"),
        stamped("a timestamp with a fraction", f"{SIGNED_AT}.0", "timestamp-not-a-number"),
        stamped("a timestamp with an underscore", "1_794_648_600", "timestamp-not-a-number"),
        stamped("a timestamp of 25 digits", "1" * 25, "timestamp-not-a-number"),
        stamped("a timestamp in milliseconds", f"{SIGNED_AT}000", "too-far-ahead"),
        vector("signed 301 seconds ago", body, now=SIGNED_AT + 301, signature="too-old"),
        vector("signed 301 seconds ahead", body, now=SIGNED_AT - 301, signature="too-far-ahead"),
        vector(
            "old, and with a wrong digest too",
            body,
            now=SIGNED_AT + 301,
            secret=OTHER_SECRET,
            signature="too-old",
        ),
        *differing_digests(body),
    ]


def differing_digests(body: str) -> list[dict[str, Any]]:
    def received(name: str, other: str) -> dict[str, Any]:
        assert other != body
        return vector(name, body, received=other, signature="digest-differs")

    return [
        received("one character of the body changed", body.replace('"reserved"', '"reserveD"')),
        received("a body with a newline more", body + "\n"),
        received("a body cut short", body[:-1]),
        received("no body at all", ""),
        received("a body serialised anew, with spaces", json.dumps(json.loads(body), ensure_ascii=False)),
        received("a body serialised anew, with escapes", json.dumps(json.loads(body), separators=(",", ":"))),
        received("a body with its keys sorted", compact(dict(sorted(json.loads(body).items())))),
        vector("another secret", body, secret=OTHER_SECRET, signature="digest-differs"),
        vector("another case of the secret", body, secret=SECRET.upper(), signature="digest-differs"),
        vector(
            "another timestamp",
            body,
            headers={"X-Service-Timestamp": str(SIGNED_AT + 1)},
            signature="digest-differs",
        ),
    ]


def no_events() -> list[dict[str, Any]]:
    """The signature is valid, and yet there is nothing to act on."""
    sold, other_id = body_of("unit.sold"), identifier("another")
    strange = ["", "{}", "[]", "null", "0", '"text"', "{", sold[:-1], sold.replace('"data"', '"date"')]
    return [
        *(
            vector(f"a body that is no event: {body[:8]!r} ({len(body)})", body, event="body-not-an-event")
            for body in strange
        ),
        vector(
            "an id that is no UUID",
            sold.replace(identifier("unit.soldA-101"), "7"),
            event="body-not-an-event",
        ),
        vector("a time without a zone", sold.replace("00.000Z", "00.000"), event="body-not-an-event"),
        vector(
            "another id in the header", sold, headers={"X-Service-Delivery": other_id}, event="id-differs"
        ),
        vector("no id in the header", sold, headers={"X-Service-Delivery": None}, event="id-differs"),
        vector(
            "another event in the header", sold, headers={"X-Service-Event": "ping"}, event="type-differs"
        ),
        vector("no event in the header", sold, headers={"X-Service-Event": None}, event="type-differs"),
    ]


def document() -> str:
    vectors = [*valid(), *refused_signatures(), *no_events()]
    return json.dumps({"about": ABOUT, "vectors": vectors}, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")
