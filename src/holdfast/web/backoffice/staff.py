"""Staff: listed, added, changed, reset."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdfast.domain.access import Key, Scope
from holdfast.domain.permissions import Permission
from holdfast.domain.refusals import Fault, KeyLimited
from holdfast.domain.staff import Staff, name_from
from holdfast.operations.setup_links import setup_url
from holdfast.operations.staff_documents import invited_document, staff_document
from holdfast.operations.staffing import Invited, Staffing
from holdfast.web.addresses import id_of
from holdfast.web.answer import NOT_KEPT, JsonAnswer
from holdfast.web.authors import author_of
from holdfast.web.backoffice.calls import id_without_fields
from holdfast.web.backoffice.staff_bodies import NEW_STAFF, NEW_STAFF_NAMES, STAFF, STAFF_NAMES
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults, valid_body
from holdfast.web.cursors import moment_and_id_cursor_text
from holdfast.web.json_bodies import json_body
from holdfast.web.queries import Query, refuse_query
from holdfast.web.routing import Doors, Guard, Place, behind, guarded

_READING = ("GET", "HEAD")


class StaffRoutes:
    def __init__(self, staffing: Staffing, public_url: str) -> None:
        self._staffing = staffing
        self._public_url = public_url

    async def list(self, call: Call) -> JsonAnswer:
        """The oldest first."""
        faults: list[Fault] = []
        query = Query(call, faults)
        after, limit = query.moment_and_id_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        page = await self._staffing.page(after, limit)
        document = {
            "staff": [staff_document(person) for person in page[:limit]],
            "nextCursor": _cursor_after(page[limit - 1]) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def add(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        refuse_query(call, faults)
        values = valid_body(NEW_STAFF, body, NEW_STAFF_NAMES, faults)
        name = values.get("name") or name_from(values["email"])
        invited = await self._staffing.invite(values["email"], name, values["role"], author_of(call))
        return self._with_link(invited, 201)

    async def change(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        staff_id = id_of(call, faults)
        refuse_query(call, faults)
        changes = valid_body(STAFF, body, STAFF_NAMES, faults)
        return JsonAnswer(staff_document(await self._staffing.change(staff_id, changes, author_of(call))))

    async def reset(self, call: Call) -> JsonAnswer:
        staff_id = await id_without_fields(call)
        return self._with_link(await self._staffing.reset(staff_id, author_of(call)), 200)

    def _with_link(self, invited: Invited, status: int) -> JsonAnswer:
        url = setup_url(self._public_url, invited.token)
        return JsonAnswer(invited_document(invited.staff, url), status, NOT_KEPT)


def staff_places(prefix: str, staffing: Staffing, public_url: str, doors: Doors) -> list[Place]:
    routes = StaffRoutes(staffing, public_url)
    admins = behind(_for_all_projects_and_for_good(doors), Permission.ADMINISTER)
    person = prefix + "/staff/{id}"
    return [
        guarded(prefix + "/staff", GET=admins(routes.list), POST=admins(routes.add)),
        guarded(person, PATCH=admins(routes.change)),
        guarded(person + "/reset", POST=admins(routes.reset)),
    ]


def _for_all_projects_and_for_good(doors: Doors) -> Callable[[Permission], Guard]:
    """Staff see every project, so a key that does not must not make any; nor one that expires, or it would
    outlive itself in them."""

    def door(permission: Permission) -> Guard:
        inner: Callable[[Call], Awaitable[None]] = doors(permission)

        async def guard(call: Call) -> None:
            await inner(call)
            if call.known_key is not None and _is_limited(call.known_key, call.method):
                raise KeyLimited(Scope.ADMIN)

        return guard

    return door


def _is_limited(key: Key, method: str) -> bool:
    return key.project_slugs is not None or (key.expires_at is not None and method not in _READING)


def _cursor_after(person: Staff) -> str:
    return moment_and_id_cursor_text(person.created_at, person.id)
