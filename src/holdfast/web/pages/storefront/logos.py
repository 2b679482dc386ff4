"""The logos of sellers, as pages load them."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from holdfast.web.auth import check_public_rate
from holdfast.web.errors import UnknownRoute
from holdfast.web.pages.base import PublicPage
from holdfast.web.request import Request


async def _show_logo(request: Request) -> Response:
    """The path changes with the picture, so a browser keeps it for good."""
    await check_public_rate(request)
    content = await request.services.sellers.find_logo(request.path)
    if content is None:
        raise UnknownRoute
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable",
        "Content-Security-Policy": "default-src 'none'",
    }
    return Response(content, media_type=f"image/{request.path.rpartition('.')[2]}", headers=headers)


logo_route = Route("/logos/{name:segment}", PublicPage("/logos", _show_logo))
