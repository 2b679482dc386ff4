"""The schemas of the bodies about endpoints, as pydantic tells them and in our words."""

from __future__ import annotations

from holdfast.web.backoffice.endpoint_bodies import ENDPOINT, NEW_ENDPOINT, RECOVERY
from holdfast.web.openapi.forms import CODE_PATTERN, Schema, body_schema, reference
from holdfast.web.openapi.webhook_texts import FIELDS

_OF_A_RECOVERY = {
    "since": FIELDS["since"],
    "until": FIELDS["until"],
    "events": FIELDS["recoveredEvents"],
    "unitCode": FIELDS["recoveredUnitCode"],
    "dryRun": FIELDS["dryRun"],
}


def webhook_bodies() -> dict[str, Schema]:
    new, changed = body_schema(NEW_ENDPOINT, FIELDS), body_schema(ENDPOINT, FIELDS)
    recovery = body_schema(RECOVERY, _OF_A_RECOVERY, {"unitCode": CODE_PATTERN})
    for body, item in ((new, "EventName"), (changed, "EventName"), (recovery, "SentEventName")):
        body["properties"]["events"]["items"] = reference(item)
    return {"NewEndpoint": new, "EndpointChange": changed, "Recovery": recovery}
