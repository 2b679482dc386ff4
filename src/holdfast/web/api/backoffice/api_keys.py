"""API keys: issue, list and revoke them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import AfterValidator, Field

from holdfast.domain.api_key import Scope
from holdfast.domain.errors import IdempotencyKeyUsed, UnknownKey, UnknownProject
from holdfast.domain.permissions import ISSUABLE_SCOPES, Permission, Role
from holdfast.operations import api_keys
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel
from holdfast.web.api.models import Cursor, Document, page_document
from holdfast.web.api.parameters import Limit, TimeAndIdCursor
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.auth import key_guard
from holdfast.web.fields import Bounds, OneOf, ProjectName, ProjectSlugs, check_each_once
from holdfast.web.pagination import creation_cursor
from holdfast.web.request import Request
from holdfast.web.visitors import IDEMPOTENCY_KEY, idempotent_id

routes = ApiRoutes(PREFIX, "Administration", key_guard(Permission.MANAGE_KEYS))

Scopes = Annotated[
    list[Annotated[str, OneOf(Scope)]],
    Field(min_length=1, max_length=len(Scope), json_schema_extra={"uniqueItems": True}),
    AfterValidator(check_each_once),
]
ExpiryDays = Annotated[
    Decimal, Bounds(Decimal("0.00001"), Decimal(api_keys.LONGEST_EXPIRY_DAYS), 6), AfterValidator(float)
]


class NewKey(BodyModel):
    example: ClassVar[Any] = {"name": "Nightly sync", "scopes": ["integration"], "expiresInDays": 365}

    name: ProjectName = Field(description="What the key is for.")
    scopes: Scopes = Field([Scope.INTEGRATION], description="What the key gives access to.")
    projects: ProjectSlugs | None = Field(
        None,
        description="The slugs of the projects that it is limited to; null for all that the issuer may use.",
    )
    expires_in_days: ExpiryDays | None = Field(
        None, description="How many days it is valid; null for as long as the issuer's own key."
    )


class KeyListDocument(Document):
    keys: list[api_keys.KeyDocument]
    next_cursor: Cursor


@routes.get("/keys", summary="List keys")
async def list_keys(request: Request, *, cursor: TimeAndIdCursor, limit: Limit) -> KeyListDocument:
    """Latest first, including revoked and expired keys. A key that is limited to projects lists only keys
    that are limited to some of the same projects."""
    rows, _ = await api_keys.load_page(request.services.database, cursor, request.key.project_slugs, limit)
    return page_document(KeyListDocument, rows, limit, api_keys.key_document, creation_cursor)


@routes.post(
    "/keys",
    summary="Issue a key",
    status=201,
    headers=(IDEMPOTENCY_KEY,),
    errors=(UnknownProject, IdempotencyKeyUsed),
)
async def issue_key(request: Request, body: NewKey) -> api_keys.IssuedKeyDocument:
    """Returns the key. This is the only time that it is shown: only its hash is stored. A key cannot grant
    more than its own rights: one that is limited to projects issues keys for these projects only, and one
    that expires issues none that expires later.

    With an `Idempotency-Key`, repeated requests issue one key. A repetition does not show the key again: it
    is 409 `idempotency-key-used`, with the `id` by which you can revoke the key."""
    choices = body.sent()
    if "projects" in choices:
        choices["project_slugs"] = choices.pop("projects")
    # A key that manages keys is an admin's, within its projects and its time.
    issuer = api_keys.KeyIssuer(
        ISSUABLE_SCOPES[Role.ADMIN], request.key.project_slugs, request.key.expires_at
    )
    issued = await api_keys.issue(
        request.services.database,
        api_keys.NewApiKey(**choices),
        issuer,
        request.author,
        idempotent_id(request),
    )
    return api_keys.issued_key_document(issued)


@routes.delete("/keys/{id}", summary="Revoke a key", errors=(UnknownKey,))
async def revoke_key(request: Request, key_id: UUID) -> None:
    """The key stops working within a second. Revoking it again changes nothing."""
    await api_keys.revoke(request.services.database, key_id, request.author, request.key.project_slugs)
