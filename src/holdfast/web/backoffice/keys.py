"""Keys: issued, listed, revoked."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.domain.access import Key
from holdfast.domain.permissions import MAY_ISSUE, Permission, Role
from holdfast.domain.refusals import Fault
from holdfast.operations.key_documents import issued_key_document, key_document
from holdfast.operations.keys import Keys, KeyWishes, Power
from holdfast.web.answer import NOT_KEPT, JsonAnswer
from holdfast.web.authors import author_of
from holdfast.web.backoffice.calls import id_alone
from holdfast.web.backoffice.key_bodies import NEW_KEY, NEW_KEY_NAMES
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults, valid_body
from holdfast.web.cursors import moment_and_id_cursor_text
from holdfast.web.json_bodies import json_body
from holdfast.web.queries import Query, refuse_query
from holdfast.web.routing import Doors, Place, behind, guarded


class KeyRoutes:
    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    async def list(self, call: Call) -> JsonAnswer:
        """The latest first."""
        faults: list[Fault] = []
        query = Query(call, faults)
        before, limit = query.moment_and_id_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        page, _ = await self._keys.page(before, call.key.project_slugs, limit)
        document = {
            "keys": [key_document(key) for key in page[:limit]],
            "nextCursor": cursor_after(page[limit - 1]) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def issue(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        refuse_query(call, faults)
        values = valid_body(NEW_KEY, body, NEW_KEY_NAMES, faults)
        if "projects" in values:
            values["project_slugs"] = values.pop("projects")
        issued = await self._keys.issue(KeyWishes(**values), _power_of(call.key), author_of(call))
        return JsonAnswer(issued_key_document(issued), 201, NOT_KEPT)

    async def revoke(self, call: Call) -> Response:
        await self._keys.revoke(id_alone(call), author_of(call), call.key.project_slugs)
        return Response(status_code=204)


def key_places(prefix: str, keys: Keys, doors: Doors) -> list[Place]:
    routes = KeyRoutes(keys)
    manage = behind(doors, Permission.MANAGE_KEYS)
    return [
        guarded(prefix + "/keys", GET=manage(routes.list), POST=manage(routes.issue)),
        guarded(prefix + "/keys/{id}", DELETE=manage(routes.revoke)),
    ]


def cursor_after(key: Key) -> str:
    return moment_and_id_cursor_text(key.created_at, key.id)


def _power_of(key: Key) -> Power:
    """A key that manages keys is an admin's, within its projects and its time."""
    return Power(MAY_ISSUE[Role.ADMIN], key.project_slugs, key.expires_at)
