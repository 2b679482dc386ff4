"""Texts of the OpenAPI document that belong to no single route."""

ABOUT = """\
Holdfast keeps the sale units of real estate projects. Through the integration API an external system
creates and changes units, and learns what became of them. The status of a unit belongs to Holdfast: buyers
hold a unit and sign through the storefront, payment systems confirm deposits, and staff close sales in the
back office.

**A first unit.** Make a key with `holdfast key add --name "My system"`, then:

```sh
{first_put}
```

**Bodies** are JSON in UTF-8. Times are UTC, such as `2026-11-14T09:30:00.000Z`. Numbers are exact
decimals from end to end. Readers should pass over members that they do not know: later releases may add
some.

**Errors** are [problem details](/problems) (RFC 9457). A response to invalid input lists every
fault at once, up to 100. Checks come in this order: 401, 403, 405, 415, 413, 400, 422, 404, 412, 409.

**Every response** carries `X-Request-Id`: the one of the request, if it sent one of at most 128 plain
characters.

**Conditions** (`If-Match`, `If-None-Match`) count where one unit is read, replaced, changed or acted on, and
are described there. No other operation looks at them: neither the bulk route nor the storefront, nor the
actions on bookings, the settings of projects or layouts, nor endpoints and deliveries.

**Repeating is safe.** The same PUT twice stores the same unit once, a deposit is confirmed once, a hold
with an `Idempotency-Key` is made once, and nothing is ever half done.
"""

BEARER = """\
An API key, made with `holdfast key add` and displayed once. Each operation names the scopes that open
it:

- `integration`: the integration API. A key has this scope unless it is made with others.
- `payments`: to confirm deposits, and nothing else.
- `backoffice`: the back office, except for what only admins may do.
- `admin`: the whole back office, deposits included. It does not open the integration API.

A key may be limited to projects; the others do not exist for it.
"""

DELIVERY = """\
Answer with any 2xx status within ten seconds. Anything else, a redirect too, is tried again: eight attempts
over about an hour, the gap doubling from thirty seconds, each with the same `X-Service-Delivery` and the same
body, byte for byte. After the last the delivery is displayed as failed, and staff can send it again.

Every event arrives at least once, and so now and then twice: treat an id that you have seen as done. The
first attempts for one unit come in the order of its changes; a retry may come after later events, unless the
endpoint is `ordered`. Of two events of a unit the later has the later `createdAt`.

To check the signature, compute the HMAC-SHA256 of the timestamp, a dot and the raw body, with the
endpoint's secret as the key, and compare it in constant time with the hex digest in
`X-Service-Signature`. Refuse a timestamp that is more than 300 seconds away from now.
"""

EVENTS = {
    "unit.held": "A buyer opened the unit, and it is held for them.",
    "unit.released": "A hold or reservation lapsed or was cancelled; the unit is available again.",
    "unit.reserved": "The buyer signed and the deposit was confirmed.",
    "unit.sold": "The sale was closed.",
    "unit.available": "The unit was put on sale.",
    "unit.unavailable": "The unit was taken off sale or archived.",
    "ping": "A test that staff sent from the back office.",
}

HEADERS = {
    "If-Match": "Go on only if the unit's ETag is one of these; `*`: only if it exists.",
    "If-None-Match": "Go on only if the unit's ETag is none of these; `*`: only if it does not exist. With "
    "GET: 304 while the ETag still holds.",
    "X-Payment-Timestamp": "The Unix time of the signature, in seconds; at most 300 seconds from now.",
    "Idempotency-Key": "A random text, such as a UUID, that you send again with each repetition: however "
    "often the request arrives, it is carried out once.",
    "holdfast_visitor": "The visitor, as the pages of Holdfast mark one. Live holds are counted for each "
    "visitor; without it, for the address alone.",
}

STATUS_ROUTES = {
    "/healthz": ("getHealth", "Whether the process is alive", "200 as long as the process runs."),
    "/readyz": (
        "getReadiness",
        "Whether the server is ready",
        "200 once the database is reached and its schema is current; 503 before.",
    ),
    "/metrics": ("getMetrics", "Metrics for Prometheus", "In the text format of Prometheus."),
}

DELIVERY_HEADERS: dict[str, tuple[dict[str, str], str, str]] = {
    "User-Agent": ({}, "Names the version of the webhooks.", ""),
    "X-Service-Event": ({}, "The event.", ""),
    "X-Service-Delivery": (
        {"format": "uuid"},
        "The delivery; equal to `id` in the body, on every attempt.",
        "",
    ),
    "X-Service-Timestamp": ({"pattern": "^[0-9]+$"}, "Unix time of the attempt in seconds.", "1794648600"),
    "X-Service-Signature": (
        {"pattern": "^sha256=[0-9a-f]{64}$"},
        "HMAC-SHA256, in hex, of the timestamp, a dot and the raw body.",
        f"sha256={'9f86d081884c7d65' * 4}",
    ),
}
"""What their schemas say, what they are, and an example."""

RESPONSE_HEADERS = {
    "X-Request-Id": "Names the request in logs; the caller's own, if it sent an acceptable one.",
    "ETag": "The revision of the unit, for `If-Match` and `If-None-Match`.",
    "Retry-After": "Seconds to wait.",
    "WWW-Authenticate": 'With `error="invalid_token"` or `error="insufficient_scope"` where a key was sent.',
    "Allow": "The methods of the path.",
    "Cache-Control": "`no-store`: the response must not be cached.",
}

BOOKING_TOKEN = """\
The token of one booking, as it came with the hold. It opens this booking and nothing else, for the
booking's whole life.
"""  # noqa: S105 - a text

PAYMENT_SIGNATURE = (
    "`sha256=` and the HMAC-SHA256, in hexadecimal, with the payment secret as key, over "
    "`X-Payment-Timestamp`, a dot and the body exactly as it is sent."
)
