"""The table of pages is the whole of them."""

from holdfast.web.pages.backoffice.base import StaffRequest
from holdfast.web.pages.routes import PagePath
from tests.browser.pages import NOT_PAGES, PAGES
from tests.support.in_process import all_routes, app_with


def routes() -> set[str]:
    pages = (route.endpoint for route in all_routes(app_with().routes))
    return {
        page.path
        for page in pages
        if isinstance(page, PagePath) and page.request_class is StaffRequest and "GET" in page.pages
    }


LOOKED_AT = {page.route for page in PAGES if page.route is not None}


def test_every_page_is_looked_at() -> None:
    assert routes() - NOT_PAGES - LOOKED_AT == set()


def test_no_page_of_the_table_is_gone() -> None:
    assert (LOOKED_AT | NOT_PAGES) - routes() == set()


def test_each_has_a_name_of_its_own() -> None:
    assert len({page.name for page in PAGES}) == len(PAGES)
