"""The schemas of endpoints, deliveries and attempts."""

from __future__ import annotations

from holdfast.domain.delivery import DeliveryStatus, Trigger
from holdfast.domain.endpoint import IN_FLIGHT, LONGEST_DESCRIPTION, LONGEST_URL, PING, EndpointState
from holdfast.domain.event import EventName
from holdfast.web.openapi.forms import (
    READ_CODE,
    SLUG,
    TEXT,
    TIME,
    UUID,
    Schema,
    either_or_null,
    page,
    record,
    reference,
)
from holdfast.web.openapi.webhook_texts import FIELDS

_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_MILLISECONDS: Schema = {"type": "number", "minimum": 0}
_STATUS_CODE: Schema = {"type": "integer", "minimum": 100, "maximum": 999}
_URL: Schema = TEXT | {"maxLength": LONGEST_URL}


def webhook_schemas() -> dict[str, Schema]:
    endpoint, delivery = _endpoint(), _delivery()
    secret = {"secret": _told(TEXT, "secret")}
    return {
        "Endpoint": record(endpoint, description="A URL that is registered to receive events."),
        "EndpointWithSecret": record({**endpoint, **secret}),
        "EndpointState": TEXT | {"enum": [*EndpointState], "description": FIELDS["state"]},
        "EndpointTrouble": _trouble(),
        "EndpointList": page("endpoints", "Endpoint"),
        "SentEventName": TEXT | {"enum": [*EventName, PING], "description": FIELDS["event"]},
        "Delivery": record(delivery, description="One event for one endpoint."),
        "DeliveryStatus": TEXT | {"enum": [*DeliveryStatus], "description": FIELDS["status"]},
        "DeliveryList": page("deliveries", "Delivery"),
        "DeliveryWithAttempts": record({**delivery, **_log()}),
        **_attempt_schemas(),
        "Recovered": _recovered(),
        "Reconciliation": _reconciliation(),
    }


def _endpoint() -> dict[str, Schema]:
    return {
        "id": _told(UUID, "endpointId"),
        "url": _told(_URL, "url"),
        "description": _told(TEXT | {"maxLength": LONGEST_DESCRIPTION}, "description"),
        "events": _told(_list(reference("EventName")), "events"),
        "projects": _optional(_list(SLUG), "projects"),
        "paused": _told(_FLAG, "paused"),
        "ordered": _told(_FLAG, "ordered"),
        "maxInFlight": _told(
            {"type": "integer", "minimum": IN_FLIGHT[0], "maximum": IN_FLIGHT[1]}, "maxInFlight"
        ),
        "state": reference("EndpointState"),
        "failing": _optional(reference("EndpointTrouble"), "failing"),
        "secretId": _told(UUID, "secretId"),
        "secretRotatedAt": _told(TIME, "secretRotatedAt"),
        "createdAt": TIME,
        "updatedAt": TIME,
    }


def _trouble() -> Schema:
    return record({"since": TIME, "cause": _told(TEXT, "failingCause"), "goneAt": _optional(TIME, "goneAt")})


def _delivery() -> dict[str, Schema]:
    return {
        "id": _told(UUID, "deliveryId"),
        "event": reference("SentEventName"),
        "endpointId": UUID,
        "unitCode": _optional(READ_CODE, "unitCode"),
        "status": reference("DeliveryStatus"),
        "createdAt": _told(TIME, "deliveryCreatedAt"),
        "nextAttemptAt": _optional(TIME, "nextAttemptAt"),
        "endedAt": _optional(TIME, "endedAt"),
        "reason": _optional(TEXT, "reason"),
        "attemptCount": _told(_COUNT, "attemptCount"),
        "lastStatusCode": _optional(_STATUS_CODE, "lastStatusCode"),
        "lastCause": _optional(TEXT, "lastCause"),
    }


def _log() -> dict[str, Schema]:
    return {"body": _told(TEXT, "body"), "attempts": _told(_list(reference("Attempt")), "attempts")}


def _attempt_schemas() -> dict[str, Schema]:
    return {
        "Attempt": _attempt(),
        "AttemptTrigger": TEXT | {"enum": [*Trigger], "description": FIELDS["trigger"]},
        "AttemptTimings": _timings(),
        "AttemptRequest": _request(),
        "AttemptResponse": _response(),
        "LoggedHeaders": {
            "type": "object",
            "additionalProperties": {"anyOf": [TEXT, _list(TEXT)]},
            "description": "A name that came more than once has a list of values.",
        },
    }


def _attempt() -> Schema:
    return record(
        {
            "number": _told({"type": "integer", "minimum": 1}, "number"),
            "trigger": reference("AttemptTrigger"),
            "startedAt": TIME,
            "endedAt": TIME,
            "durationMs": _told(_MILLISECONDS, "durationMs"),
            "statusCode": _optional(_STATUS_CODE, "statusCode"),
            "cause": _optional(TEXT, "cause"),
            "secretId": _optional(UUID, "signedBy"),
            "address": _optional(TEXT, "address"),
            "timings": reference("AttemptTimings"),
            "request": reference("AttemptRequest"),
            "response": _optional(reference("AttemptResponse"), "response"),
        },
        description="One POST of a delivery.",
    )


def _timings() -> Schema:
    part = either_or_null(_MILLISECONDS)
    return record(
        {
            "dnsMs": part,
            "connectMs": part,
            "tlsMs": part,
            "firstByteMs": _optional(_MILLISECONDS, "firstByteMs"),
        },
        description=FIELDS["timings"],
    )


def _request() -> Schema:
    headers = reference("LoggedHeaders") | {"description": FIELDS["requestHeaders"]}
    return record({"method": TEXT | {"const": "POST"}, "url": _URL, "headers": headers, "body": TEXT})


def _response() -> Schema:
    return record(
        {
            "statusCode": _STATUS_CODE,
            "headers": reference("LoggedHeaders"),
            "body": _told(TEXT, "responseBody"),
            "bodyBase64": _optional(TEXT, "bodyBase64"),
            "clipped": _told(_FLAG, "clipped"),
        }
    )


def _recovered() -> Schema:
    return record(
        {
            "count": _told(_COUNT, "count"),
            "dryRun": _told(_FLAG, "dryRun"),
            "since": _told(TIME, "since"),
            "until": _optional(TIME, "until"),
        }
    )


def _reconciliation() -> Schema:
    return record(
        {
            "endpointId": UUID,
            "after": _told(TEXT, "after"),
            "upTo": _told(TEXT, "upTo"),
            "events": _told(_COUNT, "feedEvents"),
            "delivered": _COUNT,
            "pending": _COUNT,
            "failed": _COUNT,
            "cancelled": _told(_COUNT, "cancelled"),
            "forgotten": _told(_COUNT, "forgotten"),
            "missing": _told(_COUNT, "missing"),
            "agrees": _told(_FLAG, "agrees"),
        }
    )


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _told(schema: Schema, name: str) -> Schema:
    return schema | {"description": FIELDS[name]}


def _optional(schema: Schema, name: str) -> Schema:
    return either_or_null(schema) | {"description": FIELDS[name]}
