"""What the API description says in words about selling: the storefront and the back office."""

from holdfast.domain.status import Action
from holdfast.web.openapi import texts as texts

BEARER = (
    "The token of one booking, as it came with the hold. It opens this booking and nothing else, for the "
    "booking's whole life."
)

FIELDS = {
    "code": texts.FIELDS["code"],
    "projectSlug": texts.FIELDS["projectSlug"],
    "reference": texts.FIELDS["reference"],
    "holdExpiresAt": "When the hold ended or will end; null if the unit was sold without a hold.",
    "slug": "By what the project is addressed: a-z and 0-9, with single hyphens between. It never changes.",
    "name": "The name of the project: printable text with no space at either end.",
    "totalSar": "The price, plus VAT where the price does not include it, rounded half up to 0.01.",
    "depositSar": "The deposit: its percentage of the total, rounded half up to 0.01; 0 if there is none.",
    "terms": "What the buyer agrees to, frozen when the unit was opened.",
    "bookingStatus": "`open` and `signed`: the unit is held. `lapsed`, `cancelled`, `refund-due` and "
    "`refunded`: the booking ended unsold; `refund-due` if a confirmed deposit is to be paid back.",
    "holdToken": "The bearer token of the booking. Only a hash of it is kept; while the hold lives, the same "
    "request with the same `Idempotency-Key` is answered with it again.",
    "url": "The buyer's link: it opens the page of their booking. It holds the token.",
    "token": "The bearer token of the booking. It is displayed in this answer, and kept nowhere.",
    "unitCode": "The code of the unit.",
    "buyer": "Null before the signature, and when the buyer's data were erased.",
    "reservedUntil": "When the reservation ends, or would have ended; null if there is none.",
    "signedAt": "When the buyer signed.",
    "depositConfirmedAt": "When the deposit was confirmed.",
    "closedAt": "When the sale was closed.",
    "buyerErasedAt": "When the buyer's personal data were erased.",
    "buyerName": "The buyer's name: printable text. Of all three, spaces at the ends are dropped.",
    "buyerEmail": "The buyer's e-mail address.",
    "buyerPhone": "The buyer's phone number: digits of any script, with a + before them if you like.",
    "until": "The new end, within 3650 days from now and not before the present one; the present one again "
    "changes nothing. UTC without an offset. Without it the end moves by one period.",
    "holdSeconds": "How long a hold lasts, in seconds with at most 3 decimals; null: as the server "
    "settles it.",
    "reservationDays": "How long a reservation lasts, in days with at most 6 decimals; null: as the server "
    "settles it.",
    "archived": "Whether staff have archived the unit. The integration API cannot put it on sale.",
    "bookingReference": "The booking that has the unit; null if none does.",
    "entryReference": "The booking that it was about, if one.",
    "action": "What was done: an action of the status table, `create`, `change` for the fields of a unit, "
    "`sign`, `mark-refunded`, `reissue-link` or `erase-buyer`. Later releases may add others.",
    "before": "What was, in the names of the unit's fields; only what changed. Null: it was not there.",
    "after": "What is, in the same names; only what changed.",
    "requestId": "The `X-Request-Id` of the request that did it.",
    "actorKind": "A key, staff, a buyer, the clock (an end that came), a payment system that told a payment, "
    "or a command at the server's console.",
    "actorId": "The id of the key or the payment, the reference of the buyer's booking, or the address of "
    "staff.",
    "actorName": "The name of the key.",
    "places": "Building by building, from the lowest floor up.",
    "units": "The places that you choose. Units that are left out stand where their code says.",
    "building": "Printable text with no space at either end. Null: not known.",
    "floor": "0 is the ground floor. Null: not known.",
    "position": "Counted from 1 on each floor. Null: not known.",
    "guessed": "Whether the place comes from the code alone. Sent back as it is, such a place stays a guess; "
    "changed, it counts as chosen.",
}
"""What each name means, wherever it stands."""

LIST_UNITS_ON_SALE = """\
The units of a project that buyers see, ordered by code: those that are available, held, reserved or sold.
Follow `nextCursor` until it is null.
"""

HOLD_UNIT = """\
Holds the unit for the caller and freezes its terms. A hold lasts as long as the project settles it, or else
the server: five minutes, unless that is set otherwise. The `token` of the answer opens the booking from then
on.

- If the unit is held, reserved, sold or not on sale: 409 `not-available`. Where a hold blocks,
  `holdExpiresAt` and `Retry-After` say when it ends.
- With `Authorization: Bearer <token>` of one's own live hold the answer is 200 with that hold.
- With the `Idempotency-Key` of an earlier request for the same unit from the same address, the answer is
  201 with the hold that was made then, token included. When that hold has lapsed: 409 `hold-lapsed`; when
  its booking is cancelled, reserved, sold or otherwise past the hold, or its token was issued anew: 409
  `transition-not-allowed`. The token of one's own live hold wins over the key.
- A visitor (known by a cookie of our pages) and an address may hold so many units at a time: 429
  `too-many-holds`. After a hold lapsed, the same visitor waits a moment before holding the same unit
  again: 429 `held-too-recently`.

Send no body, or an empty object.
"""

