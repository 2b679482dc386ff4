"""The profiles of sellers, of the installation and of projects."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from holdfast.domain.permissions import Permission
from holdfast.domain.seller import Seller, iban_fault, plain_number
from holdfast.web import fields
from holdfast.web.api.backoffice import PREFIX
from holdfast.web.api.bodies import BodyModel, Email, Name, Phone
from holdfast.web.api.models import Document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.api.unit_bodies import Description
from holdfast.web.auth import key_guard
from holdfast.web.errors import UnknownRoute
from holdfast.web.request import Request

_LOGO = (
    "A picture, given as the path from which it is loaded. Send that path to keep it, and a new picture as "
    "`data:image/png;base64,…` or `data:image/jpeg;base64,…`, at most 256 KiB and 2000 by 2000 pixels."
)
_PLAIN = BeforeValidator(lambda value: plain_number(value) if isinstance(value, str) else value)

Registration = Annotated[str, StringConstraints(pattern=fields.REGISTRATION), _PLAIN]
VatNumber = Annotated[str, StringConstraints(pattern=fields.VAT_NUMBER), _PLAIN]
WhatsApp = Annotated[str, StringConstraints(pattern=fields.WHATSAPP_NUMBER), _PLAIN]
_IS_IBAN = AfterValidator(fields.checked_by(iban_fault))
Iban = Annotated[str, StringConstraints(pattern=fields.IBAN), _IS_IBAN, _PLAIN]
LogoText = Annotated[str, StringConstraints(pattern=fields.LOGO), AfterValidator(fields.check_logo)]
Terms = Annotated[Description, AfterValidator(lambda text: text.replace("\r\n", "\n").strip() or None)]


class SellerProfile(BodyModel):
    """A field that is null or left out is not set. In a project it is then that of the installation."""

    example: ClassVar[Any] = {"legalName": "Narjis Development Company", "vatNumber": "310123456700003"}

    legal_name: Name | None = Field(None, description="The name of the company, as agreements have it.")
    commercial_registration: Registration | None = Field(None, description="Its number: 10 digits.")
    vat_number: VatNumber | None = Field(None, description="The VAT registration number: 15 digits.")
    phone: Phone | None = Field(None, description="Buyers call it.")
    whatsapp: WhatsApp | None = Field(None, description="A number on WhatsApp, with its country code.")
    email: Email | None = Field(None, description="Buyers write to it.")
    bank_name: Name | None = Field(None, description="The bank to which deposits are transferred.")
    account_holder: Name | None = Field(None, description="The holder of the account. Null: the legal name.")
    iban: Iban | None = Field(None, description="The account to which deposits are transferred.")
    terms: Terms | None = Field(None, description="Plain text. It follows the clauses of the agreement.")
    logo: LogoText | None = Field(None, description=_LOGO)


class SellerDocument(Document):
    """A profile as it is set; null where it is not."""

    __annotations__ = dict.fromkeys(Seller._fields, str | None)


routes = ApiRoutes(PREFIX, "Settings", key_guard(Permission.SEE_UNITS))


@routes.get("/seller", summary="Read the profile of the seller", errors=(UnknownRoute,))
async def get_seller(request: Request) -> SellerDocument:
    """The profile that holds for every project, but for the fields that a project sets itself. A key that is
    limited to projects does not find it: 404."""
    if request.key.project_slugs is not None:
        raise UnknownRoute
    return SellerDocument(*await request.services.sellers.own(None))


@routes.put(
    "/seller", summary="Replace the profile of the seller", permission=Permission.SELL, errors=(UnknownRoute,)
)
async def put_seller(request: Request, body: SellerProfile) -> SellerDocument:
    """Replaces the whole profile. What is signed already keeps the profile of its time. A key that is
    limited to projects does not find it: 404."""
    if request.key.project_slugs is not None:
        raise UnknownRoute
    return SellerDocument(*await request.services.sellers.replace(None, Seller(**dict(body)), request.author))


@routes.get("/projects/{slug}/seller", summary="Read the seller's profile of a project")
async def get_project_seller(request: Request, slug: str) -> SellerDocument:
    """Only what is set for the project itself. For the other fields, which are null, the installation's
    profile holds."""
    return SellerDocument(*await request.services.sellers.own(slug))


@routes.put(
    "/projects/{slug}/seller", summary="Replace the seller's profile of a project", permission=Permission.SELL
)
async def put_project_seller(request: Request, slug: str, body: SellerProfile) -> SellerDocument:
    """Replaces what is set for the project. Each field takes the place of the installation's."""
    return SellerDocument(*await request.services.sellers.replace(slug, Seller(**dict(body)), request.author))
