"""The profile of the seller: that of the installation, and what a project has of its own."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from msgspec import to_builtins
from starlette.responses import Response

from holdfast.domain.errors import InvalidInput
from holdfast.domain.permissions import Permission
from holdfast.web.api.backoffice.sellers import SellerChange, SellerDocument
from holdfast.web.api.bodies import valid
from holdfast.web.pages.backoffice.base import StaffRequest, pages
from holdfast.web.request import BODY_LIMIT

_TEXT_FIELDS = SellerChange.wire_names - {"logo"}


@pages.post("/settings/seller", Permission.SELL, body_limit=16 * BODY_LIMIT)
@pages.post("/projects/{slug}/seller", Permission.SELL, body_limit=16 * BODY_LIMIT)
async def change_seller(request: StaffRequest, slug: str | None = None) -> Response:
    form = request.form
    typed, shown = (
        {name: form.raw(kind + name).replace("\r\n", "\n") for name in _TEXT_FIELDS}
        for kind in ("", "shown-")
    )
    # What was not changed on this page may have been changed on another. An empty field is not set.
    sent: dict[str, str | None] = {
        name: typed[name].strip() or None for name in typed if typed[name] != shown[name]
    }
    logo = form.upload("logo")
    if logo is not None and logo.content:
        sent["logo"] = f"data:image/png;base64,{b64encode(logo.content).decode()}"
    elif form.text("removeLogo"):
        sent["logo"] = None
    try:
        changes = valid(SellerChange, sent).sent()
        await request.services.sellers.settle(slug, changes, request.author)
    except InvalidInput as error:
        return await show_seller(request, slug, typed=typed, shown=shown, faults=request.faults(error))
    return await request.redirect_with_notice(request.path, request._("The seller's profile is saved."))


@pages.get("/settings/seller", Permission.SEE_UNITS)
@pages.get("/projects/{slug}/seller", Permission.SEE_UNITS)
async def show_seller(request: StaffRequest, slug: str | None = None, **refused: Any) -> Response:
    """``refused``: what the form showed first, what was typed into it, and its faults."""
    services = request.services
    own, general = [to_builtins(SellerDocument(*await services.sellers.own(one))) for one in (slug, None)]
    return await request.render(
        "seller.html" if slug is None else "project_seller.html",
        422 if refused else 200,
        project=slug and await services.projects.find(slug),
        own=own,
        general=slug and general,
        **{"typed": own, "shown": own, "faults": {}, **refused},
    )
