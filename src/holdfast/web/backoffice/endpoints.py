"""Endpoints: registered, changed, tried, given a new secret, removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from holdfast.domain.access import Key
from holdfast.domain.endpoint import Endpoint, IssuedSecret, Wishes
from holdfast.domain.refusals import Fault, UnknownProject
from holdfast.operations.subscribing import Subscribing
from holdfast.operations.webhook_documents import endpoint_document, issued_document, told_document
from holdfast.web.addresses import id_of
from holdfast.web.answer import NOT_KEPT, JsonAnswer
from holdfast.web.authors import author_of
from holdfast.web.backoffice.calls import id_alone, id_without_fields
from holdfast.web.backoffice.endpoint_bodies import (
    ENDPOINT,
    ENDPOINT_NAMES,
    NEW_ENDPOINT,
    NEW_ENDPOINT_NAMES,
)
from holdfast.web.call import Call
from holdfast.web.checking import checked, refuse_faults
from holdfast.web.cursors import moment_and_id_cursor_text
from holdfast.web.json_bodies import json_body
from holdfast.web.queries import Query, refuse_query

_URL = "/url"
_NEW = (NEW_ENDPOINT, NEW_ENDPOINT_NAMES)
_CHANGED = (ENDPOINT, ENDPOINT_NAMES)


class EndpointRoutes:
    def __init__(self, subscribing: Subscribing) -> None:
        self._subscribing = subscribing

    async def list(self, call: Call) -> JsonAnswer:
        """The oldest first."""
        faults: list[Fault] = []
        query = Query(call, faults)
        after, limit = query.moment_and_id_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        page = await self._subscribing.page(after, call.key.project_slugs, limit)
        document = {
            "endpoints": [endpoint_document(endpoint) for endpoint in page[:limit]],
            "nextCursor": _cursor_after(page[limit - 1]) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def add(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        refuse_query(call, faults)
        values = await _chosen(self._subscribing, call.key, _NEW, body, faults)
        # None of the projects named: every one that the key may use.
        wishes = Wishes(**{"project_slugs": call.key.project_slugs, **values})
        return _with_secret(await self._subscribing.add(wishes, author_of(call)), 201)

    async def get(self, call: Call) -> JsonAnswer:
        return JsonAnswer(
            endpoint_document(await self._subscribing.find(id_alone(call), call.key.project_slugs))
        )

    async def change(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        endpoint_id = id_of(call, faults)
        refuse_query(call, faults)
        changes = await _chosen(self._subscribing, call.key, _CHANGED, body, faults)
        slugs = call.key.project_slugs
        return JsonAnswer(
            endpoint_document(await self._subscribing.change(endpoint_id, changes, author_of(call), slugs))
        )

    async def remove(self, call: Call) -> Response:
        await self._subscribing.remove(id_alone(call), author_of(call), call.key.project_slugs)
        return Response(status_code=204)

    async def rotate(self, call: Call) -> JsonAnswer:
        endpoint_id = await id_without_fields(call)
        slugs = call.key.project_slugs
        return _with_secret(await self._subscribing.rotate(endpoint_id, author_of(call), slugs), 200)

    async def ping(self, call: Call) -> JsonAnswer:
        endpoint_id = await id_without_fields(call)
        made = await self._subscribing.ping(endpoint_id, author_of(call), call.key.project_slugs)
        return JsonAnswer(told_document(made, ()), 202)


async def _chosen(
    subscribing: Subscribing,
    key: Key,
    form: tuple[TypeAdapter[Any], frozenset[str]],
    body: Any,
    faults: list[Fault],
) -> dict[str, Any]:
    """What a body chooses, in the domain's names and within the key's projects."""
    found = checked(form[0], body, form[1])
    values = found if isinstance(found, dict) else {}
    faults = faults if isinstance(found, dict) else [*faults, *found]
    others = [slug for slug in values.get("projects") or () if not key.may_use(slug)]
    if faults or others:
        refuse_faults([*faults, *await _url_faults(subscribing, body, faults)])
        raise UnknownProject(others[0])
    if "projects" in values:
        values["project_slugs"] = values.pop("projects") or key.project_slugs
    return values


async def _url_faults(subscribing: Subscribing, body: Any, faults: Sequence[Fault]) -> list[Fault]:
    """Of a URL whose form is right, to be told with the rest: else it is found when it is saved."""
    url = body.get("url") if isinstance(body, dict) else None
    if not isinstance(url, str) or any(fault.pointer == _URL for fault in faults):
        return []
    message = await subscribing.url_fault(url)
    return [] if message is None else [Fault(_URL, message)]


def _with_secret(issued: IssuedSecret, status: int) -> JsonAnswer:
    return JsonAnswer(issued_document(issued), status, NOT_KEPT)


def _cursor_after(endpoint: Endpoint) -> str:
    return moment_and_id_cursor_text(endpoint.created_at, endpoint.id)
