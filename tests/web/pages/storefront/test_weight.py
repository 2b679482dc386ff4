"""The first view of a project is light: on a phone, on the way, before any picture is loaded."""

import httpx
import pytest

from tests.support.client import Project
from tests.support.page_weight import MOST_BYTES, fonts_in, loaded_with, weight
from tests.web.pages.storefront.buyers import Buyer, project_page
from tests.web.pages.storefront.windows import fill, windows

KINDS = ("3-bedroom apartment | شقة بثلاث غرف نوم", "Studio | استوديو")
FONTS = {"en": ("inter-basic", "instrument-serif"), "ar": ("inter-basic", "holdfast-sans-arabic")}
"""Which a browser loads for the letters of that page."""


@pytest.mark.parametrize("language", ["en", "ar"])
def test_the_first_view_of_a_project_is_under_100_kb(
    buyer: Buyer, http: httpx.Client, project: Project, language: str
) -> None:
    places = [(name, floor, at) for name in "AB" for floor in range(1, 13) for at in range(1, 6)]
    fill(
        http,
        project,
        *({"code": f"{name}-{floor:02}{at:02}", "type": KINDS[at % 2]} for name, floor, at in places),
    )
    path = f"{project_page(project)}?lang={language}"
    page = buyer.look(path)
    assert len(windows(page.text)) == 120
    loaded = loaded_with(buyer.look, page)
    fonts = fonts_in(loaded, FONTS[language])
    assert len(fonts) == len(FONTS[language]) + (language == "ar")
    everything = [page, *loaded.values(), *(buyer.look(font) for font in fonts)]
    assert weight(everything) < MOST_BYTES
