"""The parameters of what is about endpoints and deliveries."""

from __future__ import annotations

from typing import Any

from holdfast.web.openapi.example_unit import DELIVERY_ID, ENDPOINT_ID
from holdfast.web.openapi.forms import CODE, CURSOR, TEXT, TIME, UUID, parameter, reference
from holdfast.web.queries import CODE_CLASSES, UNANSWERED

WEBHOOK_PARAMETERS: dict[str, dict[str, Any]] = {
    "endpointId": parameter("path", "id", UUID, "The id of the endpoint.", str(ENDPOINT_ID)),
    "deliveryId": parameter("path", "id", UUID, "The id of the delivery.", str(DELIVERY_ID)),
    "feedOf": parameter(
        "query",
        "endpoint",
        UUID,
        "Only events that were for this endpoint, each under the id of its delivery, so that a receiver can "
        "tell which it has. 404 if there is none, or not for this key.",
    ),
    "deliveriesOf": parameter(
        "query",
        "endpoint",
        UUID,
        "Only deliveries of this endpoint, be it removed or not; 404 if there never was one, or not for "
        "this key.",
    ),
    "sentEvent": parameter("query", "event", reference("SentEventName"), "Only deliveries of this event."),
    "unitCodeSent": parameter("query", "unitCode", CODE, "Only deliveries of units with this code."),
    "deliveryStatus": parameter(
        "query", "status", reference("DeliveryStatus"), "Only deliveries of this status."
    ),
    "codeClass": parameter(
        "query",
        "code",
        TEXT | {"enum": [*CODE_CLASSES, UNANSWERED]},
        "Only deliveries whose last answer had such a status; `none`: those without an answer.",
    ),
    "since": parameter(
        "query", "since", TIME, "Only deliveries made at this time or later. UTC without an offset."
    ),
    "until": parameter("query", "until", TIME, "Only deliveries made before this time."),
    "countedAfter": parameter(
        "query", "after", CURSOR, "A cursor of the event feed: only events after it are counted."
    ),
}
