"""The body of a new key."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, Field, TypeAdapter, WithJsonSchema, with_config
from typing_extensions import TypedDict

from holdfast.domain.access import Scope
from holdfast.operations.keys import LONGEST_EXPIRY_DAYS
from holdfast.web.backoffice.bodies import ProjectName
from holdfast.web.backoffice.endpoint_bodies import Projects, each_once
from holdfast.web.checking import names_of
from holdfast.web.fields import STRICT, Bounds, not_one_of, number_schema, within

_EXPIRY = Bounds(Decimal("0.00001"), Decimal(LONGEST_EXPIRY_DAYS), 6)


def _scope(value: str) -> Scope:
    if value not in tuple(Scope):
        raise not_one_of(Scope)
    return Scope(value)


ChosenScope = Annotated[
    str, AfterValidator(_scope), WithJsonSchema({"type": "string", "enum": [str(scope) for scope in Scope]})
]
Scopes = Annotated[
    list[ChosenScope],
    Field(min_length=1, max_length=len(Scope), json_schema_extra={"uniqueItems": True}),
    AfterValidator(each_once),
]
ExpiryDays = Annotated[Decimal, within(_EXPIRY), AfterValidator(float), number_schema(_EXPIRY)]


@with_config(STRICT)
class NewKeyBody(TypedDict):
    name: ProjectName
    scopes: NotRequired[Scopes]
    projects: NotRequired[Projects | None]
    expires_in_days: NotRequired[ExpiryDays | None]


NEW_KEY: TypeAdapter[Any] = TypeAdapter(NewKeyBody)
NEW_KEY_NAMES = names_of(NewKeyBody)
