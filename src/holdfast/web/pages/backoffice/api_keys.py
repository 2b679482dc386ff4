"""The settings of the API: which keys there are; made and revoked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.api_key import IssuedKey, Key, Scope
from holdfast.domain.errors import Fault, InvalidInput, UnknownProject, raise_faults
from holdfast.domain.permissions import ISSUABLE_SCOPES, Permission
from holdfast.operations.api_keys import ApiKeys, KeyIssuer, NewApiKey
from holdfast.operations.units import Units
from holdfast.web.api.parameters import id_in_path
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit
from holdfast.web.pages.backoffice.snippets import first_call
from holdfast.web.pages.i18n import translate
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor

KEYS = f"{PREFIX}/settings/api/keys"
KEYS_A_PAGE = 50
PROJECTS_OFFERED = 500
EXPIRIES_DAYS = (30, 90, 365)


class KeyPages:
    def __init__(self, keys: ApiKeys, inventory: Units, public_url: str) -> None:
        self._keys = keys
        self._inventory = inventory
        self._public_url = public_url

    async def list(self, visit: Visit) -> Response:
        ended = visit.query.text("state") == "ended"
        page, read_at = await self._keys.page(_cursor(visit), None, KEYS_A_PAGE, live=not ended)
        own = f"{KEYS}?state=ended" if ended else KEYS
        return await visit.render(
            "keys.html",
            keys=page[:KEYS_A_PAGE],
            read_at=read_at,
            ended=ended,
            may_revoke=lambda key: _may_revoke(visit, key),
            first=own if visit.query.has("cursor") else None,
            next=_next(own, page),
        )

    async def new(self, visit: Visit) -> Response:
        return await self._form(visit, 200, {})

    async def issue(self, visit: Visit) -> Response:
        power = KeyIssuer(ISSUABLE_SCOPES[visit.staff.role])
        try:
            issued = await self._keys.issue(_wishes(visit), power, visit.author)
        except InvalidInput as refusal:
            faults = {
                fault.pointer.split("/")[1]: translate(fault.message, visit.language)
                for fault in refusal.faults
            }
            return await self._form(visit, 422, faults)
        except UnknownProject:
            return await self._form(visit, 422, {"projects": visit._("One of these projects is not there.")})
        return await self._issued(visit, issued)

    async def revoke(self, visit: Visit) -> Response:
        key_id = _key_id(visit)
        if not _may_revoke(visit, await self._keys.find(key_id)):
            told = visit._("This key opens more than you may give, so only an admin may revoke it.")
            return await visit.go(KEYS, told, "refused")
        key = await self._keys.revoke(key_id, visit.author)
        return await visit.go(
            KEYS, visit._("The key %(name)s is revoked: it opens nothing any more.", name=key.name)
        )

    async def _form(self, visit: Visit, status: int, faults: dict[str, str]) -> Response:
        projects = await self._inventory.projects_page(None, "", PROJECTS_OFFERED)
        return await visit.render("keys_new.html", status, **_typed(visit), projects=projects, faults=faults)

    async def _issued(self, visit: Visit, issued: IssuedKey) -> Response:
        call = first_call(self._public_url, issued)
        return await visit.render("keys_issued.html", 201, issued=issued, call=call)


def key_page_routes(desk: Desk, keys: ApiKeys, inventory: Units, public_url: str) -> list[Route]:
    pages = KeyPages(keys, inventory, public_url)
    return [
        desk.page(KEYS, Permission.MANAGE_KEYS, GET=pages.list),
        desk.page(f"{KEYS}/new", Permission.MANAGE_KEYS, GET=pages.new, POST=pages.issue),
        desk.page(f"{KEYS}/{{id}}/revoke", Permission.MANAGE_KEYS, POST=pages.revoke),
    ]


def _typed(visit: Visit) -> dict[str, Any]:
    """As it was filled in; at first what most want."""
    may_issue = ISSUABLE_SCOPES[visit.staff.role]
    form = visit.form
    is_filled = bool(form.items())
    return {
        "scopes": [scope for scope in Scope if scope in may_issue],
        "expiries": EXPIRIES_DAYS,
        "name": form.raw("name"),
        "chosen_scopes": form.all("scope") if is_filled else [Scope.INTEGRATION],
        "is_limited": form.text("reach") == "some",
        "chosen_projects": form.all("project"),
        "expires": form.text("expires") if is_filled else "",
    }


def _wishes(visit: Visit) -> NewApiKey:
    """Every fault of the form at once; whether the person may issue such a key is asked later."""
    form, faults = visit.form, []
    scopes, expires = form.all("scope"), form.text("expires")
    slugs = tuple(form.all("project")) if form.text("reach") == "some" else None
    if not scopes or not all(scope in tuple(Scope) for scope in scopes):
        faults.append(Fault("/scopes", "A key has at least one scope."))
    if slugs == ():
        faults.append(Fault("/projects", "Choose at least one project."))
    if expires and expires not in map(str, EXPIRIES_DAYS):
        faults.append(Fault("/expiresInDays", "Choose one of these."))
    if not form.text("name"):
        faults.append(Fault("/name", "This field is required."))
    raise_faults(faults)
    days = float(expires) if expires else None
    return NewApiKey(form.text("name"), [Scope(scope) for scope in scopes], slugs, days)


def _may_revoke(visit: Visit, key: Key) -> bool:
    """Who could not make such a key must not stop the system that uses it."""
    return set(key.scopes) <= ISSUABLE_SCOPES[visit.staff.role]


def _key_id(visit: Visit) -> UUID:
    return id_in_path(visit.request)


def _cursor(visit: Visit) -> tuple[datetime, UUID] | None:
    try:
        return TIME_AND_ID_CURSOR.decode(visit.query.text("cursor"))
    except ValueError:
        return None


def _next(address: str, page: Sequence[Key]) -> str | None:
    if len(page) <= KEYS_A_PAGE:
        return None
    return f"{address}{'&' if '?' in address else '?'}cursor={creation_cursor(page[KEYS_A_PAGE - 1])}"
