"""The profile of the seller: that of the installation, and what a project has of its own."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from msgspec import to_builtins
from starlette.responses import Response

from holdfast.domain.errors import InvalidInput
from holdfast.domain.permissions import Permission
from holdfast.domain.seller import Seller
from holdfast.web.api.backoffice.sellers import SellerDocument, SellerProfile
from holdfast.web.api.bodies import valid
from holdfast.web.pages.backoffice.base import StaffRequest, pages
from holdfast.web.request import BODY_LIMIT

_TEXT_FIELDS = SellerProfile.wire_names - {"logo"}


@pages.post("/settings/seller", Permission.SELL, body_limit=2 * BODY_LIMIT)
@pages.post("/projects/{slug}/seller", Permission.SELL, body_limit=2 * BODY_LIMIT)
async def change_seller(request: StaffRequest, slug: str | None = None) -> Response:
    form, sellers = request.form, request.services.sellers
    typed = {name: form.raw(name) for name in _TEXT_FIELDS}
    logo, picture = None, form.upload("logo")
    if picture is not None and picture.content:
        logo = f"data:image/png;base64,{b64encode(picture.content).decode()}"
    elif not form.text("removeLogo"):
        logo = (await sellers.own(slug)).logo
    try:
        # A field that is left empty is not set.
        sent = {name: value if value.strip() else None for name, value in typed.items()}
        profile = valid(SellerProfile, {**sent, "logo": logo})
        await sellers.replace(slug, Seller(**dict(profile)), request.author)
    except InvalidInput as error:
        return await show_seller(request, slug, typed=typed, faults=request.faults(error))
    return await request.redirect_with_notice(request.path, request._("The seller's profile is saved."))


@pages.get("/settings/seller", Permission.SEE_UNITS)
@pages.get("/projects/{slug}/seller", Permission.SEE_UNITS)
async def show_seller(request: StaffRequest, slug: str | None = None, **refused: Any) -> Response:
    """``refused``: what was typed into a form, and its faults."""
    services = request.services
    own, general = [to_builtins(SellerDocument(*await services.sellers.own(one))) for one in (slug, None)]
    return await request.render(
        "seller.html" if slug is None else "project_seller.html",
        422 if refused else 200,
        project=slug and await services.projects.find(slug),
        own=own,
        general=slug and general,
        **{"typed": own, "faults": {}, **refused},
    )
