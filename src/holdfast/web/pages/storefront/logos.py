"""The logos of sellers, as pages load them."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.api.backoffice.sellers import LOGOS
from holdfast.web.auth import check_public_rate
from holdfast.web.errors import UnknownRoute
from holdfast.web.pages.base import PublicPage
from holdfast.web.request import Request


async def _show_logo(request: Request) -> Response:
    """The name changes with the picture, so a browser keeps it for good."""
    await check_public_rate(request)
    name = request.path_parameter("name")
    logo = await request.services.sellers.find_logo(name) if isinstance(name, str) else None
    if logo is None:
        raise UnknownRoute
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "Content-Security-Policy": "default-src 'none'",
        "ETag": f'"{logo.name}"',
    }
    if request.has_revision(logo.name):
        return Response(status_code=304, headers=headers)
    return Response(logo.content, media_type=logo.media_type, headers=headers)


logo_route = Route(f"{LOGOS}/{{name:segment}}", PublicPage(LOGOS, _show_logo))
