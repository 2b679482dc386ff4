"""What the API description says in words about endpoints and deliveries."""

FIELDS = {
    "endpointId": "The endpoint's id.",
    "url": "Where events are sent: https, without a user name or password. Its addresses must be public, "
    "unless the server's settings allow others; where they do, http is fine too.",
    "description": "What the endpoint is for, in your words.",
    "events": "The events that it receives. Left out when it is registered: all of them. A ping goes to its "
    "endpoint in any case, and cannot be chosen.",
    "projects": "The slugs of the projects whose events it receives; null: every project, those of the "
    "future included. For a key that is limited to projects, null stands for those.",
    "paused": "Nothing is sent, and what there is to send is kept until it is resumed.",
    "ordered": "A later event of a unit waits until the earlier one was delivered, has failed or was "
    "cancelled. Otherwise only the first attempts keep the order of a unit's events.",
    "maxInFlight": "How many attempts may be on their way at the same time, over all workers.",
    "state": "`failing`: nothing has arrived for a day, or the receiver answered 410. It is sent to all the "
    "same.",
    "failing": "Since when no attempt has succeeded, and why the last did not; null if the last succeeded.",
    "failingCause": "Why the last attempt failed, in plain words.",
    "goneAt": "When the receiver answered 410; null if it did not.",
    "secretId": "The id of the secret that signs now. Each attempt in the log names the one that signed it.",
    "secretRotatedAt": "When the present secret was made.",
    "secret": "The signing secret. It is displayed in this answer, and in no other.",
    "deliveryId": "Equal to `id` in the body and to the header `X-Service-Delivery`, on every attempt.",
    "event": "The event, or `ping`.",
    "unitCode": "The code of the unit; null for a ping.",
    "status": "`pending`: still to be sent, or to be sent again. `failed`: the last attempt of its series "
    "failed. `cancelled`: it will not be sent, and `reason` says why.",
    "deliveryCreatedAt": "When the unit changed, or the ping was asked for.",
    "nextAttemptAt": "When its next attempt is due; null unless it is pending. On a paused endpoint it may "
    "be past, and what waits for an earlier event of its unit may be sent before it.",
    "endedAt": "When it was delivered, failed or was cancelled; null while it is pending.",
    "reason": "Why it was cancelled; null unless it was.",
    "attemptCount": "How many attempts there were, of all series.",
    "lastStatusCode": "The status of the last answer; null if there was none.",
    "lastCause": "Why the last attempt failed, in plain words; null if it did not.",
    "body": "The body as it is sent, byte for byte the same on every attempt.",
    "attempts": "In the order in which they were made.",
    "number": "Counted from 1 over all series.",
    "trigger": "`first`: the first of the delivery. `retry`: after one that failed. `resend`: the first of a "
    "new series.",
    "durationMs": "From the start of name resolution to the end.",
    "statusCode": "The status of the receiver's answer; null if there was none.",
    "cause": "Why it failed, in plain words; null if it was delivered.",
    "signedBy": "The id of the secret that signed it; null if the request was never written.",
    "address": "The address that was contacted; null if none was.",
    "timings": "How long each part took; null where there was none, as on a connection that is used again.",
    "firstByteMs": "From the end of the request to the first byte of the answer.",
    "requestHeaders": "As they were sent; none if the request was never written.",
    "response": "The receiver's answer; null if there was none.",
    "responseBody": "The first 16 KiB as text in UTF-8; bytes that are not are replaced.",
    "bodyBase64": "The same bytes in base64, where they are not UTF-8; otherwise null.",
    "clipped": "Whether there was more, or may have been.",
    "since": "Those that failed at this time or later. UTC without an offset.",
    "until": "And before this time; left out or null: up to now.",
    "recoveredEvents": "Only deliveries of these events; left out or null: of all, pings included.",
    "recoveredUnitCode": "Only deliveries of units with this code.",
    "dryRun": "Count them and send nothing.",
    "count": "How many deliveries there are, or were.",
    "after": "The cursor of the feed behind which it was counted.",
    "upTo": "The cursor of the feed up to which it was counted.",
    "feedEvents": "Events of the feed that were for this endpoint.",
    "cancelled": "Deliveries that were cancelled.",
    "forgotten": "Events whose deliveries ended too long ago to be in the log.",
    "missing": "Events that have no delivery. It is always 0.",
    "agrees": "Whether feed and deliveries agree: nothing is missing.",
}
"""What each name means, wherever it stands."""

LIST_ENDPOINTS = """\
Endpoints, the oldest first. A key that is limited to projects sees those that are limited to some of its
projects.
"""

ADD_ENDPOINT = """\
Registers a URL to receive events. The answer has the signing secret, this once: keep it as you keep a
password. From the next change of a unit on, its events are sent there, signed, and tried again if need be.
"""

CHANGE_ENDPOINT = """\
Changes what is in the body, and nothing else; the same again changes nothing. What is queued of an event
that is no longer chosen is cancelled, and the log says why. What is queued is sent to the new URL, if that
changes.
"""

REMOVE_ENDPOINT = """\
Nothing is sent to it any more: what is queued is cancelled. What was sent stays in the log.
"""

ROTATE = """\
Gives the endpoint a new signing secret, in this answer and no other. It counts at once: every attempt from
now on is signed with it, those of deliveries that are already queued too. The old one signs nothing more.
"""

PING_ENDPOINT = """\
Sends a `ping` to the endpoint, whatever events that chose: signed, tried again and logged as every other
delivery. Its `id` leads to what became of it.
"""

RECOVER = """\
Sends anew every delivery of the endpoint that failed in a time, however many there are: each with the same
id and the same body, as a new series of attempts. With `dryRun`, in the body or as a parameter, they are
counted and nothing is sent.
"""

RECONCILIATION = """\
Holds the deliveries of the endpoint against the event feed: of the events that were for it, how many were
delivered, are pending, have failed or were cancelled. The numbers add up to `events`.
"""

LIST_DELIVERIES = """\
Deliveries, the latest first, of endpoints that are removed too. A key that is limited to projects sees those
of endpoints that are limited to some of its projects.
"""

GET_DELIVERY = "The delivery with every attempt: what was sent, what came back, and how long each part took."

RESEND_DELIVERY = """\
Sends the delivery again at once, whatever became of it: the same id, the same body, a new series of
attempts. Receivers should treat an id that they know as done.
"""
