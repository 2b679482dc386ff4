"""API keys: listed, issued and revoked."""

from __future__ import annotations

from uuid import UUID

from starlette.responses import Response

from holdfast.domain.api_key import IssuedKey, Key, Scope
from holdfast.domain.errors import Fault, InvalidInput, UnknownProject
from holdfast.domain.permissions import ISSUABLE_SCOPES, Permission
from holdfast.operations import api_keys
from holdfast.operations.api_keys import KeyIssuer, NewApiKey
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor, paginate

KEYS = f"{PREFIX}/settings/api/keys"
KEYS_A_PAGE = 50
EXPIRIES_DAYS = (30, 90, 365)

_FIRST_PATHS = {
    Scope.INTEGRATION: "/v1/integration/projects",
    Scope.BACKOFFICE: "/v1/backoffice/projects",
    Scope.ADMIN: "/v1/backoffice/keys",
}
_DEPOSIT_PATH = "/v1/backoffice/bookings/REFERENCE/confirm-deposit"


@pages.get("/settings/api/keys", Permission.MANAGE_KEYS)
async def list_keys(request: StaffRequest) -> Response:
    ended = request.query.text("state") == "ended"
    after = request.parse_cursor(TIME_AND_ID_CURSOR)
    rows, read_at = await api_keys.load_page(
        request.services.database, after, None, KEYS_A_PAGE, live=not ended
    )
    keys, next_cursor = paginate(rows, KEYS_A_PAGE, creation_cursor)
    return await request.render(
        "keys.html",
        keys=keys,
        read_at=read_at,
        ended=ended,
        may_revoke=lambda key: _may_revoke(request, key),
        **request.page_links(f"{KEYS}?state=ended" if ended else KEYS, next_cursor),
    )


@pages.get("/settings/api/keys/new", Permission.MANAGE_KEYS)
async def show_new_key(
    request: StaffRequest, status: int = 200, faults: dict[str, str] | None = None
) -> Response:
    """Render the form as it was filled in, or as most people fill it in."""
    may_issue, form = ISSUABLE_SCOPES[request.staff.role], request.form
    return await request.render(
        "keys_new.html",
        status,
        scopes=[scope for scope in Scope if scope in may_issue],
        expiries=EXPIRIES_DAYS,
        typed=form,
        chosen_scopes=form.all("scope") if form.items() else [Scope.INTEGRATION],
        projects=await request.list_projects(),
        faults=faults or {},
    )


@pages.post("/settings/api/keys/new", Permission.MANAGE_KEYS)
async def issue_key(request: StaffRequest) -> Response:
    database, issuer = request.services.database, KeyIssuer(ISSUABLE_SCOPES[request.staff.role])
    try:
        new_key = _parse_form(request)
        issued = await api_keys.issue(database, new_key, issuer, request.author, request.form_id)
    except InvalidInput as error:
        return await show_new_key(request, 422, request.faults(error))
    except UnknownProject:
        faults = {"projects": request._("One of these projects does not exist.")}
        return await show_new_key(request, 422, faults)
    call = _first_call(request.context.public_url, issued)
    return await request.render("keys_issued.html", 201, issued=issued, call=call)


@pages.post("/settings/api/keys/{id}/revoke", Permission.MANAGE_KEYS)
async def revoke_key(request: StaffRequest, key_id: UUID) -> Response:
    if not _may_revoke(request, await api_keys.find(request.services.database, key_id)):
        notice = request._("This key has more access than you can grant, so only an admin can revoke it.")
        return await request.redirect_with_notice(KEYS, notice, "refused")
    key = await api_keys.revoke(request.services.database, key_id, request.author)
    notice = request._("The key %(name)s was revoked and no longer works.", name=key.name)
    return await request.redirect_with_notice(KEYS, notice)


def _parse_form(request: StaffRequest) -> NewApiKey:
    """Return the key to issue, or raise every fault at once. Whether staff may issue it is checked later."""
    form = request.form
    scopes, expires = form.all("scope"), form.text("expires")
    slugs = tuple(form.all("project")) if form.text("reach") == "some" else None
    faults: list[Fault] = []
    if not scopes or not all(scope in tuple(Scope) for scope in scopes):
        faults.append(Fault("/scopes", "A key needs at least one scope."))
    if slugs == ():
        faults.append(Fault("/projects", "Choose at least one project."))
    if expires and expires not in map(str, EXPIRIES_DAYS):
        faults.append(Fault("/expiresInDays", "Choose one of the options."))
    if not form.text("name"):
        faults.append(Fault("/name", "This field is required."))
    if faults:
        raise InvalidInput(faults)
    days = float(expires) if expires else None
    return NewApiKey(form.text("name"), [Scope(scope) for scope in scopes], slugs, days)


def _may_revoke(request: StaffRequest, key: Key) -> bool:
    """Return whether the person could issue such a key; others must not stop the system that uses it."""
    return set(key.scopes) <= ISSUABLE_SCOPES[request.staff.role]


def _first_call(public_url: str, issued: IssuedKey) -> str:
    """Return a command to try a new key with; it only reads, where the key may read at all."""
    path = next((_FIRST_PATHS[scope] for scope in _FIRST_PATHS if scope in issued.key.scopes), None)
    method, path = ("", path) if path else ("-X POST ", _DEPOSIT_PATH)
    return f'curl {method}{public_url}{path} \\\n  -H "Authorization: Bearer {issued.text}"'