SIGN_BOOKING = """\
Names the buyer and signs the agreement. Signing again with the same details changes nothing; with others
it is 409 `transition-not-allowed`. A lapsed hold cannot be signed: 409 `hold-lapsed`.
"""

CANCEL_OWN_BOOKING = """\
Gives the hold up; the unit is available again. A booking that is cancelled already stays so: 204. A lapsed
one is 409 `hold-lapsed`; one that is reserved or sold is ended by staff only: 409
`transition-not-allowed`.
"""

LIST_STAFF_UNITS = """\
The units of a project, ordered by code, with what staff alone know of them: whether they are archived, until
when they are reserved, which booking has them. Follow `nextCursor` until it is null.
"""

LIST_BOOKINGS = "Bookings, the latest first. A key that is limited to projects sees only theirs."

CONFIRM_DEPOSIT = """\
The deposit has arrived: the unit is reserved. For a payment system with a key of scope `payments`, and for
staff. Repeating it changes nothing and is 200 whatever has become of the booking since. A second payment for
the same booking looks the same: it is 200, is not recorded, and is to be paid back by whoever received it.

If the booking had ended before the deposit arrived, late money is recorded if the buyer had signed: the
unit is held and reserved again where it is free; where it is not, the booking becomes `refund-due`, and the
answer says so. If the buyer had not signed, it is 409 `not-signed`, nothing is recorded, and the money is to
be paid back.
"""

CANCEL_BOOKING = """\
Ends the booking; the unit is available again. Where the deposit was confirmed, the booking becomes
`refund-due`.
"""

EXTEND = """\
Moves the end of the hold or reservation away: by one period, or to `until`, which can be repeated. It is
never moved closer.
"""

REISSUE_LINK = """\
Gives the booking a new token, for a buyer who has lost the link; the old one opens nothing from then on.
`url` is the link to give to the buyer.
"""

ERASE_BUYER = """\
Erases the buyer's name, e-mail address and phone number from a booking that is sold or has ended; terms,
times and status stay. Repeating it changes nothing. A booking that is `open`, `signed` or `reserved`, or
whose deposit is still due back, is 409 `transition-not-allowed`.

Late money for an erased booking makes it `refund-due`: no unit is reserved for somebody whom nobody knows.
"""

ACTIONS = {
    Action.OPEN: ("openUnit", "Hold a unit for a buyer"),
    Action.EXTEND: ("extendUnit", "Extend the hold or reservation of a unit"),
    Action.CANCEL_HOLD: ("cancelHold", "Cancel the hold of a unit"),
    Action.CONFIRM_DEPOSIT: ("confirmDepositOfUnit", "Confirm the deposit of a held unit"),
    Action.CANCEL_RESERVATION: ("cancelReservation", "Cancel the reservation of a unit"),
    Action.CLOSE_SALE: ("closeSale", "Close the sale of a unit"),
    Action.PUT_ON_SALE: ("putOnSale", "Put a unit on sale"),
    Action.TAKE_OFF_SALE: ("takeOffSale", "Take a unit off sale"),
    Action.ARCHIVE: ("archiveUnit", "Archive a unit"),
    Action.REVOKE_SALE: ("revokeSale", "Revoke a sale"),
}
"""What staff can do to a unit: the name of the operation, and its summary."""

ABOUT_ACTIONS = {
    Action.OPEN: "No limit of holds applies to staff. The link for the buyer comes from `reissueLink`.",
    Action.EXTEND: EXTEND.strip(),
    Action.CANCEL_HOLD: "Its booking ends.",
    Action.CONFIRM_DEPOSIT: "The buyer has signed and the deposit has arrived: the unit is reserved. A "
    "payment system uses the route of the booking, which can be repeated.",
    Action.CANCEL_RESERVATION: "Its booking ends, and becomes `refund-due`.",
    Action.CLOSE_SALE: "Of a reserved unit, without a body; or of an available one to a buyer who walked in "
    "and whom the body names, which makes a booking.",
    Action.PUT_ON_SALE: "An archived unit is archived no longer.",
    Action.TAKE_OFF_SALE: "If it is held or reserved, its booking ends; a confirmed deposit becomes "
    "`refund-due`.",
    Action.ARCHIVE: "It is off sale, and only staff can put it on sale again. If it is held or reserved, its "
    "booking ends; a confirmed deposit becomes `refund-due`. A unit is not archived twice.",
    Action.REVOKE_SALE: "A mistake, or a buyer who withdrew: the unit is unavailable, and a confirmed "
    "deposit becomes `refund-due`. It needs a key of scope `admin`.",
}

HISTORY = "Everything that was done to the unit, and by whom; the latest first."

CHANGE_PROJECT = "Changes what is in the body, and nothing else. Live holds and reservations keep their ends."

PUT_LAYOUT = """\
Replaces the whole layout. A layout as it was read can be sent back: guesses stay guesses, unless their place
was changed.
Every code must be one of the project's, and stand once. A body has 1 MiB at most, which is some 12 000 units:
of a larger project, send those whose place you chose, and leave out the others. Of very many faults, the
first 10 000 are told.
"""
