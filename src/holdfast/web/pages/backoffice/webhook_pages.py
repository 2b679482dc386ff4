"""What the pages about webhooks share: their addresses, and what a request for one of them says."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.responses import Response

from holdfast.web.pages.backoffice.base import PREFIX, Visit
from holdfast.web.pages.i18n import translate, translations
from holdfast.web.pages.sessions import PAGE_HEADERS

WEBHOOKS = f"{PREFIX}/settings/api/webhooks"
DELIVERIES = f"{PREFIX}/deliveries"


def words_of(visit: Visit) -> dict[str, Any]:
    """For templates that tell how endpoints do, and why something failed."""
    code = visit.language.code
    return {
        "translate": partial(translate, language=visit.language),
        # Where a word is another one for an endpoint than for a person.
        "of_endpoint": partial(translations(code).pgettext, "endpoint"),
    }


def unchanged() -> Response:
    """What a script has already is left as it is."""
    return Response(status_code=204, headers=PAGE_HEADERS)


async def go_from_part(visit: Visit, path: str, notice: str) -> Response:
    """On to another page, whether a browser or a script has asked."""
    response = await visit.go(path, notice)
    if not visit.is_fragment:
        return response
    return Response(status_code=204, headers={**PAGE_HEADERS, "HX-Redirect": path})
