"""The table of pages is the whole of them."""

from typing import Any, cast

from holdfast.web.backoffice.desk import Desk, PageResource
from holdfast.web.backoffice.pages.routes import backoffice_page_places
from holdfast.web.parts import Parts
from tests.browser.pages import NOT_PAGES, PAGES


def routes() -> set[str]:
    """Nothing is asked of the parts until somebody comes."""
    nothing = cast(Any, None)
    parts = Parts(**dict.fromkeys(Parts._fields, nothing))
    places = backoffice_page_places(Desk(nothing, nothing, nothing, "Asia/Riyadh"), parts)
    return {place.path for place in places if isinstance(place, PageResource) and "GET" in place.methods}


LOOKED_AT = {page.route for page in PAGES if page.route is not None}


def test_every_page_is_looked_at() -> None:
    assert routes() - NOT_PAGES - LOOKED_AT == set()


def test_no_page_of_the_table_is_gone() -> None:
    assert (LOOKED_AT | NOT_PAGES) - routes() == set()


def test_each_has_a_name_of_its_own() -> None:
    assert len({page.name for page in PAGES}) == len(PAGES)
