"""The profile of the seller: that of the installation, and what a project has of its own."""

from __future__ import annotations

from base64 import b64encode

from starlette.responses import Response

from holdfast.domain.errors import InvalidInput
from holdfast.domain.permissions import Permission
from holdfast.domain.seller import LONGEST_TERMS, NOBODY_NAMED, Seller
from holdfast.domain.wire_format import camel_case
from holdfast.web.api.backoffice.sellers import SellerProfile, logo_path
from holdfast.web.api.bodies import valid
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages
from holdfast.web.request import BODY_LIMIT

SELLER = f"{PREFIX}/settings/seller"
_TEXT_FIELDS = tuple(camel_case(name) for name in Seller._fields if name != "logo")
_FORM_LIMIT = 2 * BODY_LIMIT


@pages.post("/settings/seller", Permission.SELL, body_limit=_FORM_LIMIT)
@pages.post("/projects/{slug}/seller", Permission.SELL, body_limit=_FORM_LIMIT)
async def change_seller(request: StaffRequest, slug: str | None = None) -> Response:
    form, services = request.form, request.services
    # A field that is left empty is not set.
    sent = {name: form.raw(name) for name in _TEXT_FIELDS if form.text(name)}
    picture = form.upload("logo")
    if picture is not None and picture.content:
        sent["logo"] = f"data:image/png;base64,{b64encode(picture.content).decode()}"
    elif not form.text("removeLogo"):
        sent["logo"] = logo_path(await services.sellers.own(slug)) or ""
    try:
        profile = valid(SellerProfile, {name: value for name, value in sent.items() if value})
        await services.sellers.replace(slug, *profile.seller(), request.author)
    except InvalidInput as error:
        typed = {name: form.raw(name) for name in _TEXT_FIELDS}
        return await show_seller(request, slug, typed, request.faults(error))
    notice = request._("The seller's profile is saved.")
    return await request.redirect_with_notice(_path(slug), notice)


@pages.get("/settings/seller", Permission.SEE_UNITS)
@pages.get("/projects/{slug}/seller", Permission.SEE_UNITS)
async def show_seller(
    request: StaffRequest,
    slug: str | None = None,
    typed: dict[str, str] | None = None,
    faults: dict[str, str] | None = None,
) -> Response:
    services = request.services
    project = None if slug is None else await services.projects.find(slug)
    own = await services.sellers.own(slug)
    general = NOBODY_NAMED if slug is None else await services.sellers.own(None)
    return await request.render(
        "seller.html" if project is None else "project_seller.html",
        422 if faults else 200,
        project=project,
        path=_path(slug),
        own=own,
        general={camel_case(name): value for name, value in general.set_fields.items()},
        typed=typed or {camel_case(name): value or "" for name, value in own._asdict().items()},
        faults=faults or {},
        longest_terms=LONGEST_TERMS,
    )


def _path(slug: str | None) -> str:
    return SELLER if slug is None else f"{PREFIX}/projects/{slug}/seller"
