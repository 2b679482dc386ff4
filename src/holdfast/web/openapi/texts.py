"""What the API description says in words."""

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

**Errors** are [problem details](/problems) (RFC 9457). An answer to invalid input lists every fault at
once. Checks come in this order: 401, 403, 405, 415, 413, 400, 422, 404, 412, 409.

**Every answer** carries `X-Request-Id`: the one of the request, if it sent one of at most 128 plain
characters.

**Conditions** (`If-Match`, `If-None-Match`) count where one unit is read, replaced, changed or acted on, and
are described there. No other operation looks at them: neither the bulk route nor the storefront, nor the
actions on bookings, the settings of projects or layouts, nor endpoints and deliveries.

**Repeating is safe.** The same PUT twice stores the same unit once, a deposit is confirmed once, a hold
with an `Idempotency-Key` is made once, and nothing is ever half done.
"""

TAGS = {
    "Units": "Scope `integration`: create, replace, change and read the units of a project.",
    "Projects": "Scope `integration`: what units belong to.",
    "Events": "Scope `integration`: everything that happened to units, for catching up after an outage.",
    "Storefront": "For buyers: the units on sale, and one's own booking from the hold to the signature. "
    "No key needed; the token of a booking opens it.",
    "Payments": "For a payment system: it tells what was paid. No key needed; what it sends is signed. It is "
    "there if a payment page is set (`HOLDFAST_PAYMENT_URL`).",
    "Bookings": "Back office, scope `backoffice`: bookings, as staff and payment systems use them. No action "
    "here takes a condition such as `If-Match`.",
    "Sales": "Back office, scope `backoffice`: what staff do to a unit, and what was done to it.",
    "Settings": "Back office, scope `backoffice`: projects, how long their holds and reservations last, and "
    "their layout. None of it takes a condition such as `If-Match`.",
    "Webhooks": "Back office, scope `backoffice`: endpoints, which events are sent to, and the log of what "
    "was sent.",
    "Administration": "Back office, scope `admin`: keys, staff, and the audit trail.",
    "Operation": "For those who run Holdfast. No key needed.",
}

BEARER = """\
An API key, made with `holdfast key add` and displayed once. Each operation names the scope that it asks
for:

- `integration`: the integration API. A key has this scope unless it is made with others.
- `payments`: to confirm deposits, and nothing else.
- `backoffice`: the back office, except for what only admins may do.
- `admin`: the whole back office, deposits included. It does not open the integration API.

A key may be limited to projects; the others do not exist for it.
"""

FIELDS = {
    "id": "The unit's id.",
    "projectId": "The id of the project.",
    "code": "The unit's code: printable text in NFC with no space at either end. It is case-sensitive.",
    "type": "What kind of unit it is, in your words.",
    "areaSqm": "The area in square metres.",
    "priceSar": "The price in SAR.",
    "vatIncluded": "Whether the price includes VAT.",
    "vatRate": "The rate of VAT in percent.",
    "depositPercent": "The deposit in percent of the total.",
    "status": "Where the unit stands between free and sold.",
    "settableStatus": "Whether the unit is on sale. It can be set only while no buyer has the unit.",
    "bedrooms": "The number of bedrooms.",
    "bathrooms": "The number of bathrooms.",
    "deliveryYear": "The year of delivery.",
    "description": "What the unit is like.",
    "images": "Pictures. When sent, they replace all that were there.",
    "files": "Floor plans and other files. When sent, they replace all that were there.",
    "holdExpiresAt": "When the present hold ends; null if there is none.",
    "createdAt": "When the unit was created.",
    "updatedAt": "When the unit last changed.",
    "projectName": "The name of the project.",
    "projectSlug": "The slug of the project.",
    "ref": "A short reference for people, issued once and never changed.",
    "reference": "The booking reference that the buyer sees on the agreement and the receipt.",
    "errors": "Every fault of the request.",
    "pointer": "Where: `/priceSar` in the body, `/path/slug` in the path, `/query/limit` in the query, "
    "`/header/Idempotency-Key` in a header.",
}
"""What each name means, wherever it stands."""

PUT_UNIT = """\
Creates the unit, or replaces it if the project has one of this code.

- Optional fields that are left out are cleared, `images` and `files` too. Only `status` is left alone.
- `status` for a unit that is held, reserved or sold is refused: 409 `status-locked`.
- While a buyer is mid-booking (held or reserved), price, deposit and VAT cannot change: 409
  `terms-locked`. Sending the stored values again is fine.
- A new unit without `status` is `available`.
- A unit as it was read can be sent back whole, without its `status`; what the service itself sets is
  ignored.
"""

PATCH_UNIT = """\
Changes the fields that are in the body, and no others. `null` clears an optional field; `{}` changes
nothing.

`status`, price, deposit and VAT are refused in the same cases as with PUT. A refused PATCH changes no
field at all.
"""

LIST_UNITS = """\
The units of a project, ordered by code. Pages stay stable while units are written: follow `nextCursor`
until it is null. With `updatedSince` it lists what has changed since then.
"""

PUT_UNITS = """\
Creates or replaces many units in one request: a JSON array, or one JSON object on each line. Each item
is the body of a PUT, plus its `code`.

The body is read whole first, and a fault in its JSON stores nothing. After that each unit stands on its
own: those that are refused are in `results` with their problem, and the others are stored. A code that
is named twice is refused the second time.
"""

LIST_EVENTS = """\
Every committed unit event in one order that has no gaps and never changes. Keep `nextCursor` and send it
as `after` the next time. Without `after` the feed starts with the oldest event that is kept. A key that
is limited to projects sees only theirs. A cursor that is older than the events kept is 410.

With `endpoint` the feed has what is delivered to that endpoint, each item under the id of its delivery: a
receiver that was away catches up here, and passes over the ids that it knows.
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
