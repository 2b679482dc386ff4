"""The operations on deliveries in the back office."""

from __future__ import annotations

from typing import Any

from holdfast.web.backoffice.routes import PREFIX
from holdfast.web.openapi import webhook_examples as examples
from holdfast.web.openapi import webhook_texts as texts
from holdfast.web.openapi.answers import OF_STAFF, WITH_BODY, json_answer, problems
from holdfast.web.openapi.operations import Operation, Paths, body_of
from holdfast.web.openapi.subscriptions import OF_AN_ENDPOINT, of_webhooks

_OF_A_DELIVERY = (*OF_STAFF, "UnknownDelivery")
_FILTERS = (
    "deliveriesOf", "sentEvent", "unitCodeSent", "deliveryStatus", "codeClass", "since", "until",
)  # fmt: skip


def delivery_log_paths() -> Paths:
    endpoint, delivery = f"{PREFIX}/endpoints/{{id}}", f"{PREFIX}/deliveries/{{id}}"
    return {
        f"{endpoint}/recover": {"post": _recover()},
        f"{endpoint}/reconciliation": {"get": _reconciliation()},
        f"{PREFIX}/deliveries": {"get": _list()},
        delivery: {"get": _get()},
        f"{delivery}/resend": {"post": _resend()},
    }


def _list() -> Operation:
    page = {"deliveries": [examples.delivery()], "nextCursor": None}
    answers = {"200": json_answer("A page of deliveries.", "DeliveryList", page), **problems(*OF_AN_ENDPOINT)}
    return of_webhooks(
        "listDeliveries", "List deliveries", *_FILTERS, "cursor", "limit",
        description=texts.LIST_DELIVERIES, responses=answers,
    )  # fmt: skip


def _delivery_answer(description: str, example: Any) -> dict[str, Any]:
    return json_answer(description, "DeliveryWithAttempts", example)


def _get() -> Operation:
    answers = {
        "200": _delivery_answer("The delivery.", examples.delivery_with_attempts()),
        **problems(*_OF_A_DELIVERY),
    }
    return of_webhooks(
        "getDelivery", "Read a delivery with its attempts", "deliveryId",
        description=texts.GET_DELIVERY, responses=answers,
    )  # fmt: skip


def _resend() -> Operation:
    answers = {
        "202": _delivery_answer("The delivery, to be sent.", examples.resent_delivery()),
        **problems(*_OF_A_DELIVERY, *WITH_BODY, "EndpointRemoved"),
    }
    return of_webhooks(
        "resendDelivery", "Send a delivery again", "deliveryId",
        description=texts.RESEND_DELIVERY, responses=answers,
    )  # fmt: skip


def _recover() -> Operation:
    body = body_of(
        "Recovery",
        count=("Count them first", {**examples.recovery(), "dryRun": True}),
        send=("Send them", examples.recovery()),
    )
    answers = {
        "200": json_answer("Of a dry run: so many.", "Recovered", examples.recovered(is_dry=True)),
        "202": json_answer("They are to be sent.", "Recovered", examples.recovered(is_dry=False)),
        **problems(*OF_AN_ENDPOINT, *WITH_BODY),
    }
    return of_webhooks(
        "recoverDeliveries", "Send all again that failed", "endpointId", "dryRun",
        description=texts.RECOVER, requestBody=body, responses=answers,
    )  # fmt: skip


def _reconciliation() -> Operation:
    answers = {
        "200": json_answer("The numbers.", "Reconciliation", examples.reconciliation()),
        **problems(*OF_AN_ENDPOINT, "CursorExpired"),
    }
    return of_webhooks(
        "getReconciliation", "Hold deliveries against the feed", "endpointId", "countedAfter",
        description=texts.RECONCILIATION, responses=answers,
    )  # fmt: skip
