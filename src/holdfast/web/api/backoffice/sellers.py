"""The profiles of sellers, of the installation and of projects."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from holdfast.domain.permissions import Permission
from holdfast.domain.seller import Seller, read_logo, read_number
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel, Email, Name, Phone
from holdfast.web.api.models import Document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.api.unit_bodies import Description
from holdfast.web.auth import key_guard
from holdfast.web.errors import UnknownRoute
from holdfast.web.request import Request

Number = Annotated[str, AfterValidator(lambda text, info: read_number(info.field_name, text))]
Terms = Annotated[Description, AfterValidator(lambda text: text.replace("\r\n", "\n").strip() or None)]


class SellerChange(BodyModel):
    """A field that is null is not set: in a project it is then the general one. Numbers may have spaces. A
    logo has at most 256 KiB and 2000 by 2000 pixels. It is read as a path, which cannot be sent back."""

    example: ClassVar[Any] = {"legalName": "Narjis Development Company", "vatNumber": "310123456700003"}

    legal_name: Name | None = Field(None, description="At least two letters.")
    commercial_registration: Number | None = Field(None, description="10 digits.")
    vat_number: Number | None = Field(None, description="15 digits; the first and the last are 3.")
    phone: Phone | None = None
    whatsapp: Number | None = Field(None, description="With + and its country code.")
    email: Email | None = None
    bank_name: Name | None = None
    account_holder: Name | None = Field(None, description="Of the bank account. Null: the legal name.")
    iban: Number | None = Field(None, description="With correct check digits.")
    terms: Terms | None = Field(None, description="Plain text. It follows the clauses of the agreement.")
    logo: Annotated[str, AfterValidator(read_logo)] | None = Field(
        None, description="A picture as `data:image/png;base64,…` or `data:image/jpeg;base64,…`."
    )


class SellerDocument(Document):
    """A profile as it is set; null where it is not."""

    __annotations__ = dict.fromkeys(Seller._fields, str | None)


routes = ApiRoutes(PREFIX, "Settings", key_guard(Permission.SEE_UNITS))


@routes.get("/seller", summary="Read the seller")
async def get_seller(request: Request) -> SellerDocument:
    """Returns the profile for every project, except the fields that a project sets itself."""
    return SellerDocument(*await request.services.sellers.own(None))


@routes.patch("/seller", summary="Change the seller", permission=Permission.SELL, errors=(UnknownRoute,))
async def change_seller(request: Request, body: SellerChange) -> SellerDocument:
    """Changes only the fields that are sent. A signed agreement keeps the profile of its time. A key that is
    limited to projects cannot change it: 404."""
    if request.key.project_slugs is not None:
        raise UnknownRoute
    return SellerDocument(*await request.services.sellers.settle(None, body.sent(), request.author))


@routes.get("/projects/{slug}/seller", summary="Read the seller of a project")
async def get_project_seller(request: Request, slug: str) -> SellerDocument:
    """Returns only the fields that the project sets itself. The others come from the general profile."""
    return SellerDocument(*await request.services.sellers.own(slug))


@routes.patch("/projects/{slug}/seller", summary="Change the seller of a project", permission=Permission.SELL)
async def change_project_seller(request: Request, slug: str, body: SellerChange) -> SellerDocument:
    """Changes only the fields that are sent. Each takes the place of the general one."""
    return SellerDocument(*await request.services.sellers.settle(slug, body.sent(), request.author))
