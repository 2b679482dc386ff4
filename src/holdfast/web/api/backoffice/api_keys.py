"""API keys: issue, list and revoke them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, Field
from starlette.responses import Response

from holdfast.domain.api_key import Key, Scope
from holdfast.domain.errors import UnknownKey, UnknownProject
from holdfast.domain.permissions import ISSUABLE_SCOPES, Permission, Role
from holdfast.operations.api_keys import (
    LONGEST_EXPIRY_DAYS,
    IssuedKeyDocument,
    KeyDocument,
    KeyIssuer,
    NewApiKey,
    issued_key_document,
    key_document,
)
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel
from holdfast.web.api.models import Cursor, Document, page_response
from holdfast.web.api.parameters import LIMIT, TIME_AND_ID
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.fields import Bounds, OneOf, ProjectName, ProjectSlugs, check_each_once
from holdfast.web.json import NO_STORE, JsonResponse
from holdfast.web.pagination import creation_cursor
from holdfast.web.request import Request

_EXPIRY = Bounds(Decimal("0.00001"), Decimal(LONGEST_EXPIRY_DAYS), 6)

routes = ApiRoutes(PREFIX, "Administration")


Scopes = Annotated[
    list[Annotated[str, OneOf(Scope)]],
    Field(min_length=1, max_length=len(Scope), json_schema_extra={"uniqueItems": True}),
    AfterValidator(check_each_once),
]
ExpiryDays = Annotated[Decimal, _EXPIRY, AfterValidator(float)]


class NewKey(BodyModel):
    example: ClassVar[Any] = {"name": "Nightly sync", "scopes": ["integration"], "expiresInDays": 365}

    name: ProjectName = Field(description="What the key is for.")
    scopes: Scopes = Field([Scope.INTEGRATION], description="What the key opens.")
    projects: ProjectSlugs | None = Field(
        None,
        description="The slugs of the projects that it is limited to; null for all that the issuer may use.",
    )
    expires_in_days: ExpiryDays | None = Field(
        None, description="How many days it is valid; null for as long as the issuer's own key."
    )


class KeyListDocument(Document):
    keys: list[KeyDocument]
    next_cursor: Cursor


@routes.get(
    "/keys",
    summary="List keys",
    permission=Permission.MANAGE_KEYS,
    query=(TIME_AND_ID, LIMIT),
    responses={200: KeyListDocument},
)
async def list_keys(request: Request, *, cursor: tuple[datetime, UUID] | None, limit: int) -> Response:
    """The latest first, revoked and expired ones included. A key that is limited to projects lists keys that
    are limited to some of them."""
    rows, _ = await request.services.api_keys.page(cursor, request.key.project_slugs, limit)
    return page_response(KeyListDocument, rows, limit, key_document, creation_cursor)


@routes.post(
    "/keys",
    summary="Issue a key",
    permission=Permission.MANAGE_KEYS,
    body=NewKey,
    responses={201: Annotated[IssuedKeyDocument, NO_STORE]},
    errors=(UnknownProject,),
)
async def issue_key(request: Request, body: NewKey) -> Response:
    """Returns the key, this once: it is stored as a hash. Nobody issues more than they have. A key that is
    limited to projects issues keys for these projects only, and a key that expires none that lasts longer."""
    choices = body.sent()
    if "projects" in choices:
        choices["project_slugs"] = choices.pop("projects")
    issued = await request.services.api_keys.issue(
        NewApiKey(**choices), _power_of(request.key), request.author
    )
    return JsonResponse(issued_key_document(issued), 201, (NO_STORE,))


@routes.delete(
    "/keys/{id}",
    summary="Revoke a key",
    permission=Permission.MANAGE_KEYS,
    responses={204: None},
    errors=(UnknownKey,),
)
async def revoke_key(request: Request, key_id: UUID) -> Response:
    """The key stops working within a second. Revoking it again changes nothing."""
    await request.services.api_keys.revoke(key_id, request.author, request.key.project_slugs)
    return Response(status_code=204)


def _power_of(key: Key) -> KeyIssuer:
    """A key that manages keys is an admin's, within its projects and its time."""
    return KeyIssuer(ISSUABLE_SCOPES[Role.ADMIN], key.project_slugs, key.expires_at)
