"""How a receiver checks that a delivery is ours, to be copied; each of these is run by a test."""

from __future__ import annotations

import shlex

from holdfast.domain.api_key import IssuedKey, Scope
from holdfast.domain.signature import TOLERANCE_SECONDS

PYTHON = f'''\
import hashlib
import hmac
import time


def is_genuine(secret: str, headers, body: bytes) -> bool:
    """`headers` as your framework gives them, `body` the raw bytes, before anything parses them."""
    timestamp = headers.get("X-Service-Timestamp", "")
    signature = headers.get("X-Service-Signature", "")
    if not (timestamp.isascii() and timestamp.isdigit()):
        return False
    if abs(time.time() - int(timestamp)) > {TOLERANCE_SECONDS}:
        return False
    signed = timestamp.encode() + b"." + body
    expected = "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode())
'''

NODE = f"""\
const crypto = require("node:crypto");

// `headers` as Node gives them (names in lower case), `body` the raw Buffer, before anything parses it.
function isGenuine(secret, headers, body) {{
  const timestamp = headers["x-service-timestamp"] ?? "";
  const signature = Buffer.from(headers["x-service-signature"] ?? "");
  if (!/^[0-9]+$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > {TOLERANCE_SECONDS}) return false;
  const digest = crypto.createHmac("sha256", secret).update(`${{timestamp}}.`).update(body).digest("hex");
  const expected = Buffer.from(`sha256=${{digest}}`);
  return expected.length === signature.length && crypto.timingSafeEqual(expected, signature);
}}

module.exports = {{ isGenuine }};
"""

OPENSSL = """\
# body.json holds the body exactly as it came; the other three are the secret and two headers.
SECRET='hfs_…'
TIMESTAMP='…'    # X-Service-Timestamp
SIGNATURE='…'    # X-Service-Signature

EXPECTED="sha256=$( { printf '%s.' "$TIMESTAMP"; cat body.json; } \\
  | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)"
[ "$EXPECTED" = "$SIGNATURE" ] && echo genuine || echo forged
"""

_CURL = """\
SECRET='hfs_…'
BODY='{{"id":"00000000-0000-4000-8000-000000000000","type":"ping","createdAt":"2026-01-01T00:00:00.000Z",\
"data":{{"unit":null,"booking":null}}}}'
TIMESTAMP="$(date +%s)"
SIGNATURE="sha256=$(printf '%s.%s' "$TIMESTAMP" "$BODY" \\
  | openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)"

curl -i -X POST {url} \\
  -H 'Content-Type: application/json' \\
  -H 'X-Service-Event: ping' \\
  -H 'X-Service-Delivery: 00000000-0000-4000-8000-000000000000' \\
  -H "X-Service-Timestamp: $TIMESTAMP" \\
  -H "X-Service-Signature: $SIGNATURE" \\
  --data-raw "$BODY"
"""


def curl_snippet(url: str) -> str:
    """A signed ping, sent by hand."""
    return _CURL.format(url=shlex.quote(url))


# The first thing to paste into a terminal, for a key that was just made.

_PATHS = {
    Scope.INTEGRATION: "/v1/integration/projects",
    Scope.BACKOFFICE: "/v1/backoffice/projects",
    Scope.ADMIN: "/v1/backoffice/keys",
}
_DEPOSIT = "/v1/backoffice/bookings/REFERENCE/confirm-deposit"


def first_call(public_url: str, issued: IssuedKey) -> str:
    """It reads, where the key may read at all."""
    path = next((_PATHS[scope] for scope in _PATHS if scope in issued.key.scopes), None)
    method, path = ("", path) if path else ("-X POST ", _DEPOSIT)
    return f'curl {method}{public_url}{path} \\\n  -H "Authorization: Bearer {issued.text}"'
