"""The operations on endpoints in the back office."""

from __future__ import annotations

from typing import Any

from holdfast.domain.access import Scope
from holdfast.web.backoffice.routes import PREFIX
from holdfast.web.openapi import webhook_examples as examples
from holdfast.web.openapi import webhook_texts as texts
from holdfast.web.openapi.answers import OF_STAFF, WITH_BODY, answer, json_answer, problems
from holdfast.web.openapi.operations import Operation, Paths, body_of, key_with, operation

TAG = "Webhooks"
OF_AN_ENDPOINT = (*OF_STAFF, "UnknownEndpoint")
_ENDPOINT = f"{PREFIX}/endpoints/{{id}}"


def subscription_paths() -> Paths:
    return {
        f"{PREFIX}/endpoints": {"get": _list(), "post": _add()},
        _ENDPOINT: {"get": _get(), "patch": _change(), "delete": _remove()},
        f"{_ENDPOINT}/rotate-secret": {"post": _rotate()},
        f"{_ENDPOINT}/ping": {"post": _ping()},
    }


def of_webhooks(name: str, summary: str, *parameters: str, **members: Any) -> Operation:
    return operation(name, TAG, summary, *parameters, security=key_with(Scope.BACKOFFICE), **members)


def _endpoint_answer(description: str) -> dict[str, Any]:
    return json_answer(description, "Endpoint", examples.endpoint())


def _secret_answer(description: str) -> dict[str, Any]:
    shown = examples.endpoint_with_secret()
    return json_answer(description, "EndpointWithSecret", shown, "Cache-Control")


def _list() -> Operation:
    page = {"endpoints": [examples.endpoint()], "nextCursor": None}
    answers = {"200": json_answer("A page of endpoints.", "EndpointList", page), **problems(*OF_STAFF)}
    return of_webhooks(
        "listEndpoints", "List endpoints", "cursor", "limit",
        description=texts.LIST_ENDPOINTS, responses=answers,
    )  # fmt: skip


def _add() -> Operation:
    body = body_of(
        "NewEndpoint",
        chosen=("Some events", examples.new_endpoint()),
        everything=("Every event, each unit's in order", {"url": examples.URL, "ordered": True}),
    )
    answers = {
        "201": _secret_answer("Registered, with its secret."),
        **problems(*OF_STAFF, *WITH_BODY, "UnknownProject"),
    }
    return of_webhooks(
        "addEndpoint", "Register an endpoint",
        description=texts.ADD_ENDPOINT, requestBody=body, responses=answers,
    )  # fmt: skip


def _get() -> Operation:
    answers = {"200": _endpoint_answer("The endpoint."), **problems(*OF_AN_ENDPOINT)}
    return of_webhooks("getEndpoint", "Read an endpoint", "endpointId", responses=answers)


def _change() -> Operation:
    body = body_of(
        "EndpointChange",
        pause=("Pause it", {"paused": True}),
        choose=("Choose events", {"events": ["unit.sold"]}),
        move=("Another URL, for some projects", {"url": examples.URL, "projects": ["narjis-heights"]}),
    )
    answers = {
        "200": _endpoint_answer("The endpoint after the change."),
        **problems(*OF_STAFF, *WITH_BODY, "UnknownEndpointOrProject"),
    }
    return of_webhooks(
        "changeEndpoint", "Change an endpoint", "endpointId",
        description=texts.CHANGE_ENDPOINT, requestBody=body, responses=answers,
    )  # fmt: skip


def _remove() -> Operation:
    answers = {"204": answer("Removed."), **problems(*OF_AN_ENDPOINT)}
    return of_webhooks(
        "removeEndpoint", "Remove an endpoint", "endpointId",
        description=texts.REMOVE_ENDPOINT, responses=answers,
    )  # fmt: skip


def _rotate() -> Operation:
    answers = {
        "200": _secret_answer("The endpoint, with its new secret."),
        **problems(*OF_AN_ENDPOINT, *WITH_BODY),
    }
    return of_webhooks(
        "rotateSecret", "Give an endpoint a new secret", "endpointId",
        description=texts.ROTATE, responses=answers,
    )  # fmt: skip


def _ping() -> Operation:
    answers = {
        "202": json_answer("The delivery, to be sent.", "DeliveryWithAttempts", examples.ping_delivery()),
        **problems(*OF_AN_ENDPOINT, *WITH_BODY),
    }
    return of_webhooks(
        "pingEndpoint", "Send a ping", "endpointId", description=texts.PING_ENDPOINT, responses=answers
    )
